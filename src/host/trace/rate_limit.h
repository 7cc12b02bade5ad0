/* SPDX-License-Identifier: MIT */
/*
 * Functions that are called more often than the caller wants to hear of: counted by the reader, and
 * kept for the tracer, which has their sites call the hook no more.
 */
#ifndef FATHOM_TRACE_RATE_LIMIT_H
#define FATHOM_TRACE_RATE_LIMIT_H

#include <pthread.h>

#include "host/trace/program_memory.h"
#include "host/trace/site_ranges.h"

/* A call of the hook that is to go. */
struct fathom_flooding_call {
	struct fathom_program *program; /* a reference */
	uint64_t avma;                  /* of the call */
};

struct fathom_flooding_calls {
	FATHOM_ARRAY_OF(struct fathom_flooding_call);
};

/* How often a function was called in its last second of the run. */
struct fathom_function_rate {
	uint32_t second;
	bool is_over; /* nothing more is told of it */
	uint64_t n;
};

struct fathom_rate_limit {
	uint64_t max_rate; /* calls in a second; 0: any number */
	struct {
		FATHOM_ARRAY_OF(struct fathom_function_rate); /* by number of the function */
	} counts;                                             /* the reader's */
	pthread_mutex_t lock;                                 /* of what follows */
	struct fathom_flooding_calls calls;
};

void fathom_rate_limit_init(struct fathom_rate_limit *f, uint64_t max_rate);
void fathom_rate_limit_deinit(struct fathom_rate_limit *f);

enum fathom_rate {
	FATHOM_RATE_BELOW,   /* it is wanted */
	FATHOM_RATE_REACHED, /* this call is one too many */
	FATHOM_RATE_ABOVE,   /* so was one before */
};

/* Counts an event of @function at @ns of the run. */
enum fathom_rate fathom_rate_limit_count(struct fathom_rate_limit *f,
					 const struct fathom_trace_function *function, uint64_t ns);

/* Queues all sites in @span of the function of site @number, in @program, for the tracer. */
void fathom_rate_limit_add(struct fathom_rate_limit *f, const struct fathom_site_range *span,
			   uint32_t number, struct fathom_program *program);

/* Returns whether there is something for the tracer. */
bool fathom_rate_limit_is_due(struct fathom_rate_limit *f);
/* Gives it to the caller, who frees it with fathom_flooding_calls_free(). */
void fathom_rate_limit_take(struct fathom_rate_limit *f, struct fathom_flooding_calls *ret);
/* Takes it back, to be dealt with later. */
void fathom_rate_limit_give_back(struct fathom_rate_limit *f, struct fathom_flooding_calls *calls);
void fathom_flooding_calls_free(struct fathom_flooding_calls *calls);

#endif
