/* SPDX-License-Identifier: MIT */
/*
 * Follows a program, its threads and its children by ptrace(2): gives each thread its ring before
 * it runs, puts the runtime into each program before its first instruction, and posts what happens.
 */
#ifndef FATHOM_TRACE_FOLLOWING_H
#define FATHOM_TRACE_FOLLOWING_H

#include "host/trace/load.h"
#include "host/trace/rings.h"

/* A thread. */
struct fathom_follow_task {
	pid_t tid;
	uint32_t ring; /* FATHOM_NO_RING: none */
	struct fathom_traced *process;
};

/* What waitpid(2) has said of a thread, to be handled later. */
struct fathom_follow_event {
	pid_t tid;
	int status;
};

struct fathom_follow {
	struct fathom_loader loader;
	struct fathom_rings *rings;
	struct fathom_lifeline lifeline;
	struct fathom_tracee waiter; /* of which only the notes of waits are used */
	/* Of processes, and of what is loaded: the reader answers what programs ask, too. */
	pthread_mutex_t lock;
	struct {
		FATHOM_ARRAY_OF(struct fathom_traced *);
	} processes;
	struct {
		FATHOM_ARRAY_OF(struct fathom_follow_task);
	} tasks;
	struct {
		FATHOM_ARRAY_OF(struct fathom_follow_event);
	} events; /* that were noted */
	uint32_t n_numbers;
	uint32_t flags; /* FATHOM_TRACE_ */
	uint64_t wait_ticks;
	bool has_run; /* exec() has succeeded */
	pid_t first;
	int status; /* of the first process */
};

/*
 * Runs @argv and follows it until all has ended; the calling thread traces. FATHOM_E_NOT_FOUND,
 * FATHOM_E_OS, FATHOM_E_MEMORY.
 */
fathom_err fathom_follow_run(struct fathom_follow *f, char *const *argv,
			     struct fathom_errinfo *reterr);

/* Answers what programs ask. May be called by another thread. */
void fathom_follow_answer(struct fathom_follow *f);

#endif
