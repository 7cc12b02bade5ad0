/* SPDX-License-Identifier: MIT */
/*
 * Stubs of sites (src/trace/linked.h): a call of the hook; a branch back. Of system calls
 * (src/trace/syscall_linked.h): a call of the first hook; the system call; one of the second; a
 * branch.
 */
#include "host/code/aarch64/arm_stub.h"
#include "host/self_trace/stub_sets.h"
#include "trace/linked.h"

enum { STUB_SIZE = FATHOM_ARM_SITE_STUB_WORDS * FATHOM_ARM_SIZE, CALL_STUB_SIZE = 2 * STUB_SIZE };

uint32_t fathom_stub_size(const struct fathom_stub_set *set)
{
	return set->second ? CALL_STUB_SIZE : STUB_SIZE;
}

bool fathom_stub_write(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
		       uint64_t avma, uint8_t *to)
{
	const uint64_t second = set->code.avma + FATHOM_NATIVE_FAR_SIZE;
	uint32_t *words = (uint32_t *)(void *)to;
	uint32_t unused;

	if (!fathom_arm_jump(s->site, avma, &unused))
		return false;
	if (!set->second)
		return fathom_arm_put_site_stub(avma, set->code.avma, FATHOM_TRACE_STUB_FRAME,
						s->back, words);
	words[FATHOM_ARM_HOOK_CALL_WORDS] = FATHOM_ARM_SVC;
	return fathom_arm_put_hook_call(avma, set->code.avma, FATHOM_TRACE_STUB_FRAME, words) &&
	       fathom_arm_put_site_stub(avma + STUB_SIZE, second, FATHOM_TRACE_STUB_FRAME, s->back,
					words + FATHOM_ARM_SITE_STUB_WORDS);
}

/* A branch leads anywhere within its reach. */
bool fathom_stub_distance(uint64_t form, uint32_t i, int64_t *ret)
{
	(void)form;
	(void)i;
	(void)ret;
	return false;
}

/* Stubs of sites leave return addresses where they were. */
void fathom_stub_describe(const struct fathom_stub_set *set, const struct fathom_stub_site *s,
			  struct fathom_stub_cfi *cfi)
{
	if (set->second)
		fathom_stub_cfi_caller(cfi, s->back);
	for (uint32_t at = 0; at < fathom_stub_size(set); at += STUB_SIZE) {
		fathom_arm_describe_hook_call(cfi, FATHOM_TRACE_STUB_FRAME);
		fathom_stub_cfi_advance(cfi, FATHOM_ARM_SIZE);
	}
}
