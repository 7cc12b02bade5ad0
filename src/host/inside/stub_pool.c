/* SPDX-License-Identifier: MIT */
#include "host/inside/stub_pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host/base/page.h"
#include "host/code/aarch64/stub.h"
#include "host/trampoline/pool.h"
#include "trace/linked.h"

/* Bytes of the code that leads to a hook, and of a stub. */
enum { LEAD_SIZE = 16, STUB_SIZE = 16, CALL_STUB_SIZE = 32 };

static const struct fathom_stub_site *find(const struct fathom_stub_pool *pool, uint64_t site)
{
	const size_t i = FATHOM_BISECT(pool->n, k, pool->items[k].site < site);

	return i < pool->n && pool->items[i].site == site ? &pool->items[i] : NULL;
}

/* Returns the stub of @s, for the hook at @hook; 0: it has none yet. */
static uint64_t find_stub(const struct fathom_stub_pools *pools, const struct fathom_stub_site *s,
			  uint64_t hook)
{
	for (size_t i = pools->n; i-- > 0;) {
		const struct fathom_stub_pool *pool = &pools->items[i];
		const struct fathom_stub_site *found =
			pool->hook == hook ? find(pool, s->site) : NULL;

		if (found && found->behind == s->behind)
			return found->stub;
	}
	return 0;
}

/* A pool that is to be made beside others. */
struct placing {
	const struct fathom_stub_pools *pools;
	uint64_t size;
};

/* Returns whether numbers of sites in a pool at @avma rise, and are no others' (linked.h). */
static bool has_own_numbers(const void *data, uint64_t avma)
{
	const struct placing *placing = data;
	const struct fathom_stub_pools *pools = placing->pools;
	const uint64_t size = placing->size;

	if ((uint32_t)avma > (uint32_t)(avma + size))
		return false;
	for (size_t i = 0; i < pools->n; i++) {
		const uint32_t low = (uint32_t)pools->items[i].code.avma;
		const uint32_t high = low + (uint32_t)pools->items[i].code.size;

		if ((uint32_t)avma < high && (uint32_t)(avma + size) > low)
			return false;
	}
	return true;
}

static uint64_t start_size(const struct fathom_stub_pool *pool)
{
	return pool->behind ? 2 * LEAD_SIZE : LEAD_SIZE;
}

static uint64_t stub_size(const struct fathom_stub_pool *pool)
{
	return pool->behind ? CALL_STUB_SIZE : STUB_SIZE;
}

static uint64_t code_size(const struct fathom_stub_pool *pool)
{
	return start_size(pool) + pool->n * stub_size(pool);
}

/* Writes the stub of @s, which is to be at @avma, to @to; false: something is too far. */
static bool write_stub(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
		       uint64_t avma, uint32_t *to)
{
	const uint64_t last = avma + stub_size(pool) - sizeof *to;
	uint32_t unused;

	if (!fathom_arm_put_hook_call(avma, pool->code.avma, FATHOM_TRACE_STUB_FRAME, to))
		return false;
	if (pool->behind) {
		to[3] = FATHOM_ARM_SVC;
		if (!fathom_arm_put_hook_call(avma + STUB_SIZE, pool->code.avma + LEAD_SIZE,
					      FATHOM_TRACE_STUB_FRAME, to + 4))
			return false;
	}
	return fathom_arm_jump(last, s->behind, &to[(last - avma) / sizeof *to]) &&
	       fathom_arm_jump(s->site, avma, &unused);
}

/* Writes all of @pool to @to, where it is to run; sites that are too far keep no stub. */
static void write_pool(struct fathom_stub_pool *pool, uint32_t *to)
{
	uint64_t avma = pool->code.avma + start_size(pool);

	fathom_arm_put_far_jump(pool->hook, to);
	if (pool->behind)
		fathom_arm_put_far_jump(pool->behind, to + LEAD_SIZE / sizeof *to);
	to += start_size(pool) / sizeof *to;
	for (size_t i = 0; i < pool->n; i++) {
		if (write_stub(pool, &pool->items[i], avma, to))
			pool->items[i].stub = avma;
		avma += stub_size(pool);
		to += stub_size(pool) / sizeof *to;
	}
}

/* Describes the stub of a site, which leaves return addresses where they were. */
static void describe_stub(struct fathom_stub_cfi *cfi)
{
	fathom_arm_describe_hook_call(cfi, FATHOM_TRACE_STUB_FRAME);
	fathom_stub_cfi_advance(cfi, FATHOM_ARM_SIZE);
}

/*
 * Tells unwinders how stacks go through @pool. The caller of the stub of a system call is the
 * function that has the instruction, which goes on behind that with all registers; what leads to
 * the hooks is called by a stub.
 */
static void publish(const struct fathom_stub_pool *pool)
{
	const bool is_of_calls = pool->behind != 0;
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi cfi;

	fathom_stub_cfi_init(&cfi, &fathom_arm_stub_registers,
			     is_of_calls ? FATHOM_ARM_PC : FATHOM_ARM_LINK, pool->n);
	if (is_of_calls)
		fathom_stub_cfi_caller_in(&cfi, FATHOM_ARM_LINK);
	fathom_stub_cfi_advance(&cfi, start_size(pool));
	for (size_t i = 0; i < pool->n; i++) {
		if (is_of_calls) {
			fathom_stub_cfi_caller(&cfi, pool->items[i].behind);
			describe_stub(&cfi);
		}
		describe_stub(&cfi);
	}
	rule = fathom_stub_cfi_end(&cfi, pool->code.avma, code_size(pool));
	(void)fathom_trampoline_pool_publish(&pool->code, 0, code_size(pool), &rule, false);
	fathom_stub_cfi_deinit(&cfi);
}

/* Maps and writes @pool; it has no code if there is no room for it. FATHOM_E_OS. */
static fathom_err make(const struct fathom_stub_pools *pools, struct fathom_stub_pool *pool,
		       struct fathom_errinfo *reterr)
{
	const uint64_t page = fathom_page_size();
	const struct placing placing = { pools, (code_size(pool) + page - 1) / page * page };
	const struct fathom_near_want want = {
		.low = pool->items[0].site,
		.high = pool->items[0].site,
		.reach = FATHOM_ARM_REACH,
		.size = placing.size,
		.may_be_at = has_own_numbers,
		.data = &placing,
	};

	pool->code = fathom_trampoline_pool_map_own(&want, PROT_READ | PROT_WRITE);
	if (!pool->code.avma)
		return FATHOM_OK;
	write_pool(pool, (uint32_t *)(uintptr_t)pool->code.avma);
	FATHOM_TRY(fathom_trampoline_pool_seal(&pool->code, reterr));
	publish(pool);
	return FATHOM_OK;
}

fathom_err fathom_stub_pools_get(struct fathom_stub_pools *pools, struct fathom_stub_pool *module,
				 struct fathom_errinfo *reterr)
{
	struct fathom_stub_pool fresh = { .hook = module->hook, .behind = module->behind };
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; i < module->n; i++) {
		struct fathom_stub_site *s = &module->items[i];

		s->stub = find_stub(pools, s, module->hook);
		if (!s->stub && !fathom_array_push(&fresh, *s))
			err = FATHOM_E_MEMORY;
	}
	if (!err && fresh.n && !fathom_array_room(pools, 1))
		err = FATHOM_E_MEMORY;
	if (err)
		(void)fathom_fail_memory(reterr);
	else if (fresh.n)
		err = make(pools, &fresh, reterr);
	if (err || !fresh.code.avma) {
		fathom_array_free(&fresh);
		return err;
	}
	(void)fathom_array_push(pools, fresh);
	for (size_t i = 0; i < module->n; i++)
		if (!module->items[i].stub)
			module->items[i].stub = find_stub(pools, &module->items[i], module->hook);
	return FATHOM_OK;
}
