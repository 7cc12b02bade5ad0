/* SPDX-License-Identifier: MIT */
/*
 * The parts of stubs of x86-64: calls of a hook from where functions may use the red zone.
 *
 *	                        stack, from where the stub begins
 *	lea -128(%rsp), %rsp	128 bytes of the red zone
 *	call hook		in the hook: the return address
 *	lea 128(%rsp), %rsp	nothing
 *
 * No flags change, and no register but the stack pointer.
 */
#ifndef FATHOM_CODE_X86_STUB_H
#define FATHOM_CODE_X86_STUB_H

#include "host/code/native.h"
#include "host/code/x86_64/x86_instructions.h"

/* Bytes of the call of a hook with what is before and behind it. */
#define FATHOM_X86_HOOK_CALL_SIZE 18

/* Writes it, which is to be at @avma; returns false if @hook is too far. */
bool fathom_x86_put_hook_call(uint64_t avma, uint64_t hook,
			      uint8_t bytes[FATHOM_X86_HOOK_CALL_SIZE]);

/* Appends its rules. */
void fathom_x86_describe_hook_call(struct fathom_stub_cfi *c);

#endif
