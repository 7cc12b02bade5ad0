/* SPDX-License-Identifier: MIT */
/*
 * Records that wait in a file: threads find room in their rings though the reader is slow, events
 * are complete and in order, and the file is as large as it may be.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../lib/ring_program.h"
#include "host/trace/spool.h"

#define LAP (FATHOM_TRACE_RECORDS * sizeof(struct fathom_trace_record))

/* More than the reader takes at once, and no multiple of a lap. */
#define CALLS (UINT64_C(3) * 1000 * 1000 + 17)

/* Stack pointer / 8 of the outermost call; each is one word deeper, up to DEPTH of them. */
#define TOP   1000
#define DEPTH 5

static struct fathom_program *program;
static struct fathom_rings *rings;

/* A thread: the calls that it has written, and those that the reader has told. */
struct thread {
	uint32_t ring;
	uint64_t n_written;
	uint64_t n_told;
	uint64_t most_ahead; /* written, not told */
	uint64_t n_calls;    /* to write */
	bool is_rare;        /* it writes one call each time */
	bool is_wild;        /* it writes over what it has written */
};

static struct thread threads[2];
static size_t n_threads;
static uint64_t last_ns;

static uint64_t taken(const struct thread *t)
{
	const struct fathom_trace_ring *heads = (const void *)(program->head + 1);

	return atomic_load(&heads[t->ring].taken);
}

/* Writes what finds room, as the runtime does: the lap bit last. */
static void write_calls(struct thread *t)
{
	uint64_t n = FATHOM_TRACE_RECORDS - (t->n_written - taken(t));

	if (t->is_rare && n)
		n = 1;
	for (; n && t->n_written < t->n_calls; n--, t->n_written++) {
		/* It is as late as the other thread is. */
		const uint64_t time = t->is_rare ? threads[0].n_written : t->n_written;
		struct fathom_trace_record *r = ring_program_record(program, t->ring, t->n_written);

		r->site = 0;
		r->sp = TOP - (uint32_t)(t->n_written % DEPTH);
		__atomic_store_n(&r->time, fathom_trace_lap(t->n_written) | (time + 1),
				 __ATOMIC_RELEASE);
	}
	if (t->is_wild)
		for (int i = 0; i < 50; i++)
			ring_program_record(program, t->ring, (uint64_t)random())->time =
				(uint64_t)random() << 33 | (uint64_t)random();
}

static int take(void *data, const struct fathom_trace_event *events, size_t n)
{
	(void)data;
	for (size_t i = 0; i < n; i++) {
		const struct fathom_trace_event *e = &events[i];
		struct thread *t = &threads[e->tid - 1];

		if (e->type != FATHOM_TRACE_CALL)
			continue;
		assert_string_equal(e->function->name, "f");
		if (t->is_wild)
			continue;
		assert_int_equal(e->depth, t->n_told % DEPTH);
		if (!t->is_rare)
			assert_int_equal(e->ns, t->n_told);
		assert_true(e->ns >= last_ns);
		last_ns = e->ns;
		t->n_told++;
	}
	for (size_t i = 0; i < n_threads; i++) {
		write_calls(&threads[i]);
		if (threads[i].n_written - threads[i].n_told > threads[i].most_ahead)
			threads[i].most_ahead = threads[i].n_written - threads[i].n_told;
	}
	return 1;
}

static void begin(const struct fathom_trace_options *options)
{
	const struct fathom_timestamp_pair now = { 0, 0 };
	const struct fathom_trace_function f = { .name = "f", .module = "m" };
	const struct fathom_site_range_site entry = { .size = 16,
						      .place = FATHOM_SITE_ENTRY,
						      .has_no_caller = true };
	struct fathom_site_range *span = fathom_site_range_create();

	program = ring_program_create(2);
	assert_int_equal(fathom_rings_create(options, &now, &rings), FATHOM_OK);
	assert_true(fathom_array_push(&span->functions, f) && fathom_array_push(span, entry));
	fathom_site_range_finish(span);
	fathom_rings_post(rings, &(struct fathom_post){ .span = span });
	for (uint32_t i = 0; i < n_threads; i++) {
		threads[i].ring = i;
		fathom_rings_post(rings, &(struct fathom_post){ .begins = { program, i },
								.sp = TOP * 8,
								.ticks = 1,
								.pid = 1,
								.tid = (int32_t)i + 1 });
		write_calls(&threads[i]);
	}
	last_ns = 0;
}

static void finish(void)
{
	const struct fathom_timestamp_pair end = { CALLS * 2, CALLS * 2 };

	/* All that is written meanwhile was recorded before: it is taken in slices. */
	for (int i = 0; i < 100; i++)
		(void)fathom_rings_take(rings, &end, false);
	for (uint32_t i = 0; i < n_threads; i++)
		fathom_rings_post(rings, &(struct fathom_post){ .ring = { program, i },
								.is_release = true,
								.ticks = CALLS });
	(void)fathom_rings_take(rings, &end, true);
	assert_int_equal(fathom_rings_lost(rings), 0);
	fathom_rings_destroy(rings);
	fathom_program_release(program);
}

static struct fathom_trace_options options_with(const char *path, uint64_t size)
{
	return (struct fathom_trace_options){ .size = sizeof(struct fathom_trace_options),
					      .flags = FATHOM_TRACE_NO_FOLD,
					      .events = take,
					      .spool = path,
					      .spool_size = size };
}

static void run(const char *path, uint64_t size)
{
	const struct fathom_trace_options options = options_with(path, size);

	begin(&options);
	finish();
}

static void threads_do_not_wait_for_a_slow_reader(void **state)
{
	(void)state;
	n_threads = 1;
	threads[0] = (struct thread){ .n_calls = CALLS };
	run(".", UINT64_C(1) << 30);
	assert_int_equal(threads[0].n_told, CALLS);
	/* The reader reports a batch, the thread writes what finds room then: most of all calls
	 * wait. */
	assert_true(threads[0].most_ahead > CALLS / 2);
}

static void without_room_they_wait(void **state)
{
	static const struct {
		const char *path;
		uint64_t size;
		uint64_t laps;
	} rows[] = {
		{ NULL, UINT64_C(1) << 30, 0 },
		{ ".", 0, 0 },
		{ ".", LAP - 1, 0 },
		{ "./no-such-folder", UINT64_C(1) << 30, 0 },
		{ ".", 3 * LAP, 3 },
		{ ".", 4 * LAP - 1, 3 },
	};

	(void)state;
	n_threads = 1;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		threads[0] = (struct thread){ .n_calls = CALLS };
		run(rows[i].path, rows[i].size);
		assert_int_equal(threads[0].n_told, CALLS);
		assert_true(threads[0].most_ahead <= (rows[i].laps + 1) * FATHOM_TRACE_RECORDS);
		if (rows[i].laps)
			assert_true(threads[0].most_ahead > rows[i].laps * FATHOM_TRACE_RECORDS);
	}
}

static void events_of_two_threads_stay_in_order(void **state)
{
	(void)state;
	n_threads = 2;
	threads[0] = (struct thread){ .n_calls = CALLS };
	threads[1] = (struct thread){ .n_calls = 1000, .is_rare = true };
	run(".", UINT64_C(1) << 30);
	assert_int_equal(threads[0].n_told, CALLS);
	assert_int_equal(threads[1].n_told, 1000);
}

/* Whatever the program writes, reading ends, and functions are those that were loaded. */
static void rings_that_change_under_the_reader(void **state)
{
	(void)state;
	srandom(1);
	n_threads = 1;
	for (int i = 0; i < 5; i++) {
		const struct fathom_trace_options options = options_with(".", 4 * LAP);
		const struct fathom_timestamp_pair end = { UINT64_MAX >> 1, CALLS };

		threads[0] = (struct thread){ .n_calls = CALLS / 4, .is_wild = true };
		begin(&options);
		for (int k = 0; k < 100; k++)
			(void)fathom_rings_take(rings, &end, false);
		(void)fathom_rings_take(rings, &end, true);
		fathom_rings_destroy(rings);
		fathom_program_release(program);
	}
}

static void laps_are_used_again(void **state)
{
	static struct fathom_trace_record records[FATHOM_TRACE_RECORDS];
	struct fathom_spool s;
	struct stat st;
	uint32_t lap;

	(void)state;
	fathom_spool_init(&s, ".", 3 * LAP);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(fathom_spool_acquire(&s, &lap));
		assert_int_equal(lap, i);
		memset(records, (int)i + 1, sizeof records);
		assert_true(fathom_spool_write(&s, lap, 0, records, FATHOM_TRACE_RECORDS - 1));
		assert_true(fathom_spool_write(&s, lap, FATHOM_TRACE_RECORDS - 1, records, 1));
	}
	assert_false(fathom_spool_acquire(&s, &lap));
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(fathom_spool_read(&s, i, 1, records + 1, FATHOM_TRACE_RECORDS - 1));
		assert_int_equal(((const unsigned char *)records)[LAP - 1], i + 1);
		assert_int_equal(((const unsigned char *)(records + 1))[0], i + 1);
		assert_int_equal(((const unsigned char *)records)[0], i ? i : 3);
		assert_true(fathom_spool_read(&s, i, 0, records, 1));
		assert_int_equal(((const unsigned char *)records)[0], i + 1);
	}
	fathom_spool_release(&s, 1);
	assert_true(fathom_spool_acquire(&s, &lap));
	assert_int_equal(lap, 1);
	assert_false(fathom_spool_acquire(&s, &lap));
	assert_int_equal(fstat(s.fd, &st), 0);
	assert_int_equal(st.st_size, 3 * LAP);
	assert_int_equal(st.st_nlink, 0);
	fathom_spool_deinit(&s);
}

static void no_file_is_larger_than_it_may_be(void **state)
{
	static struct fathom_trace_record records[FATHOM_TRACE_RECORDS];
	struct rlimit before;
	struct rlimit low;
	struct fathom_spool s;
	uint32_t lap;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	low = before;
	low.rlim_cur = 2 * LAP + 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	fathom_spool_init(&s, ".", UINT64_C(1) << 30);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(fathom_spool_acquire(&s, &lap));
		assert_true(fathom_spool_write(&s, lap, 0, records, FATHOM_TRACE_RECORDS));
	}
	assert_false(fathom_spool_acquire(&s, &lap));
	fathom_spool_deinit(&s);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* A file whose disk is full, or fails: what was written is read, and nothing more is. */
static void a_disk_that_is_full(void **state)
{
	struct fathom_trace_record record = { .time = 0 };
	struct fathom_spool s;
	uint32_t lap;
	int full;

	(void)state;
	fathom_spool_init(&s, ".", 3 * LAP);
	assert_true(fathom_spool_acquire(&s, &lap));
	full = open("/dev/full", O_RDWR | O_CLOEXEC);
	assert_true(full >= 0 && dup2(full, s.fd) == s.fd);
	assert_false(fathom_spool_write(&s, lap, 0, &record, 1));
	assert_false(fathom_spool_acquire(&s, &lap));
	close(full);
	fathom_spool_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_do_not_wait_for_a_slow_reader),
		cmocka_unit_test(without_room_they_wait),
		cmocka_unit_test(events_of_two_threads_stay_in_order),
		cmocka_unit_test(rings_that_change_under_the_reader),
		cmocka_unit_test(laps_are_used_again),
		cmocka_unit_test(no_file_is_larger_than_it_may_be),
		cmocka_unit_test(a_disk_that_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
