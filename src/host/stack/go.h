/* SPDX-License-Identifier: MIT */
/*
 * Functions of Go's runtime that are the ends of stacks, or that change from one stack to another:
 * its linker's call frame information does not say so. They are known by their names, so a program
 * without a symbol table has none (Go 1.19 to 1.25, runtime/asm_amd64.s, sys_linux_amd64.s).
 */
#ifndef FATHOM_STACK_GO_H
#define FATHOM_STACK_GO_H

#include "host/module/module.h"
#include "safe/unwind/step.h"

enum fathom_go_role {
	FATHOM_GO_NONE,
	FATHOM_GO_END,   /* nothing has called it, or it has left its caller's stack */
	FATHOM_GO_FIRST, /* nothing has called it, unless the stack goes on */
	FATHOM_GO_TO_C   /* asmcgocall: has changed to the stack on which it calls C */
};

/* Returns what the function at @svma of @module is. */
enum fathom_go_role fathom_go_role(struct fathom_module *module, uint64_t svma);

/*
 * Makes @r, of a frame of asmcgocall after its call, the registers of its caller, on the stack
 * that it has left: it notes beside its call where that is. Returns false if it cannot be read. The
 * caller checks the return address. Only on x86-64.
 */
bool fathom_go_leave_c(const struct fathom_unwind_arch *arch, const struct fathom_step_memory *m,
		       bool is_newer, struct fathom_registers *r);

#endif
