/* SPDX-License-Identifier: MIT */
#include "host/trace/rings.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The deepest stack of calls that is kept apart. */
#define MOST_CALLS (1u << 20)

/* One ring. */
struct ring {
	struct fathom_trace_ring *head;
	const struct fathom_trace_record *records;
	uint64_t taken;
	uint64_t time;    /* of the last record */
	uint32_t highest; /* stack pointer / 8 that a thread has begun with */
	struct {
		FATHOM_ARRAY_OF(uint32_t); /* stack pointers / 8 of the calls that it is within */
	} calls;
	struct fathom_trace_event last; /* count 0: none */
	uint32_t last_sp;
};

struct fathom_rings {
	struct fathom_trace_head *head;
	struct fathom_trace_moment from; /* times in between are in proportion */
	struct fathom_trace_moment until;
	uint32_t first_sp; /* of the first thread, / 8 */
	int32_t pid;
	uint32_t n;
	struct ring rings[];
};

fathom_err fathom_rings_create(struct fathom_trace_head *head, uint64_t size,
			       const struct fathom_trace_moment *begin, int32_t pid, uint64_t sp,
			       struct fathom_rings **ret)
{
	const uint32_t n = head->n_rings;
	struct fathom_rings *r;
	uint64_t off;

	if (fathom_trace_size(n, &off) > size)
		return FATHOM_E_CORRUPT;
	r = calloc(1, sizeof *r + n * sizeof *r->rings);
	if (!r)
		return FATHOM_E_MEMORY;
	r->head = head;
	r->n = n;
	r->from = r->until = *begin;
	r->first_sp = (uint32_t)(sp >> 3);
	r->pid = pid;
	for (uint32_t i = 0; i < n; i++) {
		r->rings[i].head = (struct fathom_trace_ring *)(void *)(head + 1) + i;
		r->rings[i].records =
			(const struct fathom_trace_record *)(const void *)((const char *)head +
									   off) +
			i * FATHOM_TRACE_RECORDS;
	}
	*ret = r;
	return FATHOM_OK;
}

void fathom_rings_destroy(struct fathom_rings *r)
{
	for (uint32_t i = 0; r && i < r->n; i++)
		fathom_array_free(&r->rings[i].calls);
	free(r);
}

/* Reads the next record of @r, if there is one. */
static bool peek(const struct ring *r, struct fathom_trace_record *ret)
{
	const struct fathom_trace_record *record = &r->records[r->taken % FATHOM_TRACE_RECORDS];
	const uint64_t time = __atomic_load_n(&record->time, __ATOMIC_ACQUIRE);

	/* Without a clock it has the bit of the lap alone, which is 0 in every other one. */
	if ((time & FATHOM_TRACE_LAP) != fathom_trace_lap(r->taken))
		return false;
	ret->site = record->site;
	ret->sp = record->sp;
	ret->time = time & ~FATHOM_TRACE_LAP;
	return true;
}

static void tell(struct ring *r, fathom_trace_event_fn fn, void *data)
{
	if (r->last.count)
		fn(data, &r->last);
	r->last.count = 0;
}

/* Finds how deep a call at @sp is: those below it, and at it, have ended. */
static uint32_t enter(struct ring *r, uint32_t sp)
{
	while (r->calls.n && (int32_t)(r->calls.items[r->calls.n - 1] - sp) <= 0)
		r->calls.n--;
	if (r->calls.n < MOST_CALLS)
		(void)fathom_array_push(&r->calls, sp);
	return r->calls.n ? (uint32_t)r->calls.n - 1 : 0;
}

/* Returns the nanoseconds of @ticks. */
static uint64_t ns_of(const struct fathom_rings *all, uint64_t ticks)
{
	const uint64_t span = all->until.ticks - all->from.ticks;
	const double part = span ? (double)(all->until.ns - all->from.ns) / (double)span : 0;

	/* Told late, or by a program that writes what it likes. */
	if (ticks < all->from.ticks)
		return all->from.ns;
	return all->from.ns + (uint64_t)((double)(ticks - all->from.ticks) * part);
}

static void take(const struct fathom_rings *all, struct ring *r,
		 const struct fathom_trace_record *record, fathom_trace_event_fn fn, void *data)
{
	const bool is_first = !r->taken++;
	const int32_t tid = atomic_load_explicit(&r->head->tid, memory_order_relaxed);

	r->time = record->time ? record->time : r->time;
	if (r->last.count && r->last.site == record->site && r->last_sp == record->sp) {
		r->last.count++;
		return;
	}
	tell(r, fn, data);
	if (is_first)
		r->highest = tid == all->pid ? all->first_sp : record->sp;
	if ((int32_t)(record->sp - r->highest) > 0)
		r->highest = record->sp;
	r->last_sp = record->sp;
	r->last = (struct fathom_trace_event){
		.ns = ns_of(all, r->time),
		.count = 1,
		.stack = (uint64_t)(uint32_t)(r->highest - record->sp) * 8,
		.site = record->site,
		.depth = enter(r, record->sp),
		.tid = tid,
		.pid = atomic_load_explicit(&r->head->pid, memory_order_relaxed),
	};
}

/* Tells the program how far it was read, and wakes it if it waits. */
static void give_back(struct ring *r)
{
	uint32_t waits = 1;

	atomic_store_explicit(&r->head->taken, r->taken, memory_order_release);
	if (atomic_compare_exchange_strong(&r->head->waits, &waits, 0))
		(void)syscall(SYS_futex, &r->head->waits, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Returns the ring whose next record before @until is the earliest; NULL if there is none. */
static struct ring *earliest(struct fathom_rings *r, uint64_t until,
			     struct fathom_trace_record *ret, uint64_t *ret_next)
{
	struct fathom_trace_record record;
	struct ring *found = NULL;

	*ret_next = until;
	for (uint32_t i = 0; i < r->n; i++) {
		struct ring *ring = &r->rings[i];
		uint64_t time;

		if (!peek(ring, &record))
			continue;
		time = record.time ? record.time : ring->time;
		if (time >= until)
			continue;
		if (!found || time < (ret->time ? ret->time : found->time)) {
			if (found)
				*ret_next = ret->time ? ret->time : found->time;
			found = ring;
			*ret = record;
		} else if (time < *ret_next) {
			*ret_next = time;
		}
	}
	return found;
}

uint64_t fathom_rings_take(struct fathom_rings *r, const struct fathom_trace_moment *until,
			   bool is_end, fathom_trace_event_fn fn, void *data)
{
	struct fathom_trace_record record;
	struct ring *ring;
	uint64_t next;
	uint64_t n = 0;

	r->from = r->until;
	r->until = *until;
	while ((ring = earliest(r, until->ticks, &record, &next))) {
		/* A stretch of one ring, up to the next record of another. */
		do {
			take(r, ring, &record, fn, data);
			n++;
		} while (peek(ring, &record) && (record.time ? record.time : ring->time) < next &&
			 n % (FATHOM_TRACE_RECORDS / 4));
		give_back(ring);
	}
	for (uint32_t i = 0; i < r->n; i++)
		if (is_end)
			tell(&r->rings[i], fn, data);
	return n;
}

uint64_t fathom_rings_lost(const struct fathom_rings *r)
{
	uint64_t n = atomic_load_explicit(&r->head->lost, memory_order_relaxed);

	for (uint32_t i = 0; i < r->n; i++)
		n += atomic_load_explicit(&r->rings[i].head->lost, memory_order_relaxed);
	return n;
}
