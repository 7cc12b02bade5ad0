/* SPDX-License-Identifier: MIT */
#include "host/hook/dispatch.h"

/* DWARF numbers of registers. */
enum { X30 = 30, SP = 31 };

/* Bytes of q0 to q31. */
#define VECTORS_SIZE 512

/* Layout of the stack in dispatch_aarch64.S. */
struct fathom_hook_frame {
	uint64_t registers[FATHOM_HOOK_REGISTERS]; /* as they were at the site */
};

FATHOM_IN_HOOK void fathom_hook_describe(struct fathom_hook_frame *f,
					 const struct fathom_hooked_site *s,
					 struct fathom_hook_call *call)
{
	(void)s;
	call->stack = f->registers[SP];
	call->caller = f->registers[X30];
	call->registers = f->registers;
}

void fathom_hook_vectors(struct fathom_hooked_site *s)
{
	s->vectors_mask = 0;
	s->is_compacted = 0;
	s->vectors_size = VECTORS_SIZE;
}
