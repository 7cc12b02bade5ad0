/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <elf.h>
#include <ucontext.h>

#include "safe/self/own_context.h"

uint32_t fathom_own_context_machine(void)
{
	return EM_AARCH64;
}

void fathom_own_context(const void *context, struct fathom_registers *ret)
{
	const ucontext_t *c = context;

	ret->machine = EM_AARCH64;
	ret->known = 0;
	for (uint8_t i = 0; i < 31; i++)
		fathom_register_set(ret, i, c->uc_mcontext.regs[i]);
	fathom_register_set(ret, 31, c->uc_mcontext.sp);
	fathom_register_set(ret, 32, c->uc_mcontext.pc);
	ret->pc = c->uc_mcontext.pc;
	ret->sp = c->uc_mcontext.sp;
}

uintptr_t fathom_own_strip(uintptr_t pc)
{
	register uintptr_t x30 __asm__("x30") = pc;

	/* xpaclri, a hint that does nothing on processors without signatures */
	__asm__("hint #7" : "+r"(x30));
	return x30;
}
