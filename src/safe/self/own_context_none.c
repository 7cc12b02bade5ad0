/* SPDX-License-Identifier: MIT */
#include <elf.h>

#include "safe/self/own_context.h"

uint32_t fathom_own_context_machine(void)
{
	return EM_NONE;
}

void fathom_own_context(const void *context, struct fathom_registers *ret)
{
	(void)context;
	*ret = (struct fathom_registers){ .machine = EM_NONE };
}

bool fathom_own_context_cannot_fetch(const void *context)
{
	(void)context;
	return false;
}

enum fathom_access fathom_own_context_access(const void *context)
{
	(void)context;
	return FATHOM_ACCESS_UNKNOWN;
}

bool fathom_own_frame_cannot_fetch(uintptr_t sp, uint64_t pc)
{
	(void)sp;
	(void)pc;
	return false;
}

uintptr_t fathom_own_strip(uintptr_t pc)
{
	return pc;
}

uint64_t fathom_own_thread_pointer(void)
{
	return 0;
}
