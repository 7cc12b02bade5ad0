/* SPDX-License-Identifier: MIT */
#include "host/trace/ring_syscalls.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "host/syscalls/syscall_capture.h"
#include "host/syscalls/syscall_table.h"
#include "host/space/target.h"
#include "safe/base/cursor.h"

/* The bytes of an event. */
struct event {
	uint64_t n;
	_Alignas(8) uint8_t bytes[FATHOM_TRACE_SYSCALL_BYTES];
};

void fathom_ring_syscalls_deinit(struct fathom_ring_syscalls *calls)
{
	for (size_t i = 0; i < calls->n; i++)
		free(calls->items[i].call);
	fathom_array_free(calls);
}

uint64_t fathom_ring_syscall_records(const struct fathom_trace_record *records, uint64_t number)
{
	const struct fathom_trace_record *first = &records[number % FATHOM_TRACE_RECORDS];
	const uint64_t n = first->site == FATHOM_TRACE_SYSCALL_RETURNS ? 1 : first->caller;

	return n < 1 ? 1 : n < FATHOM_TRACE_SYSCALL_RECORDS ? n : FATHOM_TRACE_SYSCALL_RECORDS;
}

static void read_event(const struct fathom_trace_record *records, uint64_t number,
		       struct event *ret)
{
	const uint64_t n = fathom_ring_syscall_records(records, number);
	const size_t size = sizeof *records - offsetof(struct fathom_trace_record, site);

	for (uint64_t i = 1; i < n; i++)
		memcpy(ret->bytes + (i - 1) * size,
		       &records[(number + i) % FATHOM_TRACE_RECORDS].site, size);
	ret->n = (n - 1) * size;
}

/* Appends the lengths of @n entries of a directory at @avma, which are 2 bytes each at @lengths. */
static void add_entries(struct fathom_syscall_record *r, uint64_t avma, bool at_exit,
			const uint8_t *lengths, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		fathom_syscall_record_add(r, avma + FATHOM_TRACE_ENTRY_LENGTH, at_exit,
					  lengths + 2 * i, 2);
		avma += load_u16(lengths + 2 * i, false);
	}
}

/* Takes the next range of the event that @c reads; false at its end, or if that is not whole. */
static bool take_range(struct fathom_cursor *c, struct fathom_recorded_range *ret,
		       const uint8_t **ret_bytes)
{
	const uint8_t *head = cur_left(c) >= sizeof *ret ? cur_take(c, sizeof *ret) : NULL;
	uint64_t size;

	if (!head)
		return false;
	memcpy(ret, head, sizeof *ret);
	size = ret->size & ~FATHOM_TRACE_ENTRIES_BIT;
	*ret_bytes = size ? cur_take(c, (size + 7) & ~UINT64_C(7)) : NULL;
	return *ret_bytes != NULL;
}

static struct fathom_cursor ranges_of(const struct event *e, uint64_t off)
{
	return cur_init((struct fathom_bytes){ e->bytes + off, e->n - off }, false);
}

/* Returns how many bytes the ranges of the event from @off on add to a record. */
static size_t size_of_ranges(const struct event *e, uint64_t off)
{
	const size_t entry = sizeof(struct fathom_recorded_range) + sizeof(uint64_t);
	struct fathom_cursor c = ranges_of(e, off);
	struct fathom_recorded_range range;
	const uint8_t *bytes;
	size_t size = e->n - off;

	while (take_range(&c, &range, &bytes))
		if (range.size & FATHOM_TRACE_ENTRIES_BIT)
			size += (range.size & ~FATHOM_TRACE_ENTRIES_BIT) / 2 * entry;
	return size;
}

/* Appends the ranges of the event from @off on to the record. */
static void add_ranges(struct fathom_syscall_record *r, const struct event *e, uint64_t off,
		       bool at_exit)
{
	struct fathom_cursor c = ranges_of(e, off);
	struct fathom_recorded_range range;
	const uint8_t *bytes;

	while (take_range(&c, &range, &bytes))
		if (range.size & FATHOM_TRACE_ENTRIES_BIT)
			add_entries(r, range.avma, at_exit, bytes,
				    (range.size & ~FATHOM_TRACE_ENTRIES_BIT) / 2);
		else
			fathom_syscall_record_add(r, range.avma, at_exit, bytes, range.size);
}

static bool ends_thread(uint32_t machine, uint64_t number)
{
	const char *name = fathom_syscall_name(machine, (int64_t)number);

	return name && (!strcmp(name, "exit") || !strcmp(name, "exit_group"));
}

bool fathom_ring_syscall_read(const struct fathom_trace_record *records, uint64_t number,
			      struct fathom_ring_syscall *ret)
{
	const struct fathom_trace_record *first = &records[number % FATHOM_TRACE_RECORDS];
	struct fathom_trace_syscall_begin begin;
	uint64_t words[FATHOM_SYSCALL_ARGUMENTS + 1] = { 0 };
	struct fathom_syscall_call call = { .format = 0 };
	struct fathom_posted_syscall *posted;
	struct fathom_syscall_record record;
	struct event e;
	uint32_t n_args;
	uint32_t n_words;
	uint32_t flags;
	size_t off;

	if (first->site != FATHOM_TRACE_SYSCALL_BEGINS)
		return false;
	read_event(records, number, &e);
	n_args = fathom_trace_syscall_args(first->fp);
	n_words = fathom_trace_syscall_words(first->fp);
	off = sizeof begin + n_args * sizeof(uint64_t);
	if (n_args > FATHOM_SYSCALL_ARGUMENTS + 1 || n_words > FATHOM_TRACE_SYSCALL_WORDS ||
	    n_words % 2 || off + n_words * sizeof(uint32_t) > e.n)
		return false;
	memcpy(&begin, e.bytes, sizeof begin);
	posted = malloc(sizeof *posted + FATHOM_RING_SYSCALL_BYTES);
	if (!posted)
		return false;
	memset(posted, 0, sizeof *posted);
	flags = fathom_trace_syscall_flags(first->fp);
	memcpy(words, e.bytes + sizeof begin, n_args * sizeof(uint64_t));
	call.number = n_args > FATHOM_SYSCALL_ARGUMENTS ? words[FATHOM_SYSCALL_ARGUMENTS]
							: fathom_trace_syscall_number(first->fp);
	call.machine = flags & FATHOM_TRACE_SYSCALL_I386 ? EM_386 : fathom_own_machine();
	call.sp = begin.sp;
	memcpy(call.args, words, sizeof call.args);
	(void)fathom_syscall_record_begin(&record, posted->record, FATHOM_RING_SYSCALL_BYTES,
					  &call);
	add_ranges(&record, &e, off + n_words * sizeof(uint32_t), false);
	posted->pc = begin.pc;
	posted->method = flags & FATHOM_TRACE_SYSCALL_DISPATCHED ? FATHOM_SYSCALL_BY_DISPATCH
								 : FATHOM_SYSCALL_BY_REWRITING;
	posted->n_words = n_words;
	posted->has_frames = (flags & FATHOM_TRACE_SYSCALL_FRAMES) != 0;
	memcpy(posted->words, e.bytes + off, n_words * sizeof(uint32_t));
	posted->size = (uint32_t)record.n;
	*ret = (struct fathom_ring_syscall){
		.begin = number,
		.ticks = __atomic_load_n(&first->time, __ATOMIC_ACQUIRE) & ~FATHOM_TRACE_LAP,
		.sp = begin.sp,
		.is_end = ends_thread(call.machine, call.number),
		.nests = (flags & FATHOM_TRACE_SYSCALL_NESTS) != 0,
		.call = posted,
	};
	return true;
}

/* The most calls that a thread is in: handlers that interrupt each other. */
#define MOST_PENDING 16

/* Returns 1 + the index of the call that begins with record @begin; 0: it is not in @calls. */
static size_t find_open_syscall(const struct fathom_ring_syscalls *calls, uint64_t begin)
{
	size_t i = calls->n;

	/* In a ring that keeps the latest records, laps are not counted. */
	while (i && (calls->items[i - 1].begin - begin) % FATHOM_TRACE_RECORDS)
		i--;
	return i;
}

/* Takes the call that begins with record @begin out of @calls, and forgets those begun since. */
static bool take_open_syscall(struct fathom_ring_syscalls *calls, uint64_t begin,
			      struct fathom_ring_syscall *ret)
{
	const size_t i = find_open_syscall(calls, begin);

	if (!i)
		return false;
	*ret = calls->items[i - 1];
	for (; calls->n > i; calls->n--)
		free(calls->items[calls->n - 1].call);
	calls->n--;
	return true;
}

/*
 * Reads how the call ended whose last event begins with record @number; false if it is too short.
 */
static bool read_end(const struct fathom_trace_record *records, uint64_t number, struct event *e,
		     struct fathom_trace_syscall_end *ret)
{
	const struct fathom_trace_record first = records[number % FATHOM_TRACE_RECORDS];

	read_event(records, number, e);
	if (first.site == FATHOM_TRACE_SYSCALL_RETURNS) {
		ret->begin = first.fp;
		ret->result = (int64_t)(first.sp | (uint64_t)first.caller << 32);
		return true;
	}
	if (e->n < sizeof *ret)
		return false;
	memcpy(ret, e->bytes, sizeof *ret);
	return true;
}

bool fathom_ring_syscalls_left(struct fathom_ring_syscalls *calls,
			       const struct fathom_trace_record *records, uint64_t number,
			       struct fathom_ring_syscall *ret)
{
	const struct fathom_trace_record *first = &records[number % FATHOM_TRACE_RECORDS];
	const struct fathom_ring_syscall *last = calls->n ? &calls->items[calls->n - 1] : NULL;
	struct fathom_trace_syscall_end end;
	struct event e;

	if (!last)
		return false;
	if (first->site == FATHOM_TRACE_SYSCALL_BEGINS) {
		/*
		 * Without a tracer the frame of an interrupted call is still there, and so higher.
		 */
		if (last->nests && first->sp != (uint32_t)(last->sp >> 3) &&
		    calls->n < MOST_PENDING)
			return false;
	} else if (!read_end(records, number, &e, &end) || !find_open_syscall(calls, end.begin) ||
		   find_open_syscall(calls, end.begin) == calls->n) {
		return false;
	}
	*ret = *last;
	calls->n--;
	return true;
}

/* Gives @call room for a record of @size bytes; returns how many there is room for. */
static size_t make_room(struct fathom_ring_syscall *call, size_t size)
{
	struct fathom_posted_syscall *larger;

	if (size <= FATHOM_RING_SYSCALL_BYTES)
		return FATHOM_RING_SYSCALL_BYTES;
	larger = realloc(call->call, sizeof *larger + size);
	if (!larger)
		return FATHOM_RING_SYSCALL_BYTES;
	call->call = larger;
	return size;
}

bool fathom_ring_syscalls_end(struct fathom_ring_syscalls *calls,
			      const struct fathom_trace_record *records, uint64_t number,
			      struct fathom_ring_syscall *ret)
{
	struct fathom_trace_syscall_end end;
	struct fathom_syscall_record record = { 0 };
	struct event e;

	if (!read_end(records, number, &e, &end) || !take_open_syscall(calls, end.begin, ret))
		return false;
	record.cap = e.n ? make_room(ret, ret->call->size + size_of_ranges(&e, sizeof end))
			 : FATHOM_RING_SYSCALL_BYTES;
	record.bytes = ret->call->record;
	record.n = ret->call->size;
	fathom_syscall_record_end(&record, FATHOM_SYSCALL_RETURNED, end.result);
	if (e.n)
		add_ranges(&record, &e, sizeof end, true);
	ret->call->size = (uint32_t)record.n;
	return true;
}

void fathom_ring_syscalls_forget(struct fathom_ring_syscalls *calls, uint64_t begin)
{
	struct fathom_ring_syscall call;

	if (take_open_syscall(calls, begin, &call))
		free(call.call);
}

void fathom_ring_syscall_complete(struct fathom_ring_syscall *call,
				  const struct fathom_syscall_options *options)
{
	_Alignas(8) uint8_t bytes[FATHOM_RING_SYSCALL_BYTES];
	struct fathom_syscall_record from = { .bytes = call->call->record, .n = call->call->size };
	struct fathom_syscall_record to;
	const struct fathom_syscall *known;
	struct fathom_syscall_call told;

	fathom_syscall_record_call(&from, &told);
	known = fathom_syscall_find(told.machine, told.number);
	if (!known || !(known->classes & FATHOM_SYSCALL_NETWORK) ||
	    !fathom_syscall_capture_again(&from, options, bytes, sizeof bytes, &to))
		return;
	memcpy(call->call->record, to.bytes, to.n);
	call->call->size = (uint32_t)to.n;
}
