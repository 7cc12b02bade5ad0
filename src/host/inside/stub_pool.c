/* SPDX-License-Identifier: MIT */
#include "host/inside/stub_pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host/base/page.h"
#include "host/code/aarch64/instructions.h"
#include "host/trampoline/pool.h"
#include "safe/dwarf/cfi_write.h"
#include "safe/dwarf/dwarf.h"
#include "trace/linked.h"

/* Bytes of the code that leads to a hook, and of a stub; of the latter's parts. */
enum { LEAD_SIZE = 16, STUB_SIZE = 16, CALL_STUB_SIZE = 32, PUSHED = 4, POPPED = 12 };

/* DWARF numbers of registers. */
enum { X16 = 16, X30 = 30, SP = 31, PC = 32 };

/* Bytes of the rules of a call stub at the most, of a CIE, and of an FDE without rules. */
#define MOST_RULES 80

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

/* Writes a call of the code at @lead, which is to be at @avma, to @to; false: it is too far. */
static bool write_call(uint64_t avma, uint64_t lead, uint32_t *to)
{
	to[0] = fathom_arm_push(FATHOM_TRACE_STUB_FRAME);
	to[2] = fathom_arm_pop(FATHOM_TRACE_STUB_FRAME);
	return fathom_arm_call(avma + PUSHED, lead, &to[1]);
}

/* Writes the stub of @s, which is to be at @avma, to @to; false: something is too far. */
static bool write_stub(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
		       uint64_t avma, uint32_t *to)
{
	const uint64_t last = avma + stub_size(pool) - sizeof *to;
	uint32_t unused;

	if (!write_call(avma, pool->code.avma, to))
		return false;
	if (pool->behind) {
		to[3] = FATHOM_ARM_SVC;
		if (!write_call(avma + STUB_SIZE, pool->code.avma + LEAD_SIZE, to + 4))
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

/* What the four instructions of each stub do to the stack. */
static void describe_stub(uint32_t off, struct fathom_jit_event *to)
{
	to[0] = (struct fathom_jit_event){ .offset = off + PUSHED,
					   .kind = FATHOM_JIT_SUB,
					   .value = FATHOM_TRACE_STUB_FRAME };
	to[1] = (struct fathom_jit_event){
		.offset = off + PUSHED, .kind = FATHOM_JIT_SAVE, .reg = X16, .value = 0
	};
	to[2] = (struct fathom_jit_event){
		.offset = off + PUSHED, .kind = FATHOM_JIT_SAVE, .reg = X30, .value = 8
	};
	to[3] = (struct fathom_jit_event){ .offset = off + POPPED,
					   .kind = FATHOM_JIT_RESTORE,
					   .reg = X16 };
	to[4] = (struct fathom_jit_event){ .offset = off + POPPED,
					   .kind = FATHOM_JIT_RESTORE,
					   .reg = X30 };
	to[5] = (struct fathom_jit_event){ .offset = off + POPPED,
					   .kind = FATHOM_JIT_ADD,
					   .value = FATHOM_TRACE_STUB_FRAME };
}

/* Publishes @pool, through which stacks go by @rule. */
static void publish(const struct fathom_stub_pool *pool, const struct fathom_jit_unwind *rule)
{
	(void)fathom_trampoline_pool_publish(&pool->code, 0, code_size(pool), rule, false);
}

/* Tells unwinders how stacks go through stubs of sites. */
static void publish_sites(const struct fathom_stub_pool *pool)
{
	enum { EVENTS = 6 };
	struct fathom_jit_event *events = calloc(pool->n, EVENTS * sizeof *events);
	const struct fathom_jit_unwind rule = { .size = sizeof rule,
						.kind = FATHOM_JIT_EVENTS,
						.events = events,
						.n_events = EVENTS * pool->n };

	for (size_t i = 0; events && i < pool->n; i++)
		describe_stub((uint32_t)(LEAD_SIZE + i * STUB_SIZE), events + i * EVENTS);
	if (events)
		publish(pool, &rule);
	free(events);
}

/* Appends that the stack is @bytes deeper than where the program's instruction is. */
static void put_depth(struct fathom_out *o, uint8_t bytes)
{
	fathom_out_u8(o, DW_CFA_def_cfa_offset);
	fathom_out_uleb(o, bytes);
	if (bytes) {
		fathom_cfa_saved(o, X16, bytes / 8u);
		fathom_cfa_saved(o, X30, bytes / 8u - 1);
	} else {
		fathom_cfa_restore(o, X16);
		fathom_cfa_restore(o, X30);
	}
}

/*
 * Appends the rows of the call stub of @s: its caller is the function that has the instruction,
 * which goes on behind that with all registers.
 */
static void put_call_stub(struct fathom_out *o, const struct fathom_stub_site *s)
{
	fathom_out_u8(o, DW_CFA_val_expression);
	fathom_out_uleb(o, PC);
	fathom_out_uleb(o, 1 + sizeof s->behind);
	fathom_out_u8(o, DW_OP_addr);
	fathom_out_u64(o, s->behind);
	for (unsigned i = 0; i < CALL_STUB_SIZE / STUB_SIZE; i++) {
		fathom_cfa_advance(o, PUSHED);
		put_depth(o, FATHOM_TRACE_STUB_FRAME);
		fathom_cfa_advance(o, POPPED - PUSHED);
		put_depth(o, 0);
		fathom_cfa_advance(o, STUB_SIZE - POPPED);
	}
}

/* Writes the call frame information of a pool of call stubs. */
static void write_calls(const struct fathom_stub_pool *pool, struct fathom_out *o)
{
	/* The frame of the stub ends where it begins. */
	const uint8_t initial[] = { DW_CFA_def_cfa, SP, 0 };
	const struct fathom_cie_form cie = {
		.instructions = { initial, sizeof initial },
		.code_alignment = 1,
		.data_alignment = -8,
		.return_register = PC,
	};
	const size_t cie_off = fathom_cie_write(o, &cie);
	uint8_t *bytes = malloc(pool->n * MOST_RULES);
	struct fathom_out rules = { .at = bytes, .cap = bytes ? pool->n * MOST_RULES : 0 };

	/* What leads to the hooks is called by a stub. libgcc takes this column from expressions
	 * only. */
	fathom_out_u8(&rules, DW_CFA_val_expression);
	fathom_out_uleb(&rules, PC);
	fathom_out_uleb(&rules, 2);
	fathom_out_u8(&rules, DW_OP_breg0 + X30);
	fathom_out_sleb(&rules, 0);
	fathom_cfa_advance(&rules, (uint32_t)start_size(pool));
	for (size_t i = 0; i < pool->n; i++)
		put_call_stub(&rules, &pool->items[i]);
	(void)fathom_fde_write(o, &cie, cie_off, pool->code.avma, code_size(pool), 0,
			       (struct fathom_bytes){ bytes, bytes ? rules.n : 0 });
	free(bytes);
}

/* Tells unwinders how stacks go through stubs of system calls. */
static void publish_calls(const struct fathom_stub_pool *pool)
{
	const size_t cap = MOST_RULES * (pool->n + 2);
	uint8_t *bytes = malloc(cap);
	struct fathom_out o = { .at = bytes, .cap = cap };
	struct fathom_jit_unwind rule = { .size = sizeof rule,
					  .kind = FATHOM_JIT_EH_FRAME,
					  .eh_frame = bytes };

	if (!bytes)
		return;
	write_calls(pool, &o);
	rule.eh_frame_size = o.n;
	publish(pool, &rule);
	free(bytes);
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
	if (pool->behind)
		publish_calls(pool);
	else
		publish_sites(pool);
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
