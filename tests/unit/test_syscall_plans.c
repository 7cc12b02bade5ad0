/* SPDX-License-Identifier: MIT */
/*
 * Plans of system calls: what the hook records by a plan makes the same text as what the tracer
 * reads by the types of the call. Calls of each number, and of each value of an argument that
 * selects others, have random arguments and memory, which changes during the call.
 */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What the library has of the hook reads the memory of its own process. */
#define fathom_trace_load            load_of_test
#define fathom_trace_load_byte       load_byte_of_test
#define fathom_trace_is_there        is_there_of_test
#define fathom_trace_entry_length    entry_length_of_test
#define fathom_trace_syscall_process process_of_test
#define fathom_trace_ranges_init     ranges_init_of_test
#define fathom_trace_ranges_find     ranges_find_of_test
#define fathom_trace_run_of          run_of_test

#include "host/syscalls/syscall_capture.h"
#include "host/syscalls/syscall_plans.h"
#include "host/syscalls/syscall_table.h"
#include "safe/base/bytes.h"
#include "trace/syscall_ranges.h"

/* The hook's, over memory that this test has. */
#include "trace/syscall_ranges.c"

/* The memory: pages between two that nobody can read. */
#define ARENA (8 * PAGE)
#define ROOM  (1u << 20)
#define TEXT  (1u << 20)

static uint8_t *arena;
static uint8_t *planned;
static uint8_t *captured;
static uint8_t *again;
static char *texts[2];
static struct fathom_trace_plans *plans;

static uint64_t base(void)
{
	return (uint64_t)(uintptr_t)arena;
}

static bool is_inside(uint64_t avma)
{
	return avma - base() < ARENA;
}

/* One that a tracer follows. */
const struct fathom_trace_process *fathom_trace_syscall_process(void)
{
	static const struct fathom_trace_process process = { .is_followed = 1 };

	return &process;
}

bool fathom_trace_is_there(uint64_t avma)
{
	return is_inside(avma);
}

uint64_t fathom_trace_load_byte(uint64_t avma, uint64_t *ret_fault)
{
	/* All is looked at before it is loaded. */
	assert_true(is_inside(avma));
	(void)ret_fault;
	return arena[avma - base()];
}

uint64_t fathom_trace_load(uint64_t avma, uint64_t *ret_fault)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8; i++)
		value |= fathom_trace_load_byte(avma + i, ret_fault) << 8 * i;
	return value;
}

uint64_t fathom_trace_entry_length(uint64_t avma)
{
	uint64_t fault = 0;

	return fathom_trace_load_byte(avma + FATHOM_TRACE_ENTRY_LENGTH, &fault) |
	       fathom_trace_load_byte(avma + FATHOM_TRACE_ENTRY_LENGTH + 1, &fault) << 8;
}

/* Up to the end of the page that cannot be read, as the kernel copies. */
static size_t read_arena(void *data, uint64_t avma, void *to, size_t size)
{
	const uint64_t left = is_inside(avma) ? base() + ARENA - avma : 0;

	(void)data;
	size = size < left ? size : (size_t)left;
	if (size)
		memcpy(to, arena + (avma - base()), size);
	return size;
}

static const struct fathom_reader memory = { .read = read_arena };

static uint64_t state;

static uint64_t random_number(uint64_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 33) % below;
}

/* An address, which often is near the end of what can be read. */
static uint64_t random_address(void)
{
	return base() +
	       (random_number(4) ? random_number(ARENA / 8) * 8 : ARENA - random_number(200));
}

static uint64_t random_word(void)
{
	switch (random_number(8)) {
	case 0:
		return 0;
	case 1:
		return random_number(UINT32_MAX) << 32 | random_number(UINT32_MAX);
	case 2:
		return random_number(64) << 32 | random_number(64);
	case 3:
		return UINT64_C(0x6f6c6c6568) << 8 * random_number(4);
	case 4:
	case 5:
		return random_address();
	default:
		return random_number(40);
	}
}

static void fill(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint64_t word = random_word();

		memcpy(arena + (n == ARENA / 8 ? i : random_number(ARENA / 8)) * 8, &word, 8);
	}
}

/* Appends the ranges, as the reader of a ring does. */
static void add_ranges(struct fathom_syscall_record *record, const struct fathom_trace_ranges *r,
		       bool at_exit)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const uint64_t size = r->items[i].size & ~(uint64_t)FATHOM_TRACE_ENTRIES_BIT;
		uint64_t avma = r->items[i].avma;

		if (r->items[i].size == size) {
			assert_true(is_inside(avma) && size <= base() + ARENA - avma);
			fathom_syscall_record_add(record, avma, at_exit, arena + (avma - base()),
						  size);
			continue;
		}
		for (uint64_t k = 0; k < size; k += 2) {
			const uint64_t length = fathom_trace_entry_length(avma);
			const uint8_t bytes[2] = { (uint8_t)length, (uint8_t)(length >> 8) };

			fathom_syscall_record_add(record, avma + FATHOM_TRACE_ENTRY_LENGTH, at_exit,
						  bytes, sizeof bytes);
			avma += length;
		}
	}
}

/* Returns a result that the call may have: no more elements than there is room for. */
static int64_t random_result(const struct fathom_trace_run *run, const uint64_t args[6])
{
	static const int64_t results[] = {
		0, 0, 1, 2, 7, 30, 100, 4096, -22, -4, -75, -516, 32760
	};
	int64_t result = results[random_number(sizeof results / sizeof *results)];

	for (unsigned i = run->first; i < run->first + run->n; i++)
		if (plans->ranges[i].at_most && result > 0 &&
		    (uint64_t)result > args[plans->ranges[i].at_most - 1])
			result = (int64_t)args[plans->ranges[i].at_most - 1];
	return result;
}

static void format(struct fathom_syscall_record *record,
		   const struct fathom_syscall_options *options, char *text)
{
	struct fathom_text out = text_init(text, TEXT);

	fathom_syscall_format(record, options, &out, NULL);
	fathom_text_end(&out);
}

/*
 * Makes the call by its plan and by its types, and compares the texts; false if the plan leaves it
 * to the tracer.
 */
static bool make_both(const struct fathom_syscall_options *options,
		      const struct fathom_syscall_call *call)
{
	static struct fathom_trace_ranges ranges;
	const struct fathom_trace_plan *plan = &plans->plans[call->number];
	/* The page of the stack can be read. */
	struct fathom_trace_syscall_frame f = { .rax = call->number, .sp = base() };
	const struct fathom_trace_run *run;
	struct fathom_syscall_record by_plan;
	struct fathom_syscall_record by_types;
	struct fathom_syscall_record completed;

	memcpy(f.args, call->args, sizeof f.args);
	run = fathom_trace_run_of(plans, plan, &f);
	if (!run->is_recorded)
		return false;
	if (run->is_large) {
		fathom_trace_ranges_init(&ranges, plans, &f, FATHOM_TRACE_TIME_TRIED, 16);
		if (!fathom_trace_ranges_find(&ranges, run))
			return false;
	}
	fathom_trace_ranges_init(&ranges, plans, &f, FATHOM_TRACE_TIME_BEFORE, 64);
	if (!fathom_trace_ranges_find(&ranges, run))
		return false;
	assert_true(fathom_syscall_record_begin(&by_plan, planned, ROOM, call));
	add_ranges(&by_plan, &ranges, false);
	assert_true(
		fathom_syscall_capture_entry(call, options, &memory, captured, ROOM, &by_types));
	fill((unsigned)random_number(200));
	f.rax = (uint64_t)random_result(run, f.args);
	fathom_trace_ranges_init(&ranges, plans, &f, FATHOM_TRACE_TIME_AFTER, 16);
	assert_true(fathom_trace_ranges_find(&ranges, run));
	/* What another thread changes can be more than there was before. */
	if (run->is_large && ranges.bytes > FATHOM_TRACE_SYSCALL_BYTES / 2)
		return false;
	fathom_syscall_record_end(&by_plan, FATHOM_SYSCALL_RETURNED, (int64_t)f.rax);
	add_ranges(&by_plan, &ranges, true);
	fathom_syscall_capture_exit(&by_types, (int64_t)f.rax, options, &memory);
	/* Names of network interfaces are looked up by the reader. */
	assert_true(fathom_syscall_capture_again(&by_plan, options, again, ROOM, &completed));
	assert_false(completed.is_cut || by_types.is_cut);
	format(&completed, options, texts[0]);
	format(&by_types, options, texts[1]);
	if (strcmp(texts[0], texts[1]) != 0)
		printf("by plan:  %.2000s\nby types: %.2000s\n", texts[0], texts[1]);
	assert_int_equal(strcmp(texts[0], texts[1]), 0);
	return true;
}

/*
 * Makes the call until it was recorded @times times, or one hundred times as often; @value is in
 * the argument that selects, if one does.
 */
static unsigned make_calls(const struct fathom_syscall_options *options, uint32_t number,
			   unsigned times, uint32_t value)
{
	const struct fathom_trace_plan *plan = &plans->plans[number];
	struct fathom_syscall_call call = { .machine = EM_X86_64, .number = number };
	unsigned n = 0;

	for (unsigned i = 0; i < 100 * times && n < times; i++) {
		if (i % 8 == 0)
			fill(ARENA / 8);
		for (unsigned k = 0; k < 6; k++)
			call.args[k] = random_word();
		if (plan->selector)
			call.args[plan->selector - 1] = value;
		n += make_both(options, &call);
	}
	return n;
}

static void make_plans(const struct fathom_syscall_options *options, unsigned *ret_n)
{
	memset(plans, 0, sizeof *plans);
	*ret_n = 0;
	for (uint32_t i = 0; i < FATHOM_TRACE_PLANS; i++)
		*ret_n += fathom_syscall_plan_make(EM_X86_64, i, options, false, plans);
}

static void plans_record_what_texts_need(void **unused)
{
	static const struct fathom_syscall_options all[] = {
		{ .string_limit = 32 },
		{ .string_limit = 3 },
		{ .string_limit = 0, .hex = 2 },
		{ .string_limit = 300, .dialect = FATHOM_SYSCALL_ARROW },
		{ .string_limit = 32, .is_verbose = true },
	};
	unsigned n_plans;

	(void)unused;
	for (size_t o = 0; o < sizeof all / sizeof *all; o++) {
		make_plans(&all[o], &n_plans);
		for (uint32_t i = 0; i < FATHOM_TRACE_PLANS; i++) {
			const struct fathom_trace_plan *plan = &plans->plans[i];
			unsigned n = 0;

			if (!plans->may_be_recorded[i])
				continue;
			for (unsigned k = 0; k < plan->n_cases; k++)
				n += make_calls(&all[o], i, 12,
						plans->cases[plan->first_case + k].value);
			n += make_calls(&all[o], i, 40, (uint32_t)random_number(UINT32_MAX));
			if (!n)
				printf("call %u is never recorded\n", i);
			assert_true(n > 0);
		}
	}
}

static void most_calls_have_plans(void **unused)
{
	const struct fathom_syscall_options usual = { .string_limit = 32 };
	const struct fathom_syscall_options long_ones = { .string_limit = 5000,
							  .is_verbose = true };
	unsigned n;

	(void)unused;
	make_plans(&long_ones, &n);
	assert_true(n > 340);
	make_plans(&usual, &n);
	assert_int_equal(n, 355);
	assert_true(plans->n_ranges < FATHOM_TRACE_ALL_RANGES &&
		    plans->n_cases < FATHOM_TRACE_CASES);
	for (uint32_t i = 0; i < FATHOM_TRACE_PLANS; i++) {
		const struct fathom_trace_plan *plan = &plans->plans[i];
		const struct fathom_trace_case *cases = &plans->cases[plan->first_case];

		for (unsigned k = 1; k < plan->n_cases; k++)
			assert_true(cases[k - 1].value < cases[k].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_calls_have_plans),
		cmocka_unit_test(plans_record_what_texts_need),
	};

	/* At one place: addresses are among the random words. */
	arena = mmap((void *)UINT64_C(0x7d0000000000), ARENA, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	planned = aligned_alloc(8, ROOM);
	captured = aligned_alloc(8, ROOM);
	again = aligned_alloc(8, ROOM);
	texts[0] = malloc(TEXT);
	texts[1] = malloc(TEXT);
	plans = malloc(sizeof *plans);
	if (arena == MAP_FAILED || !planned || !captured || !again || !texts[0] || !texts[1] ||
	    !plans)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
