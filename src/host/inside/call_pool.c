/* SPDX-License-Identifier: MIT */
#include "host/inside/call_pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "host/base/page.h"
#include "host/code/x86_64/instructions.h"
#include "host/sites/kernel_calls.h"
#include "host/trampoline/pool.h"
#include "safe/dwarf/cfi_write.h"
#include "safe/dwarf/dwarf.h"
#include "trace/call_linked.h"

/* Bytes of the code that leads to a hook, and of a stub. */
enum { LEAD_SIZE = 16, STUB_SIZE = 80 };

/* DWARF numbers of registers. */
enum { SP = 7, PC = 16 };

#define RED_ZONE 128

/* lea -128(%rsp), %rsp; call: its distance follows; lea 128(%rsp), %rsp */
static const uint8_t enter[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 };
static const uint8_t leave[] = { 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0 };

enum { BRANCH_SIZE = FATHOM_X86_BRANCH_SIZE };

/* Bytes of a call of the hook with what is before and behind it. */
#define HOOK_SIZE (sizeof enter + BRANCH_SIZE + sizeof leave)

_Static_assert(FATHOM_KERNEL_MOVED_MAX + 2 * HOOK_SIZE + sizeof fathom_x86_syscall + BRANCH_SIZE <=
		       STUB_SIZE,
	       "a stub has room");

/* Bytes of the rules of a stub at the most, of a CIE, and of an FDE without rules. */
#define MOST_RULES 96

/* Writes a call of the code at @lead, which is to be at @avma, to @to. */
static bool put_hook(uint64_t avma, uint64_t lead, uint8_t *to)
{
	memcpy(to, enter, sizeof enter);
	memcpy(to + sizeof enter + BRANCH_SIZE, leave, sizeof leave);
	return fathom_x86_put_call(avma + sizeof enter, lead, to + sizeof enter);
}

/* Writes the stub of @c, which is to be at @avma, to @to; false: something is too far. */
static bool put_stub(const struct fathom_pool_call *c, uint64_t pool, uint64_t avma, uint8_t *to)
{
	size_t at = c->call.moved_size;

	memcpy(to, c->moved, at);
	if (!fathom_kernel_call_move(&c->call, avma - (c->site - at), to) ||
	    !put_hook(avma + at, pool, to + at))
		return false;
	at += HOOK_SIZE;
	memcpy(to + at, fathom_x86_syscall, sizeof fathom_x86_syscall);
	at += sizeof fathom_x86_syscall;
	if (!put_hook(avma + at, pool + LEAD_SIZE, to + at))
		return false;
	at += HOOK_SIZE;
	return fathom_x86_put_jump(avma + at, c->site + sizeof fathom_x86_syscall, to + at);
}

static uint64_t pool_size(const struct fathom_pool_calls *calls)
{
	return 2 * LEAD_SIZE + calls->n * STUB_SIZE;
}

/* Appends that the caller goes on at @avma. */
static void put_caller(struct fathom_out *o, uint64_t avma)
{
	fathom_out_u8(o, DW_CFA_val_expression);
	fathom_out_uleb(o, PC);
	fathom_out_uleb(o, 1 + sizeof avma);
	fathom_out_u8(o, DW_OP_addr);
	fathom_out_u64(o, avma);
}

static void put_depth(struct fathom_out *o, uint32_t bytes)
{
	fathom_out_u8(o, DW_CFA_def_cfa_offset);
	fathom_out_uleb(o, bytes);
}

/*
 * Appends the rows of the stub of @c: its caller is the function that has the instruction, which
 * goes on behind that with all registers.
 */
static void put_rules(struct fathom_out *o, const struct fathom_pool_call *c)
{
	put_caller(o, c->site + sizeof fathom_x86_syscall);
	fathom_cfa_advance(o, c->call.moved_size);
	for (int i = 0; i < 2; i++) {
		fathom_cfa_advance(o, sizeof enter);
		put_depth(o, RED_ZONE);
		fathom_cfa_advance(o, BRANCH_SIZE + sizeof leave);
		put_depth(o, 0);
		if (!i)
			fathom_cfa_advance(o, sizeof fathom_x86_syscall);
	}
	fathom_cfa_advance(o, (uint32_t)(STUB_SIZE - c->call.moved_size - 2 * HOOK_SIZE -
					 sizeof fathom_x86_syscall));
}

/* Writes the call frame information of the stubs at @pool; @rules has room for that of each. */
static void write_frames(const struct fathom_pool_calls *calls, uint64_t pool,
			 struct fathom_out *rules, struct fathom_out *o)
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
	const uint64_t stubs = pool + 2 * LEAD_SIZE;

	for (size_t i = 0; i < calls->n; i++)
		put_rules(rules, &calls->items[i]);
	(void)fathom_fde_write(o, &cie, cie_off, stubs, calls->n * STUB_SIZE, 0,
			       (struct fathom_bytes){ rules->at, rules->n });
}

/* Tells unwinders how stacks go through stubs. They can go without. */
static void publish(const struct fathom_pool_calls *calls,
		    const struct fathom_trampoline_pool *pool)
{
	const size_t cap = MOST_RULES * (calls->n + 2);
	uint8_t *bytes = malloc(2 * cap);
	struct fathom_out o = { .at = bytes, .cap = cap };
	struct fathom_out rules = { .at = bytes + cap, .cap = cap };
	struct fathom_jit_unwind rule = { .size = sizeof rule,
					  .kind = FATHOM_JIT_EH_FRAME,
					  .eh_frame = bytes };

	if (!bytes)
		return;
	write_frames(calls, pool->avma, &rules, &o);
	rule.eh_frame_size = o.n;
	(void)fathom_trampoline_pool_publish(pool, 2 * LEAD_SIZE, calls->n * STUB_SIZE, &rule,
					     false);
	free(bytes);
}

fathom_err fathom_call_pool_make(struct fathom_pool_calls *calls, struct fathom_errinfo *reterr)
{
	const uint64_t page = fathom_page_size();
	const uint64_t first = calls->n ? calls->items[0].site : 0;
	const struct fathom_near_want want = {
		.low = first,
		.high = first,
		.reach = FATHOM_X86_REACH,
		.size = (pool_size(calls) + page - 1) / page * page,
	};
	struct fathom_trampoline_pool pool = { 0 };
	uint8_t *memory;
	uint64_t avma;

	if (calls->n)
		pool = fathom_trampoline_pool_map_own(&want, PROT_READ | PROT_WRITE);
	if (!pool.avma)
		return FATHOM_OK;
	memory = (uint8_t *)(uintptr_t)pool.avma;
	avma = pool.avma + 2 * LEAD_SIZE;
	fathom_x86_put_far_jump((uintptr_t)fathom_trace_call_before, memory);
	fathom_x86_put_far_jump((uintptr_t)fathom_trace_call_behind, memory + LEAD_SIZE);
	for (size_t i = 0; i < calls->n; i++, avma += STUB_SIZE)
		if (put_stub(&calls->items[i], pool.avma, avma, memory + (avma - pool.avma)))
			calls->items[i].stub = avma;
	FATHOM_TRY(fathom_trampoline_pool_seal(&pool, reterr));
	publish(calls, &pool);
	return FATHOM_OK;
}
