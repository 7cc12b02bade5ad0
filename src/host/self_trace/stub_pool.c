/* SPDX-License-Identifier: MIT */
#include "host/self_trace/stub_pool.h"

#include <sys/mman.h>

#include "host/base/page.h"
#include "host/code/native.h"

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

/* Returns the bytes of the jumps to hooks. */
static uint64_t start_size(const struct fathom_stub_pool *pool)
{
	return FATHOM_NATIVE_FAR_SIZE * (pool->second ? 2 : 1);
}

static uint64_t code_size(const struct fathom_stub_pool *pool)
{
	return start_size(pool) + pool->n * fathom_stub_size(pool);
}

/* Writes all of @pool; sites that are too far keep no stub. */
static void write_pool(struct fathom_stub_pool *pool)
{
	uint8_t *memory = (uint8_t *)(uintptr_t)pool->code.avma;
	uint64_t off = start_size(pool);

	fathom_native_put_far_jump(pool->hook, memory);
	if (pool->second)
		fathom_native_put_far_jump(pool->second, memory + FATHOM_NATIVE_FAR_SIZE);
	for (size_t i = 0; i < pool->n; i++, off += fathom_stub_size(pool))
		if (fathom_stub_write(pool, &pool->items[i], pool->code.avma + off, memory + off))
			pool->items[i].stub = pool->code.avma + off;
}

/*
 * Tells unwinders how stacks go through @pool. The caller of the stub of a system call is the
 * function that has the instruction, which goes on behind that with all registers.
 */
static void publish(const struct fathom_stub_pool *pool)
{
	const struct fathom_stub_registers *r = &fathom_native_registers;
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi cfi;

	fathom_stub_cfi_init(&cfi, r, pool->second ? r->pc : r->link, pool->n);
	fathom_stub_cfi_called(&cfi);
	fathom_stub_cfi_advance(&cfi, start_size(pool));
	fathom_stub_cfi_frame(&cfi, 0);
	for (size_t i = 0; i < pool->n; i++)
		fathom_stub_describe(pool, &pool->items[i], &cfi);
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
		.reach = fathom_native_reach,
		.size = placing.size,
		.may_be_at = has_own_numbers,
		.data = &placing,
	};

	pool->code = fathom_trampoline_pool_map_own(&want, PROT_READ | PROT_WRITE);
	if (!pool->code.avma)
		return FATHOM_OK;
	write_pool(pool);
	FATHOM_TRY(fathom_trampoline_pool_seal(&pool->code, reterr));
	publish(pool);
	return FATHOM_OK;
}

fathom_err fathom_stub_pools_get(struct fathom_stub_pools *pools, struct fathom_stub_pool *module,
				 struct fathom_errinfo *reterr)
{
	struct fathom_stub_pool fresh = { .hook = module->hook, .second = module->second };
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
