/* SPDX-License-Identifier: MIT */
/*
 * A way back for a stopped thread that makes system calls for us: should this process be killed
 * meanwhile, the thread ends the call and goes on where it was, by itself.
 *
 * The frame of a signal handler that "returns" (rt_sigreturn(2)) is laid down in free memory; a
 * call ends in a return to the code that libc has after handlers.
 */
#ifndef FATHOM_TRACER_RECOVERY_FRAME_H
#define FATHOM_TRACER_RECOVERY_FRAME_H

#include "host/tracer/tracee.h"

/* Code of the program that is used for it. 0: it was not found. */
struct fathom_recovery_code {
	uint64_t call;    /* avma of `syscall; ret` */
	uint64_t restore; /* avma of libc's call of rt_sigreturn */
};

/* Looks for such code in @size bytes at @bytes, which the program has at @avma. */
void fathom_recovery_frame_look(struct fathom_recovery_code *code, const uint8_t *bytes,
				size_t size, uint64_t avma);

/* Bytes that a way back takes at most. */
#define FATHOM_RECOVERY_FRAME_SIZE UINT64_C(8192)

/*
 * Makes a way back for thread @tid in free memory from @low to @high, and has calls take it:
 * t->syscall_avma and t->call_sp are set. False if there is no room, or no such code; then a killed
 * process would leave the thread in the middle of a call.
 */
bool fathom_recovery_frame_make(struct fathom_tracee *t, pid_t tid,
				const struct fathom_recovery_code *code, uint64_t low,
				uint64_t high);

#endif
