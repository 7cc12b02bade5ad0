/* SPDX-License-Identifier: MIT */
/* How long threads wait: times in the arguments of system calls, and what is left of them. */
#ifndef FATHOM_STACK_WAIT_TIME_H
#define FATHOM_STACK_WAIT_TIME_H

#include "host/stack/task.h"

struct fathom_duration {
	bool known;
	int64_t s;
	uint32_t ns;
};

/* Appends a number. */
void fathom_wait_put_signed(struct fathom_waiter *w, int64_t value);

/*
 * Reads a timespec, or with @unit 1000 a timeval; known is false if there is none, or it is not
 * valid.
 */
struct fathom_duration fathom_duration_read(const struct fathom_waiter *w, uint64_t avma,
					    uint32_t unit);

/* Appends "1.5 s", without zeros at the end. */
void fathom_duration_put(struct fathom_waiter *w, struct fathom_duration d);

/*
 * Appends @before and how long it is until the time of @clock that the timespec at @avma has, to
 * the millisecond, such as "1.5 s left". Returns false and appends nothing if there is no such
 * time.
 */
bool fathom_wait_put_left(struct fathom_waiter *w, const char *before, uint64_t avma,
			  int32_t clock);

#endif
