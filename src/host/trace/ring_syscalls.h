/* SPDX-License-Identifier: MIT */
/*
 * System calls that the runtime has recorded in a ring (safe/trace/syscall_ring.h), as they are
 * read.
 */
#ifndef FATHOM_TRACE_RING_SYSCALLS_H
#define FATHOM_TRACE_RING_SYSCALLS_H

#include "host/base/array.h"
#include "host/syscalls/syscall_format.h"
#include "host/trace/rings.h"
#include "safe/trace/syscall_ring.h"

/* Bytes of the record of a call, of which what the hook has captured is a part. */
#define FATHOM_RING_SYSCALL_BYTES (FATHOM_TRACE_SYSCALL_BYTES * 2 + 512)

/* A call that has begun. */
struct fathom_ring_syscall {
	uint64_t begin; /* number of its first record */
	uint64_t ticks;
	uint64_t ns; /* when, as the reader has it */
	uint64_t sp;
	bool nests;  /* other calls may be made before it returns, by handlers of signals */
	bool is_end; /* it ends its thread */
	struct fathom_posted_syscall *call;
};

struct fathom_ring_syscalls {
	FATHOM_ARRAY_OF(struct fathom_ring_syscall);
};

void fathom_ring_syscalls_deinit(struct fathom_ring_syscalls *calls);

/* Returns how many records the event has that begins with record @number of @records. */
uint64_t fathom_ring_syscall_records(const struct fathom_trace_record *records, uint64_t number);

/*
 * Reads the event before a call, which begins with record @number of @records; false if it is none,
 * or without memory. ret->call is to be freed.
 */
bool fathom_ring_syscall_read(const struct fathom_trace_record *records, uint64_t number,
			      struct fathom_ring_syscall *ret);

/*
 * Takes a call out of @calls that was left by longjmp(), as the event that begins with record
 * @number shows: the latest one, if the event is before a call at the same place of the stack, or
 * after an earlier call. False if there is none. ret->call is to be freed.
 */
bool fathom_ring_syscalls_left(struct fathom_ring_syscalls *calls,
			       const struct fathom_trace_record *records, uint64_t number,
			       struct fathom_ring_syscall *ret);

/*
 * Takes the call that the event after it reports, which begins with record @number, out of
 * @calls, with its result; those that were begun since are forgotten: they were left by longjmp().
 * False if it is not known.
 */
bool fathom_ring_syscalls_end(struct fathom_ring_syscalls *calls,
			      const struct fathom_trace_record *records, uint64_t number,
			      struct fathom_ring_syscall *ret);
/* Adds to @call what is not in the program's memory, but in the system's. */
void fathom_ring_syscall_complete(struct fathom_ring_syscall *call,
				  const struct fathom_syscall_options *options);
/* Forgets the call whose first record is @begin. */
void fathom_ring_syscalls_forget(struct fathom_ring_syscalls *calls, uint64_t begin);

#endif
