/* SPDX-License-Identifier: MIT */
/*
 * The general registers of a stopped thread, as PTRACE_GETREGSET has them for NT_PRSTATUS: struct
 * user_regs_struct of <sys/user.h> (x86-64, i386), struct user_pt_regs of <asm/ptrace.h> (aarch64).
 * The kernel gives those of the mode that the thread runs in.
 */
#ifndef FATHOM_TRACER_REGSET_H
#define FATHOM_TRACER_REGSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/tracer/blocking_calls.h"

struct fathom_regset {
	uint8_t bytes[288];
	size_t size;
};

/* Reads the registers of stopped thread @tid, which this thread traces; false with errno. */
bool fathom_regset_get(pid_t tid, struct fathom_regset *ret);
bool fathom_regset_set(pid_t tid, const struct fathom_regset *r);

/* A system call, as far as a set of registers tells it. */
struct fathom_regset_call {
	uint16_t machine; /* EM_ of the program; 0: unknown */
	uint8_t size;     /* bytes of the instruction that makes the call */
	bool has_number;  /* a register has the number, and tells whether there is a call (x86) */
	int64_t number;   /* negative: the thread is in no call */
	int64_t result;   /* as the kernel has set it up to now */
	uint64_t arguments[6];
	uint64_t pc;
	uint64_t sp;
};

struct fathom_regset_call fathom_regset_call(const struct fathom_regset *r);

/*
 * Resumes call @c of stopped thread @tid, whose registers are @r, from its beginning, if the stop
 * has ended it with EINTR and it has no timeout. Returns whether it does. Elsewhere than on x86 the
 * caller makes sure that no handler of a signal is due.
 */
bool fathom_regset_restart(pid_t tid, struct fathom_regset *r,
			   const struct fathom_blocking_call *c);

/*
 * Does so for stopped thread @tid of process @pid, where the registers tell in which call it is.
 * @tasks is the folder of its threads.
 */
void fathom_regset_repair(pid_t pid, pid_t tid, int tasks, const struct fathom_reader *memory);

#endif
