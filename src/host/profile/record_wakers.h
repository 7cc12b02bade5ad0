/* SPDX-License-Identifier: MIT */
/*
 * Wakers: threads and interrupts that end waits. The kernel's tracepoint tells of them, of the
 * whole machine, where the user may observe that. So a wait ends when its thread is woken; from
 * then on the thread waits for a processor.
 */
#ifndef FATHOM_PROFILE_RECORD_WAKERS_H
#define FATHOM_PROFILE_RECORD_WAKERS_H

#include "host/profile/perf_event.h"
#include "host/profile/record_threads.h"

struct fathom_recording;

/* A thread that is not recorded, and has woken one that is. */
struct fathom_record_other {
	int32_t pid;
	int32_t tid;
	uint64_t start_ticks; /* when it started */
	char name[16];
	uint64_t looked; /* when this was read; monotonic ns */
	uint32_t number; /* in the profile */
};

/* All zero: nothing is recorded. */
struct fathom_record_wakers {
	struct fathom_perf_tracepoint tracepoint;
	struct {
		FATHOM_ARRAY_OF(struct fathom_perf_event);
	} events;
	struct fathom_key_map ids; /* of the events; the numbers say nothing */
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_other);
	} others;
	struct fathom_key_map by_tid; /* in others */
	bool is_on;
	uint64_t spent; /* ns that records have taken, about */
};

/*
 * Opens an event for each of the @n rings that has one, of @ring_size bytes; none if the user may
 * not observe the machine. *@setup is that of the rings: their records are parsed by it.
 * FATHOM_E_MEMORY.
 */
fathom_err fathom_record_wakers_open(struct fathom_record_wakers *w, struct fathom_perf_ring *rings,
				     size_t n, size_t ring_size, struct fathom_perf_setup *setup);

/* Records from now on if there is time for it, and else no more. @is_over: no more in any case. */
void fathom_record_wakers_go_on(struct fathom_recording *r, struct fathom_record_wakers *w,
				uint64_t ns, bool is_over);

/* Takes a record: the wait of a thread that is recorded has ended. FATHOM_E_MEMORY. */
fathom_err fathom_record_wakers_take(struct fathom_recording *r, struct fathom_record_wakers *w,
				     const struct fathom_perf_record *record);

/* Closes the events. */
void fathom_record_wakers_deinit(struct fathom_record_wakers *w);

#endif
