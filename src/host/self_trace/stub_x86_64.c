/* SPDX-License-Identifier: MIT */
/*
 * Stubs of sites (src/trace/linked.h), and of system calls (src/trace/syscall_linked_x86_64.S):
 * host/code/x86_64/x86_stub.h draws them.
 */
#include "host/code/x86_64/x86_stub.h"
#include "host/self_trace/stub_sets.h"

enum { CALL_STUB_SIZE = 80 };

_Static_assert(FATHOM_X86_AROUND_SIZE(FATHOM_SYSCALL_MOVED_MAX) <= CALL_STUB_SIZE,
	       "a stub has room");

uint32_t fathom_stub_size(const struct fathom_stub_set *set)
{
	return set->second ? (uint32_t)CALL_STUB_SIZE : FATHOM_X86_SITE_STUB_SIZE;
}

/* Where the hook is near, the stub calls it itself. */
static bool write_site(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to)
{
	uint8_t jump[FATHOM_X86_BRANCH_SIZE];

	return fathom_x86_put_rel32(s->from, avma, jump) &&
	       (fathom_x86_put_site_stub(avma, set->hook, s->back, to) ||
		fathom_x86_put_site_stub(avma, set->code.avma, s->back, to));
}

static bool write_call(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to)
{
	const size_t moved = s->call->moved_size;
	const uint64_t code = set->code.avma;

	memcpy(to, (const void *)(uintptr_t)(s->site - moved), moved);
	return fathom_syscall_insn_move(s->call, avma - (s->site - moved), to) &&
	       fathom_x86_put_around_syscall(avma + moved, code, code + FATHOM_NATIVE_FAR_SIZE,
					     s->back, to + moved);
}

bool fathom_stub_write(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to)
{
	return set->second ? write_call(set, s, avma, to) : write_site(set, s, avma, to);
}

/* Of system calls: one rule is that of all sites (stub_sets.c). */
void fathom_stub_describe(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
			  struct fathom_stub_cfi *cfi)
{
	const uint8_t moved = s->call->moved_size;

	(void)set;
	fathom_stub_cfi_caller(cfi, s->back);
	fathom_x86_describe_around_syscall(cfi, moved);
	fathom_stub_cfi_advance(
		cfi, CALL_STUB_SIZE - (FATHOM_X86_AROUND_SIZE(moved) - FATHOM_X86_BRANCH_SIZE));
}
