/* SPDX-License-Identifier: MIT */
#include "host/code/aarch64/arm_stub.h"

#include <string.h>

const uint64_t fathom_native_reach = FATHOM_ARM_REACH;

const struct fathom_stub_registers fathom_native_registers = {
	.sp = 31, .pc = 32, .link = 30, .saved = { 16, 30 }, .n_saved = 2
};

void fathom_native_put_far_jump(uint64_t to, uint8_t bytes[FATHOM_NATIVE_FAR_SIZE])
{
	uint32_t words[FATHOM_ARM_FAR_WORDS];

	fathom_arm_put_far_jump(to, words);
	memcpy(bytes, words, sizeof words);
}

bool fathom_arm_put_hook_call(uint64_t avma, uint64_t hook, uint32_t frame,
			      uint32_t words[FATHOM_ARM_HOOK_CALL_WORDS])
{
	words[0] = fathom_arm_push(frame);
	words[2] = fathom_arm_pop(frame);
	return fathom_arm_call(avma + FATHOM_ARM_SIZE, hook, &words[1]);
}

bool fathom_arm_put_site_stub(uint64_t avma, uint64_t hook, uint32_t frame, uint64_t back,
			      uint32_t words[FATHOM_ARM_SITE_STUB_WORDS])
{
	const uint64_t branch = avma + FATHOM_ARM_HOOK_CALL_WORDS * FATHOM_ARM_SIZE;

	return fathom_arm_put_hook_call(avma, hook, frame, words) &&
	       fathom_arm_jump(branch, back, &words[FATHOM_ARM_HOOK_CALL_WORDS]);
}

void fathom_arm_describe_hook_call(struct fathom_stub_cfi *c, uint32_t frame)
{
	fathom_stub_cfi_advance(c, FATHOM_ARM_SIZE);
	fathom_stub_cfi_frame(c, frame);
	fathom_stub_cfi_advance(c, 2 * FATHOM_ARM_SIZE);
	fathom_stub_cfi_frame(c, 0);
}
