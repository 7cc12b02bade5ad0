/* SPDX-License-Identifier: MIT */
#include "host/code/aarch64/stub.h"

const struct fathom_stub_registers fathom_arm_stub_registers = { .sp = 31,
								 .saved = { 16, FATHOM_ARM_LINK },
								 .n_saved = 2 };

bool fathom_arm_put_hook_call(uint64_t avma, uint64_t hook, uint32_t frame,
			      uint32_t words[FATHOM_ARM_HOOK_CALL_WORDS])
{
	words[0] = fathom_arm_push(frame);
	words[2] = fathom_arm_pop(frame);
	return fathom_arm_call(avma + FATHOM_ARM_SIZE, hook, &words[1]);
}

void fathom_arm_describe_hook_call(struct fathom_stub_cfi *c, uint32_t frame)
{
	fathom_stub_cfi_advance(c, FATHOM_ARM_SIZE);
	fathom_stub_cfi_frame(c, frame);
	fathom_stub_cfi_advance(c, 2 * FATHOM_ARM_SIZE);
	fathom_stub_cfi_frame(c, 0);
}
