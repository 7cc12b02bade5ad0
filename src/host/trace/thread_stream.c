/* SPDX-License-Identifier: MIT */
#include "host/trace/thread_stream.h"

#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/file/process_status.h"

/* The deepest stack of calls that is kept apart. */
#define MOST_CALLS (1u << 20)

/* So many calls are looked through for the one that makes another. */
#define MOST_LOOKS 64

/* How far a stack reaches, and how far above what was seen first it may begin: in words. */
#define STACK_WORDS (UINT32_C(1) << 20)
#define ABOVE_WORDS (UINT32_C(1) << 13)

/* How often a ring is copied until what it has hangs together. */
#define COPIES 20

/*
 * So many records after one that was begun, it is taken for abandoned: longjmp() out of a handler.
 */
#define PATIENCE (FATHOM_TRACE_RECORDS / 4)

/* Records of a ring, more than one can ever have; laps are counted by its lower bits. */
#define MOST_TAKEN (UINT64_MAX >> 16)

/* Returns the records of the ring of @s. */
static struct fathom_trace_record *ring_of(const struct fathom_stream *s)
{
	return fathom_program_records(s->name.program, s->name.number);
}

/* So many laps in front of the list are not the stream's any more before it is moved. */
#define MOST_FREED 16

/* Gives the laps back but the last @n. */
static void keep_laps(struct fathom_stream *s, uint64_t n)
{
	while (s->laps.n - s->laps.first > n)
		fathom_spool_release(s->spool, s->laps.items[s->laps.first++]);
	/* The list does not grow with the trace. */
	if (s->laps.first && (s->laps.first == s->laps.n || s->laps.first >= MOST_FREED)) {
		memmove(s->laps.items, s->laps.items + s->laps.first,
			(s->laps.n - s->laps.first) * sizeof *s->laps.items);
		s->laps.n -= s->laps.first;
		s->laps.first = 0;
	}
}

struct fathom_stream *fathom_stream_create(struct fathom_ring_name name)
{
	struct fathom_stream *s = calloc(1, sizeof *s);
	const struct fathom_program *pr = name.program;

	if (!s)
		return NULL;
	s->lanes = calloc(FATHOM_STREAM_LANES, sizeof *s->lanes);
	if (!s->lanes) {
		free(s);
		return NULL;
	}
	s->n_lanes = 1;
	if (!pr)
		return s;
	s->name = name;
	fathom_program_acquire(name.program);
	s->head = (struct fathom_trace_ring *)(void *)(pr->head + 1) + name.number;
	s->ring = s->records = ring_of(s);
	s->records_end = UINT64_MAX;
	/* The program writes what it likes: no sum of such numbers may overflow. */
	s->taken = s->given = atomic_load(&s->head->taken) & MOST_TAKEN;
	return s;
}

void fathom_stream_destroy(struct fathom_stream *s)
{
	for (size_t i = s->posts.first; i < s->posts.n; i++)
		fathom_post_deinit(&s->posts.items[i]);
	fathom_array_free(&s->posts);
	free(s->copy);
	keep_laps(s, 0);
	fathom_array_free(&s->laps);
	fathom_ring_syscalls_deinit(&s->system_calls);
	fathom_event_filter_thread_deinit(&s->event_filter);
	for (uint32_t i = 0; i < s->n_lanes; i++)
		fathom_array_free(&s->lanes[i].calls);
	free(s->lanes);
	fathom_program_release(s->name.program);
	free(s);
}

/* Returns whether record @i of @records is filled, and in *@ret_time its time. */
static bool is_filled_in(const struct fathom_trace_record *records, uint64_t i, uint64_t *ret_time)
{
	const struct fathom_trace_record *record = &records[i % FATHOM_TRACE_RECORDS];
	const uint64_t time = __atomic_load_n(&record->time, __ATOMIC_ACQUIRE);

	*ret_time = time & ~FATHOM_TRACE_LAP;
	return (time & FATHOM_TRACE_LAP) == fathom_trace_lap(i);
}

static bool is_filled(const struct fathom_stream *s, uint64_t i, uint64_t *ret_time)
{
	return is_filled_in(s->records, i, ret_time);
}

/* Spool -------------------------------------------------------------------------------------- */

static uint64_t lap_of(uint64_t number)
{
	return number / FATHOM_TRACE_RECORDS;
}

/* Returns how many records of the lap of record @number are from there on, before @end. */
static uint64_t rest_of_lap(uint64_t number, uint64_t end)
{
	const uint64_t n = FATHOM_TRACE_RECORDS - number % FATHOM_TRACE_RECORDS;

	return n < end - number ? n : end - number;
}

/* Reads on from where the next record stands: in a lap, or in the ring. */
static void select_records(struct fathom_stream *s)
{
	while (s->taken < s->ring_begin) {
		const uint64_t i = s->taken % FATHOM_TRACE_RECORDS;
		const uint64_t n = rest_of_lap(s->taken, s->ring_begin);

		keep_laps(s, lap_of(s->ring_begin - 1) - lap_of(s->taken) + 1);
		s->records_end = s->taken + n;
		if (s->laps.n &&
		    fathom_spool_read(s->spool, s->laps.items[s->laps.first], i, s->copy + i, n)) {
			s->records = s->copy;
			return;
		}
		s->taken += n;
		s->holes += n;
	}
	keep_laps(s, 0);
	s->records = s->ring;
	s->records_end = UINT64_MAX;
}

/* Passes over @n records. */
static inline void advance(struct fathom_stream *s, uint64_t n)
{
	s->taken += n;
	if (s->taken >= s->records_end)
		select_records(s);
}

uint64_t fathom_stream_ring_begin(const struct fathom_stream *s)
{
	return s->taken > s->ring_begin ? s->taken : s->ring_begin;
}

/* Returns how many records from number @from on are filled in the ring, in the lap of that one. */
static uint64_t count_filled(const struct fathom_stream *s, uint64_t from)
{
	const uint64_t most = rest_of_lap(from, UINT64_MAX);
	uint64_t time;
	uint64_t n = 0;

	while (n < most && is_filled_in(s->ring, from + n, &time))
		n++;
	return n;
}

/*
 * Writes record @number of the ring, and the next ones, @n in all, to its lap; a new one only if
 * there are less than @most. False if there is no room.
 */
static bool spool_records(struct fathom_stream *s, uint64_t number, uint64_t n, uint64_t most)
{
	const uint64_t i = number % FATHOM_TRACE_RECORDS;
	const bool is_new = s->laps.n == s->laps.first || !i;
	uint32_t lap;

	if (is_new && (s->laps.n - s->laps.first >= most || !fathom_array_room(&s->laps, 1) ||
		       !fathom_spool_acquire(s->spool, &lap)))
		return false;
	if (is_new)
		s->laps.items[s->laps.n++] = lap;
	if (fathom_spool_write(s->spool, s->laps.items[s->laps.n - 1], i, s->ring + i, n))
		return true;
	if (is_new)
		fathom_spool_release(s->spool, s->laps.items[--s->laps.n]);
	return false;
}

/* Makes what spooling needs; false without memory. */
static bool open_spool(struct fathom_stream *s, struct fathom_spool *spool)
{
	s->spool = spool;
	if (!s->copy)
		s->copy = malloc(FATHOM_TRACE_RECORDS * sizeof *s->copy);
	return s->copy != NULL;
}

void fathom_stream_spool(struct fathom_stream *s, struct fathom_spool *spool, uint64_t most)
{
	const uint64_t begin = fathom_stream_ring_begin(s);
	uint64_t from = begin;
	uint64_t time;
	uint64_t n;

	if (!s->head || s->is_overwritten ||
	    !is_filled_in(s->ring, from + FATHOM_TRACE_RECORDS / 4, &time) || !open_spool(s, spool))
		return;
	while ((n = count_filled(s, from)) && spool_records(s, from, n, most))
		from += n;
	if (from == begin)
		return;
	s->ring_begin = from;
	/* The records that were read already come first. */
	if (s->records == s->ring)
		select_records(s);
}

/* Returns whether the next record is there, and in *@ret_time its time. */
static bool has_next(const struct fathom_stream *s, uint64_t *ret_time)
{
	/* A record that was spooled was filled, whatever the program has written there since. */
	const bool is_spooled = s->taken < s->ring_begin;

	return is_filled(s, s->taken, ret_time) || is_spooled;
}

static const struct fathom_post *next_post(const struct fathom_stream *s)
{
	return s->posts.first < s->posts.n ? &s->posts.items[s->posts.first] : NULL;
}

bool fathom_stream_peek(struct fathom_stream *s, struct fathom_stream_item *ret)
{
	const struct fathom_post *post = next_post(s);
	uint64_t time;
	uint64_t later;

	while (s->head && !(post && !s->is_overwritten && post->cursor <= s->taken)) {
		if (!(s->is_overwritten && s->taken >= s->end) && has_next(s, &time)) {
			const struct fathom_trace_record *record =
				&s->records[s->taken % FATHOM_TRACE_RECORDS];

			/*
			 * A continuation: the record before it was never filled, or is overwritten.
			 */
			if (time & FATHOM_TRACE_MORE) {
				advance(s, 1);
				continue;
			}
			ret->post = NULL;
			ret->number = s->taken;
			ret->n_records = record->site >= FATHOM_TRACE_SYSCALL_SITES
						 ? fathom_ring_syscall_records(s->records, s->taken)
						 : 1;
			ret->ticks = time ? time : s->ticks;
			if (s->is_overwritten && post && post->ticks <= ret->ticks)
				break;
			ret->site = record->site;
			ret->sp = record->sp;
			ret->caller = record->caller;
			ret->fp = record->fp;
			return true;
		}
		if (s->is_overwritten && s->taken >= s->end)
			break;
		if (s->is_overwritten) {
			advance(s, 1);
			continue;
		}
		/* It was begun and is not filled yet; or never will be. */
		if (!(post && post->is_release) && !is_filled(s, s->taken + PATIENCE, &later))
			return false;
		advance(s, 1);
		s->holes++;
	}
	if (!post)
		return false;
	ret->post = post;
	ret->ticks = post->ticks;
	return true;
}

uint64_t fathom_stream_end(const struct fathom_stream *s)
{
	const uint64_t begin = fathom_stream_ring_begin(s);
	/* In a ring that keeps the latest records, of what is there. */
	const struct fathom_trace_record *records = s->ring_begin > s->taken ? s->ring : s->records;
	uint64_t end = begin;
	uint64_t time;

	if (!s->head)
		return end;
	for (uint64_t i = begin; i < begin + FATHOM_TRACE_RECORDS; i++) {
		if (is_filled_in(records, i, &time))
			end = i + 1;
		else if (i - end > FATHOM_TRACE_SLACK)
			break;
	}
	return end;
}

void fathom_stream_pass(struct fathom_stream *s, const struct fathom_stream_item *item)
{
	if (item->ticks > s->ticks)
		s->ticks = item->ticks;
	if (!item->post) {
		advance(s, item->n_records);
		return;
	}
	fathom_post_deinit(&s->posts.items[s->posts.first]);
	if (++s->posts.first == s->posts.n)
		s->posts.first = s->posts.n = 0;
}

void fathom_stream_begin(struct fathom_stream *s, uint64_t sp, uint64_t ticks,
			 const struct fathom_stream *from)
{
	const struct fathom_stream_lane *lane;

	s->has_begun = true;
	s->lanes[0].highest = (uint32_t)(sp >> 3);
	s->ticks = ticks;
	if (!from)
		return;
	lane = &from->lanes[from->lane];
	s->lanes[0].highest = lane->highest;
	s->lanes[0].base = lane->base;
	if (!lane->calls.n || !fathom_array_room(&s->lanes[0].calls, lane->calls.n))
		return;
	memcpy(s->lanes[0].calls.items, lane->calls.items,
	       lane->calls.n * sizeof *lane->calls.items);
	s->lanes[0].calls.n = lane->calls.n;
}

void fathom_stream_exec(struct fathom_stream *s)
{
	for (uint32_t i = 0; i < s->n_lanes; i++)
		s->lanes[i].calls.n = 0;
	/* The next stack pointer makes the first one. */
	s->lanes[0].base = 0;
	s->n_lanes = 0;
	s->lane = 0;
}

const char *fathom_stream_name(const struct fathom_stream *s)
{
	return s->n_names ? s->thread_names[s->n_names - 1] : "";
}

void fathom_stream_read_name(struct fathom_stream *s, const struct fathom_stream *maker)
{
	char path[64];
	char *name;
	FILE *f;

	if (s->n_names == FATHOM_STREAM_NAMES || !s->head)
		return;
	(void)snprintf(path, sizeof path, "/proc/%d/comm", s->tid);
	f = fopen(path, "re");
	name = s->thread_names[s->n_names];
	if (!f && !s->n_names && maker) {
		memcpy(name, fathom_stream_name(maker), strlen(fathom_stream_name(maker)));
		s->n_names++;
	}
	if (!f)
		return;
	if (fgets(name, sizeof s->thread_names[0], f)) {
		name[strcspn(name, "\n")] = '\0';
		if (!s->n_names || strcmp(name, name - sizeof s->thread_names[0]))
			s->n_names++;
	}
	(void)fclose(f);
}

/* Returns whether stack pointer @a lies above @b: both are low bits. */
static bool is_above(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Returns the stack that @sp is on: the nearest one that begins above it. */
static uint32_t find_lane(const struct fathom_stream *s, uint32_t sp)
{
	uint32_t nearest = STACK_WORDS;
	uint32_t found = s->n_lanes;

	for (uint32_t i = 0; i < s->n_lanes; i++) {
		const uint32_t distance = s->lanes[i].highest - sp;

		if (distance < nearest) {
			nearest = distance;
			found = i;
		}
	}
	if (found < s->n_lanes)
		return found;
	/* It begins higher than what was seen of it first. */
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (sp - s->lanes[i].highest < ABOVE_WORDS)
			return i;
	return s->n_lanes;
}

/* Goes to the stack that @sp is on. */
static struct fathom_stream_lane *lane_of(struct fathom_stream *s, uint32_t sp)
{
	struct fathom_stream_lane *lane = &s->lanes[s->lane];
	const uint32_t depth = lane->base + (uint32_t)lane->calls.n;
	uint32_t i;

	if (s->n_lanes == 1 && lane->highest - sp < STACK_WORDS)
		return lane;
	i = find_lane(s, sp);
	if (i == s->n_lanes) {
		/* A new one; of too many, the last is given up. */
		if (i == FATHOM_STREAM_LANES)
			i--;
		else
			s->n_lanes++;
		s->lanes[i].calls.n = 0;
		s->lanes[i].highest = sp;
		s->lanes[i].base = depth;
	}
	s->lane = i;
	if (is_above(sp, s->lanes[i].highest))
		s->lanes[i].highest = sp;
	return &s->lanes[i];
}

uint64_t fathom_stream_stack(const struct fathom_stream *s, uint32_t sp)
{
	return (uint64_t)(s->lanes[s->lane].highest - sp) * 8;
}

/* Ends the calls of @lane that are at @sp, or below. */
static void end_calls(struct fathom_stream_lane *lane, uint32_t sp)
{
	while (lane->calls.n && !is_above(lane->calls.items[lane->calls.n - 1].sp, sp))
		lane->calls.n--;
}

uint32_t fathom_stream_depth(struct fathom_stream *s, uint32_t sp)
{
	struct fathom_stream_lane *lane = lane_of(s, sp);

	/* One that has just begun has its return address there. */
	end_calls(lane, sp - 1);
	return lane->base + (uint32_t)lane->calls.n;
}

bool fathom_stream_end_returned(struct fathom_stream *s, uint32_t sp, const uint32_t *words,
				uint32_t n)
{
	struct fathom_stream_lane *lane = lane_of(s, sp);

	end_calls(lane, sp - 1);
	while (lane->calls.n) {
		const struct fathom_stream_call *c = &lane->calls.items[lane->calls.n - 1];
		const uint32_t off = c->sp - sp;

		if (!c->has_caller || off >= n)
			break;
		if (words[off] == c->caller)
			return true;
		lane->calls.n--;
	}
	return false;
}

/*
 * Returns whether the function of @c, which has a frame record, has not returned: one below where
 * its stack begins has its return address. It has none yet if it has jumped to the one that makes
 * the system call.
 */
static bool has_record(const struct fathom_stream_call *c, uint32_t sp, const uint32_t *words,
		       uint32_t n)
{
	for (uint32_t i = 2; i + 1 < n; i += 2)
		if (words[i + 1] == c->caller && is_above(c->sp, words[i]))
			return true;
	return sp == c->sp && words[1] == c->caller;
}

bool fathom_stream_end_unseen(struct fathom_stream *s, uint32_t sp, const uint32_t *words,
			      uint32_t n)
{
	struct fathom_stream_lane *lane = lane_of(s, sp);

	end_calls(lane, sp - 1);
	while (n > 1 && lane->calls.n) {
		const struct fathom_stream_call *c = &lane->calls.items[lane->calls.n - 1];

		if (!c->has_caller)
			break;
		if (has_record(c, sp, words, n))
			return true;
		if (is_above(c->sp, words[0]))
			break;
		lane->calls.n--;
	}
	return false;
}

/* Returns how far after the entry of the function of @call its call is that returns to @caller. */
static uint32_t behind_entry(const struct fathom_stream_call *call, uint32_t caller)
{
	return caller - (uint32_t)call->function;
}

/* Returns whether @caller is after a call that the function of @call makes. */
static bool makes(const struct fathom_stream_call *call, uint32_t caller)
{
	return behind_entry(call, caller) - 1 < call->size;
}

/*
 * Returns where the return address of the function lies that makes the call of @item, at @sp;
 * UINT32_MAX: unknown.
 */
static uint32_t place_of(uint32_t sp, const struct fathom_stream_item *item,
			 struct fathom_site_ranges *spans)
{
	const struct fathom_site_range_frame *f = fathom_site_ranges_frame(spans, item->caller);

	if (!f->words || (f->is_by_fp && !item->has_fp))
		return UINT32_MAX;
	/* The frame pointer has 32 bits less than three of the stack pointer's. */
	if (f->is_by_fp)
		return sp + (((item->fp >> 3) - sp) & (UINT32_MAX >> 3)) + f->words;
	return sp + f->words;
}

/*
 * Ends the calls of @lane that lie within the frame of the one that makes the call at @sp, whose
 * return address lies at @place. Returns whether that one is the last then. At its place may be one
 * that has jumped to it, which has ended.
 */
static bool end_within(struct fathom_stream_lane *lane, uint32_t place, uint32_t caller)
{
	const struct fathom_stream_call *last;

	end_calls(lane, place - 1);
	last = lane->calls.n ? &lane->calls.items[lane->calls.n - 1] : NULL;
	if (!last || last->sp != place)
		return false;
	if (makes(last, caller))
		return true;
	lane->calls.n--;
	return false;
}

/*
 * Ends the calls of @lane that the one has made whose function makes the call that returns to
 * @caller, where frames do not tell. Returns whether there is one, and one only: of a recursion the
 * inner ones may have returned.
 */
static bool end_callees(struct fathom_stream_lane *lane, uint32_t caller)
{
	size_t found = 0;

	if (lane->calls.n > MOST_LOOKS)
		return false;
	for (size_t i = lane->calls.n; i > 0; i--) {
		if (!makes(&lane->calls.items[i - 1], caller))
			continue;
		if (found)
			return false;
		found = i;
	}
	if (found)
		lane->calls.n = found;
	return found != 0;
}

/* Returns what the last call of @lane is to the one that @item has recorded at @sp. */
static uint8_t find_parent(struct fathom_stream_lane *lane, uint32_t sp,
			   const struct fathom_stream_item *item, struct fathom_site_ranges *spans)
{
	const uint32_t place = item->has_caller ? place_of(sp, item, spans) : UINT32_MAX;
	bool is_direct = false;

	if (place != UINT32_MAX)
		is_direct = end_within(lane, place, item->caller);
	else if (item->has_caller)
		is_direct = end_callees(lane, item->caller);
	if (is_direct)
		return FATHOM_TRACE_PARENT_DIRECT;
	/* Nothing but its return tells that a call has not ended. */
	return lane->calls.n && lane->calls.items[lane->calls.n - 1].has_returns
		       ? FATHOM_TRACE_PARENT_GAP
		       : FATHOM_TRACE_PARENT_UNKNOWN;
}

uint32_t fathom_stream_enter(struct fathom_stream *s, const struct fathom_stream_call *call,
			     const struct fathom_stream_item *item,
			     struct fathom_site_ranges *spans, uint8_t *ret_parent)
{
	struct fathom_stream_lane *lane = lane_of(s, call->sp);
	uint32_t depth;

	/* A call at the same place follows one that has ended: a tail call, or another. */
	end_calls(lane, call->sp);
	*ret_parent = find_parent(lane, call->sp, item, spans);
	/* A return may be among what was lost. */
	if (*ret_parent == FATHOM_TRACE_PARENT_GAP && fathom_stream_lost(s))
		*ret_parent = FATHOM_TRACE_PARENT_UNKNOWN;
	depth = lane->base + (uint32_t)lane->calls.n;
	if (lane->calls.n < MOST_CALLS)
		(void)fathom_array_push(&lane->calls, *call);
	return depth;
}

bool fathom_stream_is_known(struct fathom_stream *s, const struct fathom_stream_call *call,
			    const struct fathom_trace_function *function)
{
	struct fathom_stream_lane *lane = lane_of(s, call->sp);
	struct fathom_stream_call *last;

	/* The resolver of a function runs before it. */
	end_calls(lane, call->sp - 1);
	last = lane->calls.n ? &lane->calls.items[lane->calls.n - 1] : NULL;
	if (!last || !last->slot || last->sp != call->sp ||
	    (call->has_caller && last->caller != call->caller) ||
	    !fathom_site_range_same_name(last->slot, function))
		return false;
	last->slot = NULL;
	last->function = call->function;
	last->size = call->size;
	return true;
}

uint32_t fathom_stream_leave(struct fathom_stream *s, uint32_t sp, uint64_t *ret_ns,
			     bool *ret_known)
{
	struct fathom_stream_lane *lane = lane_of(s, sp);

	end_calls(lane, sp - 1);
	*ret_known = lane->calls.n && lane->calls.items[lane->calls.n - 1].sp == sp;
	if (*ret_known)
		*ret_ns = lane->calls.items[--lane->calls.n].ns;
	return lane->base + (uint32_t)lane->calls.n;
}

void fathom_stream_give_back(struct fathom_stream *s)
{
	const uint64_t begin = fathom_stream_ring_begin(s);
	uint32_t waits;

	if (!s->head || s->given == begin)
		return;
	s->given = begin;
	atomic_store_explicit(&s->head->taken, begin, memory_order_release);
	fathom_stream_show_reader(s);
	waits = atomic_exchange(&s->head->waits, FATHOM_TRACE_WAITS_NOT);
	if (waits == FATHOM_TRACE_WAITS_ASLEEP)
		(void)syscall(SYS_futex, &s->head->waits, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void fathom_stream_show_reader(struct fathom_stream *s)
{
	struct fathom_trace_head *head = s->head ? s->name.program->head : NULL;

	if (!head)
		return;
	atomic_fetch_add_explicit(&head->n_given, 1, memory_order_relaxed);
	atomic_store_explicit(&head->is_late, 0, memory_order_relaxed);
}

void fathom_stream_let_sleep(struct fathom_stream *s)
{
	uint32_t awake = FATHOM_TRACE_WAITS_AWAKE;

	if (s->head && atomic_load(&s->head->waits) == awake && !fathom_status_filters(s->tid))
		(void)atomic_compare_exchange_strong(&s->head->waits, &awake,
						     FATHOM_TRACE_WAITS_ASLEEP);
}

uint64_t fathom_stream_lost(const struct fathom_stream *s)
{
	return s->holes +
	       (s->head ? atomic_load_explicit(&s->head->lost, memory_order_relaxed) : 0);
}

void fathom_stream_free_ring(struct fathom_stream *s)
{
	if (s->head && s->is_overwritten) {
		/* Its next thread's records are the only ones then. */
		memset(ring_of(s), 0, FATHOM_TRACE_RECORDS * sizeof *s->records);
		s->taken = 0;
	}
	fathom_stream_give_back(s);
	if (s->head)
		atomic_store(&s->head->tid, 0);
}

/* Returns the time of @r; 0: it has none. */
static uint64_t time_of(const struct fathom_trace_record *r)
{
	return r->time & FATHOM_TRACE_MORE ? 0 : r->time & ~FATHOM_TRACE_LAP;
}

/*
 * Returns after which index the latest record of @records stands. By time; where most have none,
 * by the lap.
 */
static uint64_t find_wrap_point(const struct fathom_trace_record *records)
{
	const uint64_t n = FATHOM_TRACE_RECORDS;
	uint64_t latest = 0;
	uint64_t wrap_point = 0;

	for (uint64_t i = 0; i < n; i++) {
		const uint64_t time = time_of(&records[i]);

		/* Of several at one tick of a slow clock, the last. */
		if (!time || time < latest)
			continue;
		latest = time;
		wrap_point = i;
	}
	while (wrap_point + 1 < n && !time_of(&records[wrap_point + 1]) &&
	       (records[wrap_point + 1].time & FATHOM_TRACE_LAP) ==
		       (records[wrap_point].time & FATHOM_TRACE_LAP))
		wrap_point++;
	return wrap_point + 1;
}

/*
 * Goes back from the end to the oldest record that belongs to those after it: all are of this lap
 * or the one before, and times do not grow. Single records may have been begun and never filled; in
 * a copy that the thread has overtaken they are where it was overtaken.
 */
static uint64_t find_oldest(const struct fathom_stream *s)
{
	const uint64_t most_unfilled = s->is_over ? FATHOM_TRACE_SLACK : 0;
	uint64_t oldest = s->end;
	uint64_t earliest = UINT64_MAX;
	uint64_t time;

	for (uint64_t i = s->end; i-- > s->end - FATHOM_TRACE_RECORDS + FATHOM_TRACE_SLACK;) {
		if (!is_filled(s, i, &time)) {
			if (oldest - i > most_unfilled)
				break;
			continue;
		}
		if (time & FATHOM_TRACE_MORE) {
			oldest = i;
			continue;
		}
		if (time > earliest || !s->records[i % FATHOM_TRACE_RECORDS].site)
			break;
		earliest = time ? time : earliest;
		oldest = i;
	}
	return oldest;
}

/* Finds what is in the ring, or its copy; returns how many records that are. */
static uint64_t find_records(struct fathom_stream *s)
{
	const uint64_t wrap_point = find_wrap_point(s->records);

	/* Laps whose bits are as those of the records. */
	s->end = wrap_point +
		 FATHOM_TRACE_RECORDS * (s->records[wrap_point - 1].time & FATHOM_TRACE_LAP
						 ? UINT64_C(2)
						 : UINT64_C(1));
	s->taken = find_oldest(s);
	return s->end - s->taken;
}

void fathom_stream_rewind(struct fathom_stream *s)
{
	const size_t size = FATHOM_TRACE_RECORDS * sizeof *s->records;

	if (!s->head)
		return;
	if (!s->is_over && !s->copy)
		s->copy = malloc(size);
	s->records = s->copy ? s->copy : ring_of(s);
	/* Whoever writes meanwhile may overtake the copy, while this thread does not run. */
	for (int i = 0; i < COPIES; i++) {
		if (s->copy)
			memcpy(s->copy, ring_of(s), size);
		if (find_records(s) > FATHOM_TRACE_RECORDS / 2 || !s->copy ||
		    !s->records[FATHOM_TRACE_RECORDS - 1].site)
			break;
	}
	for (uint32_t i = 0; i < s->n_lanes; i++)
		s->lanes[i].calls.n = 0;
	fathom_ring_syscalls_deinit(&s->system_calls);
	s->ticks = 0;
}

void fathom_stream_forget_posts(struct fathom_stream *s, size_t n)
{
	while (s->posts.n - s->posts.first > n)
		fathom_post_deinit(&s->posts.items[s->posts.first++]);
	if (s->posts.first < n)
		return;
	memmove(s->posts.items, s->posts.items + s->posts.first,
		(s->posts.n - s->posts.first) * sizeof *s->posts.items);
	s->posts.n -= s->posts.first;
	s->posts.first = 0;
}
