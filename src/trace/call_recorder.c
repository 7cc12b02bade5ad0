/* SPDX-License-Identifier: MIT */
#include "trace/call_ranges.h"
#include "trace/machine.h"
#include "trace/recorder.h"

#define PAGE UINT64_C(4096)

_Static_assert(offsetof(struct fathom_trace_thread, stack) == 56, "as call_hook_x86_64.S has it");
_Static_assert(offsetof(struct fathom_trace_call_frame, behind) == 16, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, args) == 24, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, rax) == 72, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, stub) == 80, "");
_Static_assert(offsetof(struct fathom_trace_call_frame, flags) == 88, "");

/* An event that is being written. */
struct event {
	struct fathom_trace_thread *thread;
	uint64_t first; /* number of its first record */
	uint64_t n;     /* records */
	uint64_t words; /* of 8 bytes, so far */
};

static const struct fathom_trace_process *process(void)
{
	return (const void *)FATHOM_TRACE_FIXED_PROCESS;
}

static const struct fathom_trace_plans *plans(void)
{
	return (const void *)FATHOM_TRACE_FIXED_PLANS;
}

/* Returns how many records an event of @bytes has. */
static uint64_t records_of(uint64_t bytes)
{
	return 1 + (bytes + 15) / 16;
}

/* Reserves the records of an event, by one instruction: a handler of a signal writes behind them.
 */
static struct event reserve(struct fathom_trace_thread *t, uint64_t n)
{
	struct event e = { .thread = t, .first = n, .n = n };

	__asm__ volatile("xaddq %0, %1" : "+r"(e.first), "+m"(t->cursor) : : "cc");
	return e;
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

/* Puts the lengths of entries of a directory at @avma, of which @size bytes were found. */
static void put_entries(struct event *e, uint64_t avma, uint64_t size)
{
	for (uint64_t i = 0; i < size;) {
		uint64_t word = 0;

		for (unsigned k = 0; k < 4 && i < size; k++, i += 2) {
			const uint64_t length = fathom_trace_entry_length(avma);

			word |= length << 16 * k;
			avma += length;
		}
		put(e, word);
	}
}

/* Copies @r; what has gone since it was looked at is 0. */
static void put_range(struct event *e, const struct fathom_trace_range *r, bool at_exit)
{
	uint64_t fault = 0;

	put(e, r->avma);
	put(e, r->size | (uint64_t)at_exit << 32);
	if (r->size & FATHOM_TRACE_ENTRIES_BIT) {
		put_entries(e, r->avma, r->size & ~FATHOM_TRACE_ENTRIES_BIT);
		return;
	}
	for (uint64_t i = 0; i < r->size; i += 8) {
		uint64_t word = 0;

		if (i + 8 <= r->size)
			word = fathom_trace_load(r->avma + i, &fault);
		else
			for (uint64_t k = 0; i + k < r->size; k++)
				word |= fathom_trace_load_byte(r->avma + i + k, &fault) << 8 * k;
		put(e, word);
	}
}

static void put_ranges(struct event *e, const struct fathom_trace_ranges *r, bool at_exit)
{
	for (uint32_t i = 0; i < r->n; i++)
		put_range(e, &r->items[i], at_exit);
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
	limit = fathom_trace_limit(process(), t);
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

uint64_t fathom_trace_entry_length(uint64_t avma)
{
	uint64_t fault = 0;
	const uint64_t low = fathom_trace_load_byte(avma + FATHOM_TRACE_ENTRY_LENGTH, &fault);

	return low | fathom_trace_load_byte(avma + FATHOM_TRACE_ENTRY_LENGTH + 1, &fault) << 8;
}

/* Returns how many words of the stack at @sp are recorded: pairs that lie in its page. */
static uint64_t stack_words(uint64_t sp)
{
	const uint64_t in_page = (PAGE - (sp & (PAGE - 1))) / 16 * 2;

	return !plans()->has_words                 ? 0
	       : in_page < FATHOM_TRACE_CALL_WORDS ? in_page
						   : FATHOM_TRACE_CALL_WORDS;
}

/* Returns where the program goes on behind the call of stub @stub. */
static uint64_t behind(uint64_t stub)
{
	int32_t distance;

	__builtin_memcpy(&distance, (const char *)stub + FATHOM_TRACE_STUB_JUMP, sizeof distance);
	return stub + FATHOM_TRACE_STUB_END + (uint64_t)(int64_t)distance;
}

/* Writes the event before the call, with the ranges @r. */
static void write_begin(struct fathom_trace_thread *t, struct fathom_trace_call_frame *f,
			uint64_t n_args, uint64_t n_words, const struct fathom_trace_ranges *r)
{
	struct event e = reserve(t, records_of(r->bytes));

	f->begin = e.first;
	put(&e, f->rax | n_args << 32 | n_words << 48);
	put(&e, f->behind);
	put(&e, f->sp);
	for (unsigned i = 0; i < n_args; i++)
		put(&e, f->args[i]);
	put_words(&e, f->sp, n_words);
	put_ranges(&e, r, false);
	finish(&e, FATHOM_TRACE_CALL_BEGINS, f->sp, fathom_trace_ticks());
}

/* Finds what is recorded before the call of @f in @ret; returns false if that is for the tracer. */
static bool find_before(const struct fathom_trace_call_frame *f, const struct fathom_trace_run *run,
			uint64_t bytes, struct fathom_trace_ranges *ret)
{
	if (run->is_large) {
		fathom_trace_ranges_init(ret, plans(), f, FATHOM_TRACE_TIME_TRIED,
					 sizeof(struct fathom_trace_call_end));
		if (!fathom_trace_ranges_find(ret, run))
			return false;
	}
	fathom_trace_ranges_init(ret, plans(), f, FATHOM_TRACE_TIME_BEFORE, bytes);
	return fathom_trace_ranges_find(ret, run);
}

int fathom_trace_call_begin(struct fathom_trace_call_frame *f)
{
	const struct fathom_trace_plan *plan = &plans()->plans[f->rax % FATHOM_TRACE_PLANS];
	const struct fathom_trace_run *run = fathom_trace_run_of(plans(), plan, f);
	struct fathom_trace_thread *t = fathom_trace_own_block();
	const uint64_t n_words = stack_words(f->sp);
	struct fathom_trace_ranges ranges;

	/* Room for the event behind the call, too: there is no other way then. */
	if (f->rax >= FATHOM_TRACE_PLANS || !run->is_recorded || !t || !t->tid ||
	    !has_room(t, 2 * FATHOM_TRACE_CALL_RECORDS) ||
	    !find_before(f, run,
			 sizeof(struct fathom_trace_call_begin) + plan->n_args * sizeof(uint64_t) +
				 n_words * sizeof(uint32_t),
			 &ranges))
		return 0;
	f->behind = behind(f->stub);
	write_begin(t, f, plan->n_args, n_words, &ranges);
	return 1;
}

void fathom_trace_call_end(struct fathom_trace_call_frame *f)
{
	const uint64_t ticks = fathom_trace_ticks();
	const uint64_t bytes = sizeof(struct fathom_trace_call_end);
	struct fathom_trace_thread *t = fathom_trace_own_block();
	const struct event begin = { .thread = t, .first = f->begin };
	struct fathom_trace_ranges ranges;
	struct event e;
	uint32_t number;

	/* The record before the call knows which it was. */
	__builtin_memcpy(&number, &record_at(&begin, 1)->site, sizeof number);
	fathom_trace_ranges_init(&ranges, plans(), f, FATHOM_TRACE_TIME_AFTER, bytes);
	(void)fathom_trace_ranges_find(
		&ranges,
		fathom_trace_run_of(plans(), &plans()->plans[number % FATHOM_TRACE_PLANS], f));
	if (!has_room(t, records_of(ranges.bytes))) {
		/* Handlers have taken it meanwhile. */
		ranges.n = 0;
		ranges.bytes = bytes;
	}
	e = reserve(t, records_of(ranges.bytes));
	put(&e, f->begin);
	put(&e, f->rax);
	put_ranges(&e, &ranges, true);
	finish(&e, FATHOM_TRACE_CALL_ENDS, f->sp, ticks);
}
