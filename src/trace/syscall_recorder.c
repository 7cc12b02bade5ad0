/* SPDX-License-Identifier: MIT */
#include "trace/syscall_ranges.h"
#include "trace/machine.h"
#include "trace/recorder.h"

#define PAGE UINT64_C(4096)

/* Offsets are those that syscall_hook_x86_64.S has. */
_Static_assert(offsetof(struct fathom_trace_thread, stack) == 56, "");
_Static_assert(offsetof(struct fathom_trace_thread, scratch) == 72, "");
_Static_assert(offsetof(struct fathom_trace_syscall_frame, behind) == 24, "");
_Static_assert(offsetof(struct fathom_trace_syscall_frame, args) == 32, "");
_Static_assert(offsetof(struct fathom_trace_syscall_frame, rax) == 80, "");
_Static_assert(offsetof(struct fathom_trace_syscall_frame, stub) == 88, "");
_Static_assert(offsetof(struct fathom_trace_syscall_frame, flags) == 96, "");
_Static_assert(offsetof(struct fathom_trace_syscall_frame, sp) == 104, "");
_Static_assert(sizeof(struct fathom_trace_syscall_frame) % 16 == 0, "the stack stays aligned");
_Static_assert(FATHOM_TRACE_FIXED_PLANS + offsetof(struct fathom_trace_plans, may_be_recorded) ==
		       UINT64_C(0x7e9000107410),
	       "");

/* An event that is being written. */
struct event {
	struct fathom_trace_thread *thread;
	uint64_t first; /* number of its first record */
	uint64_t n;     /* records */
	uint64_t words; /* of 8 bytes, so far */
};

/* Returns how many records an event of @bytes has. */
static uint64_t records_of(uint64_t bytes)
{
	return 1 + (bytes + 15) / 16;
}

/*
 * Reserves the records of an event, by one instruction: a handler of a signal writes after them.
 */
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
static void finish(struct event *e, uint32_t site, uint32_t sp, uint32_t fp, uint64_t ticks)
{
	struct fathom_trace_record *r = record_at(e, 0);

	if (e->words & 1)
		put(e, 0);
	r->site = site;
	r->sp = sp;
	r->caller = (uint32_t)e->n;
	r->fp = fp;
	__atomic_store_n(&r->time, fathom_trace_lap(e->first) | ticks, __ATOMIC_RELEASE);
}

/* Returns whether the ring of @t has room for @n records, without waiting. */
static bool has_room(struct fathom_trace_thread *t, uint64_t n)
{
	if (t->cursor + n <= t->call_limit)
		return true;
	t->call_limit = fathom_trace_limit(fathom_trace_syscall_process(), t);
	return t->cursor + n <= t->call_limit;
}

static const struct fathom_trace_linked_call *linked(const struct fathom_trace_syscall_frame *f)
{
	return (const void *)f;
}

/* Appends the low bits of @n words of the stack, which can be read. */
static void put_words(struct event *e, const struct fathom_trace_syscall_frame *f, uint64_t n)
{
	const uint64_t sp = f->sp;
	uint64_t fault = 0;

	if (f->stub == FATHOM_TRACE_STUB_LINKED) {
		for (uint64_t i = 0; i < n; i += 2)
			put(e, linked(f)->words[i] | (uint64_t)linked(f)->words[i + 1] << 32);
		return;
	}
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

uint32_t fathom_trace_stack_words(uint64_t sp)
{
	const uint64_t in_page = (PAGE - (sp & (PAGE - 1))) / 16 * 2;
	uint64_t fault = 0;

	if (in_page >= FATHOM_TRACE_SYSCALL_WORDS)
		return FATHOM_TRACE_SYSCALL_WORDS;
	(void)fathom_trace_load_byte(sp + 8 * FATHOM_TRACE_SYSCALL_WORDS - 1, &fault);
	return fault ? (uint32_t)in_page : FATHOM_TRACE_SYSCALL_WORDS;
}

/* Returns how many words are recorded, in pairs. */
static uint32_t words_of(const struct fathom_trace_syscall_frame *f)
{
	return f->stub == FATHOM_TRACE_STUB_LINKED ? linked(f)->n_words
						   : fathom_trace_stack_words(f->sp);
}

/* Returns where the program goes on after the call of stub @stub. */
static uint64_t behind(uint64_t stub)
{
	int32_t distance;

	__builtin_memcpy(&distance, (const char *)stub + FATHOM_TRACE_STUB_JUMP, sizeof distance);
	return stub + FATHOM_TRACE_STUB_END + (uint64_t)(int64_t)distance;
}

/* Returns enum fathom_trace_syscall_flag of the call. */
static uint32_t flags_of(const struct fathom_trace_syscall_frame *f)
{
	if (fathom_trace_syscall_process()->is_followed)
		return 0;
	if (f->stub == FATHOM_TRACE_STUB_LINKED)
		return FATHOM_TRACE_SYSCALL_NESTS | linked(f)->flags;
	return FATHOM_TRACE_SYSCALL_NESTS |
	       (f->stub <= FATHOM_TRACE_STUB_I386 ? FATHOM_TRACE_SYSCALL_DISPATCHED : 0) |
	       (f->stub == FATHOM_TRACE_STUB_I386 ? FATHOM_TRACE_SYSCALL_I386 : 0);
}

/* Writes the event before the call, of @bytes, with the ranges @r if it has some. */
static void write_begin(struct fathom_trace_thread *t, struct fathom_trace_syscall_frame *f,
			uint32_t n_args, uint32_t n_words, uint64_t bytes,
			const struct fathom_trace_ranges *r)
{
	struct event e = reserve(t, records_of(bytes));

	f->begin = e.first;
	if (f->stub > FATHOM_TRACE_STUB_LINKED)
		f->behind = behind(f->stub);
	put(&e, f->behind);
	put(&e, f->sp);
	for (uint32_t i = 0; i < n_args && i < FATHOM_TRACE_SYSCALL_ARGS; i++)
		put(&e, f->args[i]);
	if (n_args > FATHOM_TRACE_SYSCALL_ARGS)
		put(&e, f->rax);
	put_words(&e, f, n_words);
	if (r)
		put_ranges(&e, r, false);
	finish(&e, FATHOM_TRACE_SYSCALL_BEGINS, (uint32_t)(f->sp >> 3),
	       fathom_trace_syscall_fp((uint32_t)f->rax, n_args, flags_of(f), n_words),
	       fathom_trace_ticks());
}

/* Writes the event before a call with memory; returns false if that is for the tracer. */
__attribute__((noinline)) static bool begin_with_memory(struct fathom_trace_thread *t,
							struct fathom_trace_syscall_frame *f,
							uint32_t n_args, uint32_t n_words,
							uint64_t bytes)
{
	struct fathom_trace_ranges ranges;

	if (f->run->is_large && fathom_trace_syscall_process()->is_followed) {
		fathom_trace_ranges_init(&ranges, fathom_trace_syscall_plans(), f,
					 FATHOM_TRACE_TIME_TRIED,
					 sizeof(struct fathom_trace_syscall_end));
		if (!fathom_trace_ranges_find(&ranges, f->run))
			return false;
	}
	fathom_trace_ranges_init(&ranges, fathom_trace_syscall_plans(), f, FATHOM_TRACE_TIME_BEFORE,
				 bytes);
	if (!fathom_trace_ranges_find(&ranges, f->run))
		return false;
	write_begin(t, f, n_args, n_words, ranges.bytes, &ranges);
	return true;
}

/* The run of a call of which nothing is said. */
static const struct fathom_trace_run none;

/* Writes the event before a call of which no plan tells what to record. */
__attribute__((noinline)) static int begin_without_plan(struct fathom_trace_thread *t,
							struct fathom_trace_syscall_frame *f,
							uint32_t n_words)
{
	const uint32_t n_args = FATHOM_TRACE_SYSCALL_ARGS + 1;

	f->run = &none;
	write_begin(t, f, n_args, n_words,
		    sizeof(struct fathom_trace_syscall_begin) + n_args * sizeof(uint64_t) +
			    n_words * sizeof(uint32_t),
		    NULL);
	return 1;
}

void fathom_trace_syscall_find_run(struct fathom_trace_syscall_frame *f, uint64_t number)
{
	const struct fathom_trace_plans *plans = fathom_trace_syscall_plans();
	const struct fathom_trace_plan *plan = &plans->plans[number % FATHOM_TRACE_PLANS];

	f->run = plan->selector ? fathom_trace_run_of(plans, plan, f) : &plan->run;
	if (number >= FATHOM_TRACE_PLANS || !f->run->is_recorded)
		f->run = &none;
}

int fathom_trace_syscall_begin(struct fathom_trace_syscall_frame *f)
{
	const struct fathom_trace_plan *plan =
		&fathom_trace_syscall_plans()->plans[f->rax % FATHOM_TRACE_PLANS];
	struct fathom_trace_thread *t = fathom_trace_self_block();
	const uint32_t n_words = fathom_trace_syscall_plans()->has_words ? words_of(f) : 0;
	const uint64_t bytes = sizeof(struct fathom_trace_syscall_begin) +
			       plan->n_args * sizeof(uint64_t) + n_words * sizeof(uint32_t);

	f->run = plan->selector ? fathom_trace_run_of(fathom_trace_syscall_plans(), plan, f)
				: &plan->run;
	/* Room for the event after the call, too: there is no other way then. */
	if (!t || !t->tid || !has_room(t, 2 * FATHOM_TRACE_SYSCALL_RECORDS))
		return 0;
	if (f->rax >= FATHOM_TRACE_PLANS || !f->run->is_recorded ||
	    f->stub == FATHOM_TRACE_STUB_I386)
		return fathom_trace_syscall_process()->is_followed
			       ? 0
			       : begin_without_plan(t, f, n_words);
	if (f->run->has_before || f->run->is_large)
		return begin_with_memory(t, f, plan->n_args, n_words, bytes);
	write_begin(t, f, plan->n_args, n_words, bytes, NULL);
	return 1;
}

/* Writes the event after the call as one record, without memory. */
static void write_return(struct fathom_trace_thread *t, const struct fathom_trace_syscall_frame *f,
			 uint64_t ticks)
{
	struct event e = reserve(t, 1);
	struct fathom_trace_record *r = record_at(&e, 0);

	r->site = FATHOM_TRACE_SYSCALL_RETURNS;
	r->sp = (uint32_t)f->rax;
	r->caller = (uint32_t)(f->rax >> 32);
	r->fp = (uint32_t)f->begin;
	__atomic_store_n(&r->time, fathom_trace_lap(e.first) | ticks, __ATOMIC_RELEASE);
}

/* Writes the event after a call with memory. */
__attribute__((noinline)) static void end_with_memory(struct fathom_trace_thread *t,
						      const struct fathom_trace_syscall_frame *f,
						      uint64_t ticks)
{
	struct fathom_trace_ranges ranges;
	struct event e;

	fathom_trace_ranges_init(&ranges, fathom_trace_syscall_plans(), f, FATHOM_TRACE_TIME_AFTER,
				 sizeof(struct fathom_trace_syscall_end));
	(void)fathom_trace_ranges_find(&ranges, f->run);
	/* Without room, handlers have taken it meanwhile. */
	if (!ranges.n || !has_room(t, records_of(ranges.bytes))) {
		write_return(t, f, ticks);
		return;
	}
	e = reserve(t, records_of(ranges.bytes));
	put(&e, f->begin);
	put(&e, f->rax);
	put_ranges(&e, &ranges, true);
	finish(&e, FATHOM_TRACE_SYSCALL_ENDS, (uint32_t)(f->sp >> 3), (uint32_t)f->begin, ticks);
}

void fathom_trace_syscall_end(struct fathom_trace_syscall_frame *f)
{
	const uint64_t ticks = fathom_trace_ticks();
	struct fathom_trace_thread *t = fathom_trace_self_block();

	if (f->run->has_after)
		end_with_memory(t, f, ticks);
	else
		write_return(t, f, ticks);
}
