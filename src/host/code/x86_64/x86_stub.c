/* SPDX-License-Identifier: MIT */
#include "host/code/x86_64/x86_stub.h"

#define RED_ZONE 128

static const uint8_t enter[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 };
static const uint8_t leave[] = { 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0 };

_Static_assert(sizeof enter + FATHOM_X86_BRANCH_SIZE + sizeof leave == FATHOM_X86_HOOK_CALL_SIZE,
	       "of the header");

const uint64_t fathom_native_reach = FATHOM_X86_REACH;

const struct fathom_stub_registers fathom_native_registers = { .sp = 7, .pc = 16 };

void fathom_native_put_far_jump(uint64_t to, uint8_t bytes[FATHOM_NATIVE_FAR_SIZE])
{
	fathom_x86_put_far_jump(to, bytes);
}

bool fathom_x86_put_hook_call(uint64_t avma, uint64_t hook,
			      uint8_t bytes[FATHOM_X86_HOOK_CALL_SIZE])
{
	memcpy(bytes, enter, sizeof enter);
	memcpy(bytes + sizeof enter + FATHOM_X86_BRANCH_SIZE, leave, sizeof leave);
	return fathom_x86_put_call(avma + sizeof enter, hook, bytes + sizeof enter);
}

void fathom_x86_describe_hook_call(struct fathom_stub_cfi *c)
{
	fathom_stub_cfi_advance(c, sizeof enter);
	fathom_stub_cfi_frame(c, RED_ZONE);
	fathom_stub_cfi_advance(c, FATHOM_X86_BRANCH_SIZE + sizeof leave);
	fathom_stub_cfi_frame(c, 0);
}
