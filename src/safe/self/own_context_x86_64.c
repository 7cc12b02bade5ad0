/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <elf.h>
#include <stddef.h>
#include <ucontext.h>

#include "safe/base/peek.h"
#include "safe/self/own_context.h"

uint32_t fathom_own_context_machine(void)
{
	return EM_X86_64;
}

void fathom_own_context(const void *context, struct fathom_registers *ret)
{
	/* By DWARF number (x86-64 psABI, figure 3.36). */
	static const uint8_t order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					 REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					 REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
	const ucontext_t *c = context;

	ret->machine = EM_X86_64;
	ret->known = 0;
	for (uint8_t i = 0; i < sizeof order; i++)
		fathom_register_set(ret, i, (uint64_t)c->uc_mcontext.gregs[order[i]]);
	ret->pc = ret->value[16];
	ret->sp = ret->value[7];
}

#define PAGE_FAULT        14   /* number of the trap */
#define INSTRUCTION_FETCH 0x10 /* in its error code (Intel SDM, volume 3, 4.7) */
#define WRITE             0x2

static bool cannot_fetch(const greg_t *r)
{
	return r[REG_TRAPNO] == PAGE_FAULT && r[REG_ERR] & INSTRUCTION_FETCH &&
	       r[REG_CR2] == r[REG_RIP];
}

bool fathom_own_context_cannot_fetch(const void *context)
{
	return cannot_fetch(((const ucontext_t *)context)->uc_mcontext.gregs);
}

enum fathom_access fathom_own_context_access(const void *context)
{
	const greg_t *r = ((const ucontext_t *)context)->uc_mcontext.gregs;

	if (r[REG_TRAPNO] != PAGE_FAULT)
		return FATHOM_ACCESS_UNKNOWN;
	if (r[REG_ERR] & INSTRUCTION_FETCH)
		return FATHOM_ACCESS_EXECUTE;
	return r[REG_ERR] & WRITE ? FATHOM_ACCESS_WRITE : FATHOM_ACCESS_READ;
}

bool fathom_own_frame_cannot_fetch(uintptr_t sp, uint64_t pc)
{
	gregset_t r;

	return fathom_peek(sp + offsetof(ucontext_t, uc_mcontext.gregs), &r, sizeof r) ==
		       sizeof r &&
	       (uint64_t)r[REG_RIP] == pc && cannot_fetch(r);
}

uintptr_t fathom_own_strip(uintptr_t pc)
{
	return pc;
}

uint64_t fathom_own_thread_pointer(void)
{
	uint64_t tp;

	/* x86-64 psABI, 3.4.6: the word at %fs:0 is the address of itself. */
	__asm__("movq %%fs:0, %0" : "=r"(tp));
	return tp;
}
