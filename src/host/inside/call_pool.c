/* SPDX-License-Identifier: MIT */
#include "host/inside/call_pool.h"

#include <string.h>
#include <sys/mman.h>

#include "host/base/page.h"
#include "host/code/x86_64/stub.h"
#include "host/sites/kernel_calls.h"
#include "host/trampoline/pool.h"
#include "trace/call_linked.h"

/* Bytes of the code that leads to a hook, and of a stub. */
enum { LEAD_SIZE = 16, STUB_SIZE = 80 };

_Static_assert(FATHOM_KERNEL_MOVED_MAX + 2 * FATHOM_X86_HOOK_CALL_SIZE + FATHOM_X86_SYSCALL_SIZE +
			       FATHOM_X86_BRANCH_SIZE <=
		       STUB_SIZE,
	       "a stub has room");

/* Writes the stub of @c, which is to be at @avma, to @to; false: something is too far. */
static bool put_stub(const struct fathom_pool_call *c, uint64_t pool, uint64_t avma, uint8_t *to)
{
	size_t at = c->call.moved_size;

	memcpy(to, c->moved, at);
	if (!fathom_kernel_call_move(&c->call, avma - (c->site - at), to) ||
	    !fathom_x86_put_hook_call(avma + at, pool, to + at))
		return false;
	at += FATHOM_X86_HOOK_CALL_SIZE;
	memcpy(to + at, fathom_x86_syscall, sizeof fathom_x86_syscall);
	at += sizeof fathom_x86_syscall;
	if (!fathom_x86_put_hook_call(avma + at, pool + LEAD_SIZE, to + at))
		return false;
	at += FATHOM_X86_HOOK_CALL_SIZE;
	return fathom_x86_put_jump(avma + at, c->site + sizeof fathom_x86_syscall, to + at);
}

static uint64_t pool_size(const struct fathom_pool_calls *calls)
{
	return 2 * LEAD_SIZE + calls->n * STUB_SIZE;
}

/*
 * Describes the stub of @c: its caller is the function that has the instruction, which goes on
 * behind that with all registers.
 */
static void describe_stub(struct fathom_stub_cfi *cfi, const struct fathom_pool_call *c)
{
	const size_t end = c->call.moved_size + 2 * FATHOM_X86_HOOK_CALL_SIZE;

	fathom_stub_cfi_caller(cfi, c->site + FATHOM_X86_SYSCALL_SIZE);
	fathom_stub_cfi_advance(cfi, c->call.moved_size);
	fathom_x86_describe_hook_call(cfi);
	fathom_stub_cfi_advance(cfi, FATHOM_X86_SYSCALL_SIZE);
	fathom_x86_describe_hook_call(cfi);
	fathom_stub_cfi_advance(cfi, STUB_SIZE - end - FATHOM_X86_SYSCALL_SIZE);
}

/* Tells unwinders how stacks go through stubs. */
static void publish(const struct fathom_pool_calls *calls,
		    const struct fathom_trampoline_pool *pool)
{
	const uint64_t size = calls->n * STUB_SIZE;
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi cfi;

	fathom_stub_cfi_init(&cfi, &fathom_x86_stub_registers, FATHOM_X86_PC, calls->n);
	for (size_t i = 0; i < calls->n; i++)
		describe_stub(&cfi, &calls->items[i]);
	rule = fathom_stub_cfi_end(&cfi, pool->avma + 2 * LEAD_SIZE, size);
	(void)fathom_trampoline_pool_publish(pool, 2 * LEAD_SIZE, size, &rule, false);
	fathom_stub_cfi_deinit(&cfi);
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
