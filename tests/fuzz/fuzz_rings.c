/* SPDX-License-Identifier: MIT */
/*
 * Rings of a traced program that writes what it likes, at any time: records, also of system calls,
 * and what the heads say. Whatever they hold, what is told names functions that were loaded, and
 * reading ends.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../lib/ring_program.h"
#include "host/events/event_filter.h"
#include "safe/trace/syscall_ring.h"

#define RINGS 2

/* Sites: numbers from 0 on, an entry and a return for each function. */
#define FUNCTIONS 8

/* From this number on a site is a system call. */
#define CALL 0xf0

static struct fathom_site_range *make_span(void)
{
	struct fathom_site_range *span = fathom_site_range_create();

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		const struct fathom_trace_function f = { .name = "f", .module = "m", .number = i };
		const struct fathom_site_range_site entry = {
			.size = 16,
			.number = 2 * i,
			.function = i,
			.place = FATHOM_SITE_ENTRY,
			.selection = i == 3   ? FATHOM_SELECT_UNDER
				     : i == 4 ? FATHOM_TRACE_AT_STACK
					      : 0
		};
		const struct fathom_site_range_site end = {
			.size = 16, .number = 2 * i + 1, .function = i, .place = FATHOM_SITE_RETURN
		};

		if (!fathom_array_push(&span->functions, f) || !fathom_array_push(span, entry) ||
		    !fathom_array_push(span, end))
			abort();
	}
	fathom_site_range_finish(span);
	return span;
}

static int take(void *data, const struct fathom_trace_event *events, size_t n)
{
	(void)data;
	for (size_t i = 0; i < n; i++) {
		const struct fathom_trace_event *e = &events[i];
		const bool is_call = e->type == FATHOM_TRACE_CALL ||
				     e->type == FATHOM_TRACE_RETURN ||
				     e->type == FATHOM_TRACE_CALLER;

		if (e->syscall) {
			/* Somebody reads all of it. */
			if ((e->type != FATHOM_TRACE_SYSCALL &&
			     e->type != FATHOM_TRACE_SYSCALL_ENTRY) ||
			    memchr(e->syscall->text, '\0', e->syscall->text_size))
				abort();
			continue;
		}
		if (!e->type || e->type > FATHOM_TRACE_CALLER || is_call != (e->function != NULL) ||
		    is_call == (e->text != NULL) || !e->count ||
		    (is_call && e->function->number >= FUNCTIONS))
			abort();
	}
	return 1;
}

static int control(void *data)
{
	(void)data;
	return FATHOM_TRACE_TELL;
}

/*
 * Writes an event of a system call, of several records: its begin, or its end; that may have one.
 */
static void write_call(struct fuzz *f, struct fathom_program *pr, uint32_t ring, uint64_t *next)
{
	const uint8_t kind = fuzz_byte(f);
	const bool is_end = kind & 1;
	const bool is_return = is_end && kind & 16;
	const uint32_t n = is_return ? 1 : 2 + (kind >> 1 & 15);
	const uint32_t fp = (uint32_t)fuzz_number(f);

	for (uint32_t i = 1; i < n; i++) {
		struct fathom_trace_record *r = ring_program_record(pr, ring, next[ring] + i);
		uint64_t words[2] = { fuzz_number(f), fuzz_number(f) };

		if (i == 1 && is_end)
			words[0] = next[ring] - (words[0] & 31);
		else if (kind & 128)
			words[1] &= UINT64_C(0x18000003f);
		r->time = fathom_trace_lap(next[ring] + i) | FATHOM_TRACE_MORE;
		memcpy(&r->site, words, sizeof words);
	}
	*ring_program_record(pr, ring, next[ring]) = (struct fathom_trace_record){
		.time = fathom_trace_lap(next[ring]) | fuzz_number(f) >> 40,
		.site = is_return ? FATHOM_TRACE_SYSCALL_RETURNS
			: is_end  ? FATHOM_TRACE_SYSCALL_ENDS
				  : FATHOM_TRACE_SYSCALL_BEGINS,
		.sp = fp,
		.caller = kind & 32 ? (uint32_t)fuzz_number(f) : n,
		.fp = is_end      ? (uint32_t)next[ring] - (fp & 31)
		      : kind & 64 ? fp & 0x0f0701ff
				  : fp,
	};
	next[ring] += n;
}

/* Writes into the memory that is shared: a record, near where the ring is, or anything. */
static void write_memory(struct fuzz *f, struct fathom_program *pr, uint64_t *next, uint8_t op)
{
	const uint32_t ring = op >> 4 & 1;
	const uint64_t i = next[ring] + (op & 0x80 ? fuzz_byte(f) : 0);
	struct fathom_trace_record record = { .time = fuzz_number(f) >> 40 };
	char *base = (char *)pr->head;

	if (op & 0x40) {
		const uint64_t word = fuzz_number(f);

		memcpy(base + record.time % (sizeof *pr->head +
					     RINGS * sizeof(struct fathom_trace_ring) - 8),
		       &word, sizeof word);
		return;
	}
	record.time |= fathom_trace_lap(i);
	record.site = fuzz_byte(f);
	if (record.site >= CALL) {
		write_call(f, pr, ring, next);
		return;
	}
	record.site %= 2 * FUNCTIONS + 2;
	record.sp = (uint32_t)fuzz_number(f) >> (op & 0x20 ? 0 : 22);
	record.caller = (uint32_t)fuzz_number(f) >> 26;
	record.fp = (uint32_t)fuzz_number(f) >> (op & 0x20 ? 0 : 19);
	memcpy(base + pr->rings_off +
		       (ring * FATHOM_TRACE_RECORDS + i % FATHOM_TRACE_RECORDS) * sizeof record,
	       &record, sizeof record);
	if (i == next[ring])
		next[ring]++;
}

/* Writes so many records that a ring is spooled. */
static void write_run(struct fuzz *f, struct fathom_program *pr, uint32_t ring, uint64_t *next)
{
	const uint64_t end = next[ring] + fuzz_byte(f) * UINT64_C(256);

	for (uint64_t i = next[ring]; i < end; i++)
		*ring_program_record(pr, ring, i) =
			(struct fathom_trace_record){ .time = fathom_trace_lap(i) | (i & 0xffff),
						      .site = (uint32_t)(i % (2 * FUNCTIONS)),
						      .sp = 0x800 - (uint32_t)(i % 8) };
	next[ring] = end;
}

static void post(struct fuzz *f, struct fathom_rings *r, struct fathom_program *pr, uint8_t op,
		 uint64_t ticks)
{
	struct fathom_post p = { .ring = { pr, op >> 4 & 1 },
				 .ticks = ticks,
				 .cursor = fuzz_byte(f) };

	p.type = op & 0x20 ? FATHOM_TRACE_SIGNAL : FATHOM_TRACE_START;
	p.sp = fuzz_number(f) & 0xffff;
	if (op & 0x40)
		p.begins = (struct fathom_ring_name){ pr, op >> 5 & 1 };
	p.is_copy = op & 8;
	p.is_release = op & 0x80 && !(op & 0x40);
	p.is_silent = op & 4;
	p.text = op & 2 ? NULL : strdup("text");
	fathom_rings_post(r, &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size < 4096 ? size : 4096);
	const uint8_t flags = fuzz_byte(&f);
	const struct fathom_trace_at stack = { .query = "f", .actions = FATHOM_TRACE_AT_STACK };
	const struct fathom_trace_syscalls calls = { .size = sizeof calls,
						     .flags = FATHOM_SYSCALLS_ENTRIES,
						     .string_limit = 32 };
	const struct fathom_trace_options options = {
		.size = sizeof options,
		.flags = (flags & 1 ? FATHOM_TRACE_NO_FOLD : 0) |
			 (flags & 16 ? FATHOM_TRACE_LATEST : 0),
		.events = take,
		.control = control,
		.syscalls = flags & 64 ? &calls : NULL,
		.spool = flags & 128 ? "/tmp" : NULL,
		.spool_size = UINT64_C(4) << 20,
		.at = &stack,
		.n_at = flags >> 5 & 1,
		.n_under = flags >> 1 & 1,
		.depth = flags >> 2 & 3
	};
	struct fathom_timestamp_pair now = { 0, 0 };
	struct fathom_program *pr = ring_program_create(RINGS);
	uint64_t next[RINGS] = { 0 };
	struct fathom_rings *r;

	if (fathom_rings_create(&options, &now, &r))
		abort();
	fathom_rings_post(r, &(struct fathom_post){ .span = make_span() });
	fathom_rings_post(r, &(struct fathom_post){ .begins = { pr, 0 }, .sp = 0x8000 });
	while (f.p < f.end) {
		const uint8_t op = fuzz_byte(&f);

		if (flags & 128 && (op & 15) == 8) {
			write_run(&f, pr, op >> 4 & 1, next);
		} else if ((op & 3) < 2) {
			write_memory(&f, pr, next, op);
		} else if ((op & 3) == 2) {
			post(&f, r, pr, op, now.ticks + fuzz_byte(&f));
		} else {
			now.ticks += fuzz_number(&f) >> 44;
			now.ns += op;
			(void)fathom_rings_take(r, &now, false);
		}
	}
	(void)fathom_rings_take(r, &now, true);
	(void)fathom_rings_lost(r);
	fathom_rings_destroy(r);
	fathom_program_release(pr);
	return 0;
}
