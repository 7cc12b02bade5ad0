/* SPDX-License-Identifier: MIT */
/*
 * The threads that are recorded, and what the event has counted for each: the weights of its
 * samples and, at its end, what no sample stands for, so that all weights together are the count.
 */
#ifndef FATHOM_PROFILE_RECORD_THREADS_H
#define FATHOM_PROFILE_RECORD_THREADS_H

#include "host/profile/perf_event.h"
#include "host/profile/record_space.h"

/* The count of a thread on one processor, as far as it was written. */
struct fathom_record_count {
	uint32_t ring;
	uint32_t gaps;    /* of the ring, at the last sample */
	uint64_t last;    /* count of the last sample */
	uint64_t written; /* weights */
};

struct fathom_record_thread {
	int32_t pid;
	int32_t tid;
	int32_t parent;
	char name[16];
	uint32_t number; /* in the profile; UINT32_MAX: not written under this name yet */
	uint64_t ended;  /* ns; 0: it has not */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_count);
	} counts;
};

/* A process: it is known as long as one of its threads is. */
struct fathom_record_process {
	int32_t pid;
	uint32_t n_threads;
	struct fathom_record_space *space; /* NULL: none yet */
};

struct fathom_record_threads {
	struct fathom *session;
	struct fathom_key_map by_tid;
	struct fathom_key_map by_pid;
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_thread);
	} threads;
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_process);
	} processes;
	struct fathom_u32_array free_threads;
	struct fathom_u32_array free_processes;
	struct fathom_u32_array ended; /* in the order of their ends */
	size_t n_forgotten;            /* of them, from the first on */
	uint32_t n_seen;               /* threads in all */
};

/* Returns thread @tid of @pid, which is made if it is new; NULL without memory. */
struct fathom_record_thread *fathom_record_thread_at(struct fathom_record_threads *t, int32_t pid,
						     int32_t tid);

/* Takes what FORK, COMM, EXIT and MMAP2 tell. FATHOM_E_MEMORY. */
fathom_err fathom_record_threads_take(struct fathom_record_threads *t,
				      const struct fathom_perf_record *r);

/* Returns the space of process @pid; NULL without memory. */
struct fathom_record_space *fathom_record_threads_space(struct fathom_record_threads *t,
							int32_t pid);

/* Returns the count of @thread on ring number @ring; NULL without memory. */
struct fathom_record_count *fathom_record_count_at(struct fathom_record_thread *thread,
						   uint32_t ring);

/* Forgets threads that had ended before @ns. */
void fathom_record_threads_forget(struct fathom_record_threads *t, uint64_t ns);

void fathom_record_threads_deinit(struct fathom_record_threads *t);

#endif
