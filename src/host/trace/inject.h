/* SPDX-License-Identifier: MIT */
/*
 * Puts the runtime (src/trace) into a program that is stopped behind exec(), before its first
 * instruction: the memory that it shares with us, its code, and what the first thread needs.
 */
#ifndef FATHOM_TRACE_INJECT_H
#define FATHOM_TRACE_INJECT_H

#include "host/tracee/tracee.h"
#include "safe/trace/ring.h"

/* The runtime of one program. */
struct fathom_injected {
	struct fathom_trace_head *head; /* our mapping of what is shared */
	uint64_t size;                  /* bytes of it */
	uint64_t image;                 /* avma of the image */
	uint64_t process;               /* avma of its struct fathom_trace_process */
	uint64_t entry;                 /* avma where a system call stands until the end */
	uint8_t entry_bytes[2];         /* what belongs there */
};

/*
 * @tid, a thread of @t, is stopped where exec() has returned. FATHOM_E_OS says which call the
 * program could not make; FATHOM_E_UNSUPPORTED without rdfsbase.
 */
fathom_err fathom_inject(struct fathom_tracee *t, pid_t tid, uint32_t n_rings,
			 struct fathom_injected *ret, struct fathom_errinfo *reterr);

/* Ends the putting in: the program may run. */
void fathom_inject_end(const struct fathom_injected *in, struct fathom_tracee *t);

/* Unmaps what is shared from our memory. */
void fathom_injected_deinit(struct fathom_injected *in);

/*
 * Returns the avma of a copy of the hook that code from @low to @high can call; 0 if there is no
 * room near it.
 */
uint64_t fathom_inject_hook(struct fathom_injected *in, const struct fathom_tracee *t, pid_t tid,
			    uint64_t low, uint64_t high);

#endif
