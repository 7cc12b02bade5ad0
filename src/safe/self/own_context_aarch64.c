/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "safe/base/peek.h"
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

/* A load from the address of its own instruction could read it. */
bool fathom_own_context_cannot_fetch(const void *context)
{
	const mcontext_t *m = &((const ucontext_t *)context)->uc_mcontext;

	return m->fault_address && m->fault_address == m->pc;
}

enum fathom_access fathom_own_context_access(const void *context)
{
	return fathom_own_context_cannot_fetch(context) ? FATHOM_ACCESS_EXECUTE
							: FATHOM_ACCESS_UNKNOWN;
}

/* Start of the kernel's signal frame. */
struct frame {
	siginfo_t info;
	ucontext_t context;
};

bool fathom_own_frame_cannot_fetch(uintptr_t sp, uint64_t pc)
{
	const uintptr_t at = sp + offsetof(struct frame, context.uc_mcontext);
	uint64_t fault;
	uint64_t now;

	return fathom_peek(at + offsetof(mcontext_t, fault_address), &fault, sizeof fault) ==
		       sizeof fault &&
	       fathom_peek(at + offsetof(mcontext_t, pc), &now, sizeof now) == sizeof now &&
	       fault && fault == now && now == pc;
}

uintptr_t fathom_own_strip(uintptr_t pc)
{
	register uintptr_t x30 __asm__("x30") = pc;

	/* xpaclri, a hint that does nothing on processors without signatures */
	__asm__("hint #7" : "+r"(x30));
	return x30;
}

uint64_t fathom_own_thread_pointer(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}
