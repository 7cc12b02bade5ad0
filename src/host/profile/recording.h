/* SPDX-License-Identifier: MIT */
/* A recording that is under way, which all methods of sampling have in common. */
#ifndef FATHOM_PROFILE_RECORDING_H
#define FATHOM_PROFILE_RECORDING_H

#include "fathom/profile.h"
#include "host/profile/record_waits.h"
#include "host/profile/stack_table.h"

struct fathom_recording;

/* A method of sampling. Functions that fail set no state that free() does not know. */
struct fathom_record_method {
	const char *name;
	uint32_t number;    /* enum fathom_profile_method */
	uint32_t frequency; /* samples a second, unless it is said */
	/*
	 * Prepares to record the program, which is held before exec(), or the processes; sets
	 * r->state and what is known of the event.
	 */
	fathom_err (*begin)(struct fathom_recording *r, struct fathom_errinfo *reterr);
	/* Samples from now on. FATHOM_E_MEMORY. */
	fathom_err (*start)(struct fathom_recording *r);
	/* Waits some milliseconds at most, until there are samples. */
	void (*wait)(struct fathom_recording *r);
	/* Writes the samples; with @is_last all of them, and samples no more. FATHOM_E_MEMORY. */
	fathom_err (*take)(struct fathom_recording *r, bool is_last);
	/* Writes what was counted and not sampled. FATHOM_E_MEMORY. */
	fathom_err (*finish)(struct fathom_recording *r);
	/* Frees r->state, which may be NULL. */
	void (*free)(struct fathom_recording *r);
};

/* Perf events: each thread is interrupted while it runs. */
extern const struct fathom_record_method fathom_record_perf;
/* Threads are looked at from outside, those that have run since the last look. */
extern const struct fathom_record_method fathom_record_poll;

struct fathom_recording {
	struct fathom_record_options options;
	struct fathom_record_result *result;
	struct fathom *session;
	const struct fathom_record_method *method;
	void *state; /* of the method */
	uint32_t frequency;
	bool is_cycles;        /* of the event; else task-clock */
	bool is_kernel_hidden; /* samples in the kernel are not permitted, but counted */
	bool has_waits;        /* they are recorded */
	bool has_wakers;       /* and who ends them */
	bool is_attached;      /* to processes; else a program is started */
	bool is_all;           /* processes are recorded, with a program or without */
	bool has_begun;        /* the program runs, and is recorded */
	bool has_exited;       /* the program was waited for */
	uint64_t ran_ns;   /* processor time of the program and its children, once it has exited */
	int32_t first_pid; /* the program, or the first process */
	int64_t began;     /* monotonic */
	int64_t flushed;
	int64_t looked_for_end; /* of the processes */
	struct fathom_profile_writer writer;
	struct fathom_record_observer observer;
	struct fathom_stack_table table;
	struct fathom_record_threads threads;
	struct fathom_record_waits waits;
};

/*
 * Writes a sample of @weight, of waits in ns, at monotonic @ns, unless the weight is 0; @stack may
 * be NULL.
 */
void fathom_recording_write(struct fathom_recording *r, struct fathom_record_thread *thread,
			    uint64_t ns, enum fathom_profile_part part, uint64_t weight,
			    const struct fathom_record_stack *stack);

/*
 * The same of a wait that @waker has ended, as in samples. @goes_on: it has not ended; the next
 * wait that is written of @thread is the same one.
 */
void fathom_recording_write_wait(struct fathom_recording *r, struct fathom_record_thread *thread,
				 uint64_t ns, uint64_t weight,
				 const struct fathom_record_stack *stack, uint32_t waker,
				 bool goes_on);

/* Returns the number of @thread in the profile, which is written; UINT32_MAX without memory. */
uint32_t fathom_recording_number(struct fathom_recording *r, struct fathom_record_thread *thread,
				 uint64_t ns);

/* Returns the time since the recording began of @ns, by the monotonic clock. */
static inline uint64_t fathom_recording_since(const struct fathom_recording *r, uint64_t ns)
{
	return ns > (uint64_t)r->began ? ns - (uint64_t)r->began : 0;
}

/* Fails as there is no process @pid. */
fathom_err fathom_recording_no_process(int32_t pid, struct fathom_errinfo *reterr);

#endif
