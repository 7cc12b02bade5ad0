/* SPDX-License-Identifier: MIT */
/*
 * Stubs of sites (src/trace/linked.h): a call of the hook; a jump back, or a return. Of system
 * calls (src/trace/syscall_linked_x86_64.S): the instructions that were moved; a call of the first
 * hook; the system call; a call of the second one; a jump back.
 */
#include "host/code/x86_64/x86_stub.h"
#include "host/self_trace/stub_pool.h"

enum { SITE_STUB_SIZE = 2 * FATHOM_X86_BRANCH_SIZE, CALL_STUB_SIZE = 80 };

_Static_assert(FATHOM_SYSCALL_MOVED_MAX + 2 * FATHOM_X86_HOOK_CALL_SIZE + FATHOM_X86_SYSCALL_SIZE +
			       FATHOM_X86_BRANCH_SIZE <=
		       CALL_STUB_SIZE,
	       "a stub has room");

uint32_t fathom_stub_size(const struct fathom_stub_pool *pool)
{
	return pool->second ? CALL_STUB_SIZE : SITE_STUB_SIZE;
}

/* Where the hook is near, the stub calls it itself. */
static bool write_site(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to)
{
	uint8_t jump[FATHOM_X86_BRANCH_SIZE];

	if (!fathom_x86_put_rel32(s->from, avma, jump) ||
	    (!fathom_x86_put_call(avma, pool->hook, to) &&
	     !fathom_x86_put_call(avma, pool->code.avma, to)))
		return false;
	avma += FATHOM_X86_BRANCH_SIZE;
	to += FATHOM_X86_BRANCH_SIZE;
	*to = FATHOM_X86_RET;
	return !s->behind || fathom_x86_put_jump(avma, s->behind, to);
}

static bool write_call(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to)
{
	size_t at = s->call->moved_size;

	memcpy(to, (const void *)(uintptr_t)(s->site - at), at);
	if (!fathom_syscall_insn_move(s->call, avma - (s->site - at), to) ||
	    !fathom_x86_put_hook_call(avma + at, pool->code.avma, to + at))
		return false;
	at += FATHOM_X86_HOOK_CALL_SIZE;
	memcpy(to + at, fathom_x86_syscall, sizeof fathom_x86_syscall);
	at += sizeof fathom_x86_syscall;
	if (!fathom_x86_put_hook_call(avma + at, pool->code.avma + FATHOM_NATIVE_FAR_SIZE, to + at))
		return false;
	at += FATHOM_X86_HOOK_CALL_SIZE;
	return fathom_x86_put_jump(avma + at, s->behind, to + at);
}

bool fathom_stub_write(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to)
{
	return pool->second ? write_call(pool, s, avma, to) : write_site(pool, s, avma, to);
}

/* Of system calls: one rule is that of all sites (stub_pool.c). */
void fathom_stub_describe(const struct fathom_stub_pool *pool, const struct fathom_stub_site *s,
			  struct fathom_stub_cfi *cfi)
{
	const uint8_t moved = s->call->moved_size;

	(void)pool;
	fathom_stub_cfi_caller(cfi, s->behind);
	fathom_stub_cfi_advance(cfi, moved);
	fathom_x86_describe_hook_call(cfi);
	fathom_stub_cfi_advance(cfi, FATHOM_X86_SYSCALL_SIZE);
	fathom_x86_describe_hook_call(cfi);
	fathom_stub_cfi_advance(cfi, CALL_STUB_SIZE - (moved + 2 * FATHOM_X86_HOOK_CALL_SIZE +
						       FATHOM_X86_SYSCALL_SIZE));
}
