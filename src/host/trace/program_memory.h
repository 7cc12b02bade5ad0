/* SPDX-License-Identifier: MIT */
/*
 * The memory that a traced program shares with its reader: its rings; and by what it knows that the
 * reader lives.
 */
#ifndef FATHOM_TRACE_PROGRAM_MEMORY_H
#define FATHOM_TRACE_PROGRAM_MEMORY_H

#include <pthread.h>
#include <stdbool.h>

#include "safe/trace/ring.h"

struct fathom_program {
	struct fathom_trace_head *head; /* our mapping of what is shared */
	uint64_t size;                  /* bytes of it */
	uint64_t rings_off;             /* of the first ring's records in it */
	uint32_t n_rings;
	uint64_t shared;  /* avma of it in the program */
	uint64_t image;   /* avma of the image */
	uint64_t process; /* avma of struct fathom_trace_process */
	uint64_t threads; /* avma of the threads' blocks */
	uint32_t number;
	bool is_fixed;       /* the runtime is where calls can be rewritten to lead to it */
	uint32_t references; /* processes and rings */
	int32_t first;       /* of each thread's block */
	uint64_t lost; /* events of threads without a ring that were told to be; the reader's */
	struct fathom_liveness *liveness;
};

/*
 * By which programs learn that we live: a list that the kernel walks over when the thread that
 * called fathom_liveness_init() ends. It must not use robust mutexes.
 */
struct fathom_liveness {
	struct fathom_robust {
		struct fathom_robust *next;
	} first;
	long futex_offset;
	struct fathom_robust *pending;
	pthread_mutex_t lock;
};

/* Begins the list of the calling thread. */
void fathom_liveness_init(struct fathom_liveness *l);
/* The last program must have been released. One that was never begun is all zero. */
void fathom_liveness_deinit(struct fathom_liveness *l);

/* Lets the program know that we live: its memory is mapped here, after a page of our own. */
void fathom_program_hold(struct fathom_program *pr, struct fathom_liveness *l);
/* Lets it know that nobody reads any more. */
void fathom_program_unwatch(struct fathom_program *pr);
/* Unmaps memory of @size bytes that is mapped after a page of our own. */
void fathom_program_unmap_ours(void *ours, uint64_t size);

/* Returns the records of ring @number. */
struct fathom_trace_record *fathom_program_records(const struct fathom_program *pr,
						   uint64_t number);

struct fathom_program *fathom_program_acquire(struct fathom_program *program);
void fathom_program_release(struct fathom_program *program);

#endif
