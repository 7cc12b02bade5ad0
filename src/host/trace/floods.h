/* SPDX-License-Identifier: MIT */
/*
 * Functions that are called more often than the caller wants to hear of: counted by the reader, and
 * kept for the tracer, which has their sites call the hook no more.
 */
#ifndef FATHOM_TRACE_FLOODS_H
#define FATHOM_TRACE_FLOODS_H

#include <pthread.h>

#include "host/trace/program_memory.h"
#include "host/trace/spans.h"

/* A call of the hook that is to go. */
struct fathom_flood_call {
	struct fathom_program *program; /* a reference */
	uint64_t avma;                  /* of the call */
};

struct fathom_flood_calls {
	FATHOM_ARRAY_OF(struct fathom_flood_call);
};

/* How often a function was called in its last second of the run. */
struct fathom_flood_count {
	uint32_t second;
	bool is_over; /* nothing more is told of it */
	uint64_t n;
};

struct fathom_floods {
	uint64_t max_rate; /* calls in a second; 0: any number */
	struct {
		FATHOM_ARRAY_OF(struct fathom_flood_count); /* by number of the function */
	} counts;                                           /* the reader's */
	pthread_mutex_t lock;                               /* of what follows */
	struct fathom_flood_calls calls;
};

void fathom_floods_init(struct fathom_floods *f, uint64_t max_rate);
void fathom_floods_deinit(struct fathom_floods *f);

enum fathom_flood {
	FATHOM_FLOOD_NOT,  /* it is wanted */
	FATHOM_FLOOD_NOW,  /* this call is one too many */
	FATHOM_FLOOD_OVER, /* so was one before */
};

/* Counts an event of @function at @ns of the run. */
enum fathom_flood fathom_floods_count(struct fathom_floods *f,
				      const struct fathom_trace_function *function, uint64_t ns);

/* Queues all sites in @span of the function of site @number, in @program, for the tracer. */
void fathom_floods_add(struct fathom_floods *f, const struct fathom_span *span, uint32_t number,
		       struct fathom_program *program);

/* Returns whether there is something for the tracer. */
bool fathom_floods_is_due(struct fathom_floods *f);
/* Gives it to the caller, who frees it with fathom_flood_calls_free(). */
void fathom_floods_take(struct fathom_floods *f, struct fathom_flood_calls *ret);
/* Takes it back, to be dealt with later. */
void fathom_floods_give_back(struct fathom_floods *f, struct fathom_flood_calls *calls);
void fathom_flood_calls_free(struct fathom_flood_calls *calls);

#endif
