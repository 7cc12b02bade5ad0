/* SPDX-License-Identifier: MIT */
/*
 * The general registers of a stopped thread, as PTRACE_GETREGSET has them for NT_PRSTATUS: struct
 * user_regs_struct of <sys/user.h> (x86-64, i386), struct user_pt_regs of <asm/ptrace.h> (aarch64).
 * The kernel gives those of the mode that the thread runs in.
 */
#ifndef FATHOM_STACK_REGSET_H
#define FATHOM_STACK_REGSET_H

#include "host/stack/capture.h"

struct fathom_regset {
	uint8_t bytes[288];
	size_t size;
};

/* Reads the registers of stopped thread @tid, which this thread traces; false with errno. */
bool fathom_regset_get(int32_t tid, struct fathom_regset *ret);
bool fathom_regset_set(int32_t tid, const struct fathom_regset *r);

/*
 * Takes the registers into @copy. On x86 also the system call that the thread was in, on aarch64
 * what @copy says of it stays if the thread is still there. Returns false if the machine is
 * unknown.
 */
bool fathom_regset_take(const struct fathom_regset *r, struct fathom_thread_copy *copy);

/* Returns whether the system call of @copy, taken from @r, has just ended with EINTR. */
bool fathom_regset_is_interrupted(const struct fathom_regset *r,
				  const struct fathom_thread_copy *copy);

/* Changes @r so that the thread makes the interrupted call of @copy once more. */
void fathom_regset_restart(struct fathom_regset *r, const struct fathom_thread_copy *copy);

#endif
