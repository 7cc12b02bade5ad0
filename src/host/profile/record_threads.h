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

/* A sample of a thread that leaves its processor. */
struct fathom_record_leave {
	uint64_t ns; /* monotonic; 0: there is none */
	struct fathom_record_stack stack;
	uint32_t reason; /* a location */
	bool is_disk;    /* it waits for a disk */
};

/* A wait that goes on. */
struct fathom_record_wait {
	uint64_t began;   /* monotonic; 0: the thread has a processor */
	uint64_t written; /* up to here it was written */
	uint64_t read;    /* when its stack was read */
	struct fathom_record_stack stack;
	struct fathom_record_leave leave; /* the sample with which it began */
	struct fathom_record_stack left;  /* of it, with the reason */
	uint32_t bare;                    /* the node of stack, without what it waits for */
	uint64_t woken;                   /* monotonic; 0: it was not, or nobody says so */
	uint32_t waker;                   /* as in samples */
	uint8_t part;                     /* enum fathom_profile_part */
	bool is_read;                     /* it has a stack */
	bool is_assumed;                  /* nothing has said yet that the thread waits */
};

/* A thread that is looked at from outside. Times are in ns, of the last look. */
struct fathom_record_polled {
	uint64_t looked; /* monotonic; 0: never */
	uint64_t ran;
	uint64_t queued; /* for a processor */
	int64_t slept;   /* and not written yet; what was written too much is below 0 */
	uint64_t ready;  /* likewise, for a processor */
	uint64_t told;   /* when they were written; monotonic */
	struct fathom_record_stack stack;
	bool is_seen;  /* it slept there */
	bool is_ready; /* it had a processor, or waited for one */
};

struct fathom_record_thread {
	int32_t pid;
	int32_t tid;
	int32_t parent;
	char name[16];
	uint32_t number; /* in the profile; UINT32_MAX: not written under this name yet */
	uint64_t ended;  /* ns; 0: it has not */
	bool is_kernel;  /* a thread of the kernel */
	struct fathom_record_leave leave; /* what follows says that it has left */
	uint64_t left; /* when its last switch was sampled; monotonic; 0: since then it has left */
	struct fathom_record_wait wait;
	struct fathom_record_polled polled;
	struct fathom_record_stack script; /* of the last look, with frames of its script or none */
	int64_t script_looked;             /* when that was; monotonic; 0: never */
	uint64_t gathered[2];    /* ns of waits of which nothing was seen, and for a processor */
	uint64_t gathered_since; /* monotonic; 0: there are none */
	uint64_t gathered_until; /* likewise: the end of the last one */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_count);
	} counts;
};

/* A process: it is known as long as one of its threads is. */
struct fathom_record_process {
	int32_t pid;
	uint32_t n_threads;
	struct fathom_record_space *space; /* NULL: none yet */
	uint32_t cgroup; /* of the profile, once it was read, or FATHOM_TABLE_NONE */
	bool has_cgroup; /* it was read */
};

struct fathom_record_threads {
	struct fathom *session;
	bool is_past; /* they are of a file: of threads that run now, nothing is read */
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

/*
 * Returns a thread that has the number of an earlier one, which has ended by @ns at the latest;
 * NULL without memory.
 */
struct fathom_record_thread *fathom_record_thread_again(struct fathom_record_threads *t,
							int32_t pid, int32_t tid, uint64_t ns);

/* Returns thread @tid if it is known, else NULL. */
struct fathom_record_thread *fathom_record_thread_known(struct fathom_record_threads *t,
							int32_t tid);

/* Returns thread @tid of @pid if it is known, else NULL. */
struct fathom_record_thread *fathom_record_thread_find(struct fathom_record_threads *t, int32_t pid,
						       int32_t tid);

/* Returns process @pid if it is known, else NULL. */
struct fathom_record_process *fathom_record_process_known(struct fathom_record_threads *t,
							  int32_t pid);

/* Takes what FORK, COMM, EXIT and MMAP2 tell. FATHOM_E_MEMORY. */
fathom_err fathom_record_threads_take(struct fathom_record_threads *t,
				      const struct fathom_perf_record *r);

/* Notes that all threads of process @pid have ended, by @ns at the latest. FATHOM_E_MEMORY. */
fathom_err fathom_record_threads_end(struct fathom_record_threads *t, int32_t pid, uint64_t ns);

/* Returns the space of process @pid; NULL without memory. */
struct fathom_record_space *fathom_record_threads_space(struct fathom_record_threads *t,
							int32_t pid);

/* Returns a space that is of process @pid alone: not its parent's. NULL without memory. */
struct fathom_record_space *fathom_record_threads_own_space(struct fathom_record_threads *t,
							    int32_t pid);

/* Returns the count of @thread on ring number @ring; NULL without memory. */
struct fathom_record_count *fathom_record_count_at(struct fathom_record_thread *thread,
						   uint32_t ring);

/*
 * Closes the address spaces of processes that were used longest ago, until no more than @most are
 * open. They are opened again when they are used.
 */
void fathom_record_threads_close_spaces(struct fathom_record_threads *t, size_t most);

/* Forgets threads that had ended before @ns. */
void fathom_record_threads_forget(struct fathom_record_threads *t, uint64_t ns);

void fathom_record_threads_deinit(struct fathom_record_threads *t);

#endif
