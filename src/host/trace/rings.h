/* SPDX-License-Identifier: MIT */
/*
 * The reader of a run: takes the records of all rings, and what the tracer posts beside them, puts
 * them into the order of time, finds how deep each call is by its stack pointer, folds what
 * repeats, and reports it.
 *
 * The program may write anything into its rings, at any time: nothing in them is believed that
 * could lead outside of them.
 */
#ifndef FATHOM_TRACE_RINGS_H
#define FATHOM_TRACE_RINGS_H

#include "fathom/trace.h"
#include "host/trace/rate_limit.h"
#include "host/trace/timestamp_pair.h"
#include "host/trace/program_memory.h"
#include "host/trace/site_ranges.h"

struct fathom_rings;

/* One thread's ring. */
struct fathom_ring_name {
	struct fathom_program *program; /* NULL: it has none */
	uint32_t number;
};

/* Words of the stack that are looked at where a system call is made. */
#define FATHOM_CALL_WORDS 256

/* A system call. */
struct fathom_posted_syscall {
	uint64_t duration_ns;
	uint64_t pc;
	uint64_t system_ns;
	uint32_t size;  /* of the record */
	uint8_t method; /* enum fathom_syscall_method */
	bool is_injected;
	bool is_delayed;
	bool has_frames;                   /* words are those of frame records (syscall_ring.h) */
	uint32_t n_words;                  /* of the stack, from the stack pointer on */
	uint32_t words[FATHOM_CALL_WORDS]; /* their low bits */
	uint8_t record[];
};

/*
 * An event of the tracer: one that stands after so many records of a ring, the beginning of a
 * thread with its ring, or the end of a ring's use.
 */
struct fathom_post {
	struct fathom_ring_name ring;   /* in whose order it stands */
	uint64_t cursor;                /* records of it that come before */
	uint64_t ticks;                 /* when */
	struct fathom_ring_name begins; /* the ring of the thread that begins here */
	uint64_t sp;                    /* of that thread; of this one for a signal */
	struct fathom_site_range *span; /* sites that may be recorded from now on; taken over */
	char *text; /* of the event, from malloc(), taken over; NULL: no event */
	struct fathom_posted_syscall *call; /* likewise; NULL: none */
	struct fathom_trace_stack *stack;   /* by which it was made; likewise */
	/* 1 + number of the record that the call of @call begins with; 0: it was not recorded */
	uint64_t ends;
	int32_t pid;
	int32_t tid;
	int32_t status;  /* of the event */
	uint8_t type;    /* enum fathom_trace_type */
	bool is_copy;    /* the thread that begins is a copy of this one: fork() */
	bool is_release; /* nobody writes the ring any more; it says itself where it ends */
	bool is_silent;  /* nothing of the thread that begins is told */
};

/* Frees what @post has taken over. */
void fathom_post_deinit(struct fathom_post *post);

/* Makes a reader; @options must outlive it. FATHOM_E_MEMORY. */
fathom_err fathom_rings_create(const struct fathom_trace_options *options,
			       const struct fathom_timestamp_pair *begin,
			       struct fathom_rings **ret);
void fathom_rings_destroy(struct fathom_rings *r);

/* Posts @post; may be called by any thread, and takes references to the programs. */
void fathom_rings_post(struct fathom_rings *r, const struct fathom_post *post);

/*
 * Asks the caller's control what is wanted. The next fathom_rings_take() tells what is kept, if
 * that is: all that was recorded before this call.
 */
void fathom_rings_ask(struct fathom_rings *r);

/*
 * Takes what was recorded before @until, which is not before that of the last call, and reports
 * it; if records are spooled, a slice of it, until all of it is taken, unless @is_end. What may
 * still be repeated is kept, unless @is_end. Returns how many records were taken.
 */
uint64_t fathom_rings_take(struct fathom_rings *r, const struct fathom_timestamp_pair *until,
			   bool is_end);

/* Returns what flooded; any thread may ask what is due. */
struct fathom_rate_limit *fathom_rings_rate_limit(struct fathom_rings *r);

/* Drops all events from now on. */
void fathom_rings_silence(struct fathom_rings *r);

/* Returns how many events were lost so far. */
uint64_t fathom_rings_lost(const struct fathom_rings *r);

/* Returns whether the caller wants no more events. */
bool fathom_rings_is_over(const struct fathom_rings *r);

/* Returns whether the caller wants the programs to be left. */
bool fathom_rings_wants_to_leave(const struct fathom_rings *r);

#endif
