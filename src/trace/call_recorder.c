/* SPDX-License-Identifier: MIT */
#include <stdbool.h>

#include "safe/trace/call_ring.h"
#include "trace/call_hook.h"
#include "trace/machine.h"
#include "trace/recorder.h"

#define PAGE UINT64_C(4096)

_Static_assert(offsetof(struct fathom_trace_thread, stack) == 56, "as call_hook_x86_64.S has it");
_Static_assert(offsetof(struct fathom_trace_call_frame, behind) == 16, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, args) == 24, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, rax) == 72, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, stub) == 80, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, flags) == 88, "");

/* A piece that is to be recorded. */
struct piece {
	uint64_t avma;
	uint64_t size;
};

/* An event that is being written. */
struct event {
	struct fathom_trace_thread *thread;
	uint64_t first; /* number of its first record */
	uint64_t n;     /* records */
	uint64_t words; /* of 8 bytes, so far */
};

static uint64_t padded(uint64_t size)
{
	return (size + 7) & ~UINT64_C(7);
}

/* Returns how many records an event of @bytes has. */
static uint64_t records_of(uint64_t bytes)
{
	return 1 + (bytes + 15) / 16;
}

/* Returns whether all of @size bytes at @avma can be read. The page of @known can. */
static bool can_read(uint64_t avma, uint64_t size, uint64_t known)
{
	const uint64_t end = avma + size;

	if (end < avma)
		return false;
	for (uint64_t page = avma & ~(PAGE - 1); page < end; page += PAGE)
		if (page != (known & ~(PAGE - 1)) && !fathom_trace_is_there(page))
			return false;
	return true;
}

/* Returns the bytes of the string at @avma with its NUL, @most if it is longer; 0: not readable. */
static uint64_t string_size(uint64_t avma, uint64_t most, uint64_t known)
{
	uint64_t fault = 0;

	for (uint64_t n = 0; n < most; n++) {
		const uint64_t at = avma + n;

		if ((!n || !(at & (PAGE - 1))) && (at ^ known) >= PAGE &&
		    !fathom_trace_is_there(at))
			return 0;
		/* Eight at once, if none of them is 0. */
		while (!(at & 7) && n + 8 <= most) {
			const uint64_t word = fathom_trace_load(avma + n, &fault);

			if (fault ||
			    (word - UINT64_C(0x0101010101010101)) & ~word &
				    UINT64_C(0x8080808080808080) ||
			    !((avma + n + 8) & (PAGE - 1)))
				break;
			n += 8;
		}
		if (n < most && !fathom_trace_load_byte(avma + n, &fault))
			return fault ? 0 : n + 1;
	}
	return most;
}

/* Returns the bit of the case of @plan that @f is; 0: it has none. */
static uint64_t case_of(const struct fathom_trace_plan *plan,
			const struct fathom_trace_call_frame *f)
{
	const uint64_t value = plan->selector ? f->args[plan->selector - 1] & plan->mask : 0;

	return value < 64 ? UINT64_C(1) << value : 0;
}

/* Returns whether the arguments are of a kind that @plan has pieces for. */
static bool has_plan(const struct fathom_trace_plan *plan, const struct fathom_trace_call_frame *f)
{
	return plan->is_recorded && !(plan->zero && f->args[plan->zero - 1]) &&
	       !(plan->selector && !(plan->allowed & case_of(plan, f)));
}

/* Finds the pieces of @plan that are recorded @when; false if one cannot be read. */
static bool find_pieces(const struct fathom_trace_plan *plan,
			const struct fathom_trace_call_frame *f, bool is_before,
			struct piece pieces[FATHOM_TRACE_PIECES], uint64_t *ret_bytes)
{
	const bool has_failed = !is_before && (int64_t)f->rax < 0 && (int64_t)f->rax >= -4095;
	const uint64_t bit = case_of(plan, f);
	bool is_whole = true;

	for (unsigned i = 0; i < plan->n && i < FATHOM_TRACE_PIECES; i++) {
		const struct fathom_trace_piece *p = &plan->pieces[i];
		const uint64_t avma = f->args[p->argument];
		uint64_t size = p->most;

		pieces[i].size = 0;
		if ((p->when == FATHOM_TRACE_BEFORE) != is_before || !avma ||
		    (p->when == FATHOM_TRACE_AFTER_SUCCESS && has_failed) ||
		    (p->cases && !(p->cases & bit)))
			continue;
		if (p->is_string) {
			size = string_size(avma, p->most, f->sp);
			is_whole &= size != 0;
		} else {
			const uint64_t n = p->count == FATHOM_TRACE_COUNT_ONE ? 1
					   : p->count == FATHOM_TRACE_COUNT_RESULT
						   ? f->rax
						   : f->args[p->count];

			if (n < p->most / p->size)
				size = n * p->size;
			else if (p->is_whole && n > p->most / p->size)
				is_whole = false;
			if (!can_read(avma, size, f->sp)) {
				is_whole = false;
				size = 0;
			}
		}
		pieces[i] = (struct piece){ avma, size };
		if (size)
			*ret_bytes += sizeof(struct fathom_trace_call_end) + padded(size);
	}
	return is_whole;
}

static struct event reserve(struct fathom_trace_thread *t, uint64_t n)
{
	return (struct event){ .thread = t, .first = fathom_trace_reserve(&t->cursor, n), .n = n };
}

static struct fathom_trace_record *record_at(const struct event *e, uint64_t i)
{
	return &e->thread->records[(e->first + i) % FATHOM_TRACE_RECORDS];
}

static void put(struct event *e, uint64_t word)
{
	struct fathom_trace_record *r = record_at(e, 1 + e->words / 2);
	uint64_t *words = (uint64_t *)(void *)&r->site;

	words[e->words & 1] = word;
	if (e->words & 1)
		__atomic_store_n(&r->time,
				 fathom_trace_lap(e->first + 1 + e->words / 2) | FATHOM_TRACE_MORE,
				 __ATOMIC_RELEASE);
	e->words++;
}

/* Copies @p; what has gone since it was looked at is 0. */
static void put_piece(struct event *e, const struct piece *p, bool at_exit)
{
	uint64_t fault = 0;

	put(e, p->avma);
	put(e, p->size | (uint64_t)at_exit << 32);
	for (uint64_t i = 0; i < p->size; i += 8) {
		uint64_t word = 0;

		if (i + 8 <= p->size)
			word = fathom_trace_load(p->avma + i, &fault);
		else
			for (uint64_t k = 0; i + k < p->size; k++)
				word |= fathom_trace_load_byte(p->avma + i + k, &fault) << 8 * k;
		put(e, word);
	}
}

static void put_pieces(struct event *e, const struct fathom_trace_plan *plan,
		       const struct piece *pieces, bool at_exit)
{
	for (unsigned i = 0; i < plan->n && i < FATHOM_TRACE_PIECES; i++)
		if (pieces[i].size)
			put_piece(e, &pieces[i], at_exit);
}

/* Fills the first record, by which the reader sees all of it. */
static void finish(struct event *e, uint32_t site, uint64_t sp, uint64_t ticks)
{
	struct fathom_trace_record *r = record_at(e, 0);

	if (e->words & 1)
		put(e, 0);
	r->site = site;
	r->sp = (uint32_t)(sp >> 3);
	r->caller = (uint32_t)e->n;
	r->fp = (uint32_t)(e->first & UINT32_MAX);
	__atomic_store_n(&r->time, fathom_trace_lap(e->first) | ticks, __ATOMIC_RELEASE);
}

/* Returns whether the ring of @t has room for @n records, without waiting. */
static bool has_room(struct fathom_trace_thread *t, uint64_t n)
{
	uint64_t limit = t->limit;

	if (t->cursor + n <= limit)
		return true;
	limit = fathom_trace_limit(fathom_trace_call_process(), t);
	/* Where functions are not recorded, their hook is to ask first. */
	if (t->first + t->change > 0)
		t->limit = limit;
	return t->cursor + n <= limit;
}

/* Appends the low bits of words of the stack, as far as its page reaches. */
static void put_words(struct event *e, uint64_t sp, uint64_t n)
{
	uint64_t fault = 0;

	for (uint64_t i = 0; i < n; i += 2)
		put(e, (fathom_trace_load(sp + 8 * i, &fault) & UINT32_MAX) |
			       fathom_trace_load(sp + 8 * i + 8, &fault) << 32);
}

int fathom_trace_call_begin(struct fathom_trace_call_frame *f)
{
	const struct fathom_trace_plan *plan =
		&fathom_trace_call_plans()->plans[f->rax % FATHOM_TRACE_PLANS];
	const bool has_tracer = fathom_trace_call_process()->is_followed;
	struct fathom_trace_thread *t = fathom_trace_own_block();
	const uint64_t sp = f->sp;
	const uint64_t in_page = (PAGE - (sp & (PAGE - 1))) / 16 * 2;
	const bool is_planned = f->rax < FATHOM_TRACE_PLANS && has_plan(plan, f);
	const unsigned n_args = is_planned ? plan->n_args : FATHOM_TRACE_CALL_ARGS;
	struct piece pieces[FATHOM_TRACE_PIECES];
	uint64_t bytes = sizeof(struct fathom_trace_call_begin) + n_args * sizeof(uint64_t);
	uint64_t n_words = 0;
	const uint8_t flags = (has_tracer ? 0 : FATHOM_TRACE_CALL_NESTS) |
			      (f->stub ? 0 : FATHOM_TRACE_CALL_DISPATCHED);
	struct event e;

	/* Room for the event behind the call, too: there is no other way then. */
	if ((!is_planned && has_tracer) || !t || !t->tid ||
	    !has_room(t, 2 * FATHOM_TRACE_CALL_RECORDS) ||
	    (is_planned && !find_pieces(plan, f, true, pieces, &bytes) && has_tracer))
		return 0;
	if (fathom_trace_call_plans()->has_words)
		n_words = in_page < FATHOM_TRACE_CALL_WORDS ? in_page : FATHOM_TRACE_CALL_WORDS;
	e = reserve(t, records_of(bytes + n_words * sizeof(uint32_t)));
	f->begin = e.first;
	put(&e,
	    (f->rax & UINT32_MAX) | (uint64_t)n_args << 32 | (uint64_t)flags << 40 | n_words << 48);
	put(&e, f->behind);
	put(&e, sp);
	for (unsigned i = 0; i < n_args; i++)
		put(&e, f->args[i]);
	put_words(&e, sp, n_words);
	if (is_planned)
		put_pieces(&e, plan, pieces, false);
	finish(&e, FATHOM_TRACE_CALL_BEGINS, sp, fathom_trace_ticks());
	return 1;
}

void fathom_trace_call_end(struct fathom_trace_call_frame *f)
{
	const uint64_t ticks = fathom_trace_ticks();
	struct fathom_trace_thread *t = fathom_trace_own_block();
	uint32_t number;
	const struct fathom_trace_plan *plan;
	struct piece pieces[FATHOM_TRACE_PIECES] = { { .size = 0 } };
	uint64_t bytes = sizeof(struct fathom_trace_call_end);
	const struct event begin = { .thread = t, .first = f->begin };
	struct event e;

	/* The record before the call knows which it was. */
	__builtin_memcpy(&number, &record_at(&begin, 1)->site, sizeof number);
	plan = &fathom_trace_call_plans()->plans[number % FATHOM_TRACE_PLANS];
	if (number < FATHOM_TRACE_PLANS && has_plan(plan, f))
		(void)find_pieces(plan, f, false, pieces, &bytes);
	if (!has_room(t, records_of(bytes))) {
		/* Handlers have taken it meanwhile. */
		__builtin_memset(pieces, 0, sizeof pieces);
		bytes = sizeof(struct fathom_trace_call_end);
	}
	e = reserve(t, records_of(bytes));
	put(&e, f->begin);
	put(&e, f->rax);
	put_pieces(&e, plan, pieces, true);
	finish(&e, FATHOM_TRACE_CALL_ENDS, f->sp, ticks);
}
