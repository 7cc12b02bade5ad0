/* SPDX-License-Identifier: MIT */
/* Rows of this program, whose functions are known, of builds that nobody has, and bad calls. */
#include "unit.h"
#include <fathom/fathom.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../hostile/alloc.h"

static struct fathom *session;
static char program[256];
static uint64_t here; /* address of main() as this program's file states it */

static const uint8_t unknown[] = { 1, 2, 3, 4, 5 };

static int begin(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
	struct fathom_target *t;

	(void)state;
	assert_true(size > 0);
	assert_int_equal(fathom_create(&options, &session, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_open_file(session, program, NULL, &t, NULL), FATHOM_OK);
	assert_int_equal(fathom_target_find_symbol(t, "main", &here), FATHOM_OK);
	fathom_target_release(t);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fathom_destroy(session);
	return 0;
}

/* Asks for main() three times, with its build by its path, and for a build that nobody has. */
static fathom_err ask(struct fathom_resolver *r, struct fathom_row_answers **ret)
{
	const struct fathom_build builds[] = {
		{ .build_id = unknown, .build_id_size = sizeof unknown },
		{ .module = program, .module_size = (uint32_t)strlen(program) },
		{ .module = "", .module_size = 0 },
	};
	const uint32_t row_builds[] = { 1, 0, 1, 1, 2 };
	const uint64_t numbers[] = { here, here, here, here + 1, here };
	const uint8_t kinds[] = { 0, 0, 0, FATHOM_PC_RETURN, 0 };
	const struct fathom_rows rows = { .size = sizeof rows,
					  .n = 5,
					  .builds = builds,
					  .n_builds = 3,
					  .row_builds = row_builds,
					  .numbers = numbers,
					  .kinds = kinds };

	return fathom_resolver_answer(r, &rows, ret, NULL);
}

static void test_rows(void **state)
{
	struct fathom_row_answers *answers;
	struct fathom_resolver_counts counts;
	const struct fathom_answer *const *a;
	struct fathom_resolver *r;

	(void)state;
	assert_int_equal(fathom_resolver_create(session, NULL, &r, NULL), FATHOM_OK);
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(ask(r, &answers), FATHOM_OK);
		a = fathom_row_answers_array(answers);
		assert_string_equal(a[0]->symbol, "main");
		assert_ptr_equal(a[0], a[2]);
		assert_string_equal(a[3]->symbol, "main");
		assert_ptr_not_equal(a[0], a[3]);
		assert_int_equal(a[3]->pc.kind, FATHOM_PC_RETURN);
		assert_null(a[1]->symbol);
		assert_int_equal(a[1]->reason, FATHOM_REASON_NO_FILE);
		assert_int_equal(a[1]->pc.address, here);
		assert_int_equal(a[4]->reason, FATHOM_REASON_NO_FILE);
		fathom_row_answers_free(answers);
		fathom_resolver_get_counts(r, &counts, sizeof counts);
		assert_int_equal(counts.rows, 5 * i);
		assert_int_equal(counts.equal_rows, i);
		assert_int_equal(counts.opened, 1);
		assert_int_equal(counts.open, 1);
		assert_int_equal(counts.misses, 3);
		assert_int_equal(counts.hits, i - 1);
		assert_int_equal(counts.missing, 2);
		assert_int_equal(counts.known_missing, 2 * (i - 1));
	}
	fathom_resolver_destroy(r);
}

static void test_refused(void **state)
{
	struct fathom_resolver_options options = { .size = sizeof options, .flags = 1u << 31 };
	const uint32_t builds[] = { 1 };
	const uint64_t numbers[] = { 0 };
	const struct fathom_build build = { .module = "m", .module_size = 1 };
	struct fathom_rows rows = { .size = sizeof rows,
				    .n = 1,
				    .builds = &build,
				    .n_builds = 1,
				    .row_builds = builds,
				    .numbers = numbers };
	struct fathom_row_answers *answers;
	struct fathom_resolver *r;

	(void)state;
	assert_int_equal(fathom_resolver_create(session, &options, &r, NULL), FATHOM_E_ARGUMENT);
	options.flags = 0;
	options.reserved[2] = 1;
	assert_int_equal(fathom_resolver_create(session, &options, &r, NULL), FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_resolver_create(session, NULL, &r, NULL), FATHOM_OK);
	assert_int_equal(fathom_resolver_answer(r, &rows, &answers, NULL), FATHOM_E_ARGUMENT);
	rows.n = 0;
	assert_int_equal(fathom_resolver_answer(r, &rows, &answers, NULL), FATHOM_OK);
	fathom_row_answers_free(answers);
	fathom_row_answers_free(NULL);
	fathom_resolver_destroy(r);
	fathom_resolver_destroy(NULL);
}

/* Each allocation fails once: the call does, too, or answers; nothing is lost or used after it. */
static void test_no_memory(void **state)
{
	(void)state;
	for (long n = 1; alloc_is_ours && (n == 1 || allocations >= n - 1); n++) {
		struct fathom_row_answers *answers = NULL;
		struct fathom_resolver *r = NULL;
		fathom_err err;

		allocations = 0;
		fail_after = n;
		err = fathom_resolver_create(session, NULL, &r, NULL);
		if (!err)
			err = ask(r, &answers);
		fail_after = 0;
		assert_true(err == FATHOM_OK || err == FATHOM_E_MEMORY);
		fathom_row_answers_free(answers);
		fathom_resolver_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
