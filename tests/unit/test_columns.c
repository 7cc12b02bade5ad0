/* SPDX-License-Identifier: MIT */
/*
 * Columns of answers that are made by hand: their codes, worked out by hand or by comparing all
 * with all.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hostile/alloc.h"
#include "host/symbolize/answers.h"

#define N_MANY  2000
#define N_TEXTS 300

static const struct fathom_frame caller = { .function = "main", .function_size = 4 };

/* Returns @n answers that say nothing. */
static struct fathom_answers *create(uint32_t n)
{
	struct fathom_answers *answers = fathom_answers_create(n, 0);

	if (answers && n)
		memset(answers->answers, 0, n * sizeof *answers->answers);
	return answers;
}

static void name(struct fathom_answers *answers, size_t i, const char *symbol)
{
	answers->answers[i].symbol = symbol;
	answers->answers[i].symbol_size = symbol ? (uint32_t)strlen(symbol) : 0;
}

static void assert_codes(const struct fathom_answers *answers, enum fathom_column column, size_t n,
			 const uint32_t *codes, size_t n_first, const uint32_t *first)
{
	uint32_t got[16];
	uint32_t got_first[16];
	size_t got_n = 99;

	assert_int_equal(fathom_answers_encode(answers, column, got, got_first, &got_n, NULL), 0);
	assert_int_equal(got_n, n_first);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(got[i], codes[i]);
	for (size_t i = 0; i < n_first; i++)
		assert_int_equal(got_first[i], first[i]);
}

static void equal_texts_have_one_code(void **state)
{
	/* Texts of their own, as those of two parts. */
	char one[] = "get";
	char other[] = "get";
	const uint32_t codes[] = { 0, FATHOM_NO_CODE, 1, 0, 2, 1 };
	const uint32_t first[] = { 0, 2, 4 };
	struct fathom_answers *answers = create(6);

	(void)state;
	assert_non_null(answers);
	name(answers, 0, one);
	name(answers, 2, "ge");
	name(answers, 3, other);
	name(answers, 4, "");
	name(answers, 5, "ge");
	assert_codes(answers, FATHOM_COLUMN_SYMBOL, 6, codes, 3, first);
	fathom_answers_free(answers);
}

static void frames_are_the_innermost(void **state)
{
	const struct fathom_frame inlined = { .function = "get",
					      .function_size = 3,
					      .file = "a.c",
					      .file_size = 3,
					      .line = 7,
					      .column = 3,
					      .outer = &caller };
	const uint32_t functions[] = { 0, 1, 0, FATHOM_NO_CODE };
	const uint32_t first_functions[] = { 0, 1 };
	const uint32_t files[] = { FATHOM_NO_CODE, 0, FATHOM_NO_CODE, FATHOM_NO_CODE };
	const uint32_t first_file[] = { 1 };
	const uint32_t expected_lines[] = { 0, 7, 0, 0 };
	const uint32_t expected_columns[] = { 0, 3, 0, 0 };
	struct fathom_answers *answers = create(4);
	uint32_t lines[4];
	uint32_t columns[4];

	(void)state;
	assert_non_null(answers);
	name(answers, 0, "main");
	name(answers, 1, "main");
	answers->answers[1].frame = &inlined;
	name(answers, 2, "other");
	answers->answers[2].frame = &caller;
	assert_codes(answers, FATHOM_COLUMN_FUNCTION, 4, functions, 2, first_functions);
	assert_codes(answers, FATHOM_COLUMN_FILE, 4, files, 1, first_file);
	fathom_answers_lines(answers, lines, columns);
	assert_memory_equal(lines, expected_lines, sizeof lines);
	assert_memory_equal(columns, expected_columns, sizeof columns);
	fathom_answers_lines(answers, NULL, NULL);
	fathom_answers_free(answers);
}

static void modules_differ_by_their_build_ids(void **state)
{
	static const uint8_t id[] = { 1, 2, 3, 0 };
	const struct fathom_module_info modules[] = {
		{ .path = "/lib/a.so", .build_id = id, .build_id_size = 3 },
		{ .path = "/lib/a.so", .build_id = id, .build_id_size = 4 },
		{ .path = "/lib/a.so", .build_id = id, .build_id_size = 3 },
		{ .path = "/lib/a.so" },
		{ .path = "/lib/b.so", .build_id = id, .build_id_size = 3 },
	};
	const uint32_t codes[] = { 0, 1, 0, 2, 3, FATHOM_NO_CODE };
	const uint32_t first[] = { 0, 1, 3, 4 };
	struct fathom_answers *answers = create(6);

	(void)state;
	assert_non_null(answers);
	for (size_t i = 0; i < 5; i++)
		answers->answers[i].module = &modules[i];
	assert_codes(answers, FATHOM_COLUMN_MODULE, 6, codes, 4, first);
	fathom_answers_free(answers);
}

static void many_are_as_comparing_all_with_all(void **state)
{
	static char texts[N_MANY][8];
	static uint32_t codes[N_MANY];
	static uint32_t first[N_MANY];
	struct fathom_answers *answers = create(N_MANY);
	size_t n;

	(void)state;
	assert_non_null(answers);
	for (size_t i = 0; i < N_MANY; i++) {
		(void)snprintf(texts[i], sizeof texts[i], "f%zu", i * i * 7 % N_TEXTS);
		answers->answers[i].linkage_name = texts[i];
		answers->answers[i].linkage_size = (uint32_t)strlen(texts[i]);
	}
	assert_int_equal(
		fathom_answers_encode(answers, FATHOM_COLUMN_LINKAGE_NAME, codes, first, &n, NULL),
		0);
	for (size_t i = 0; i < N_MANY; i++) {
		size_t j = 0;

		while (strcmp(texts[i], texts[j]) != 0)
			j++;
		assert_true(codes[i] < n);
		assert_int_equal(first[codes[i]], j);
	}
	fathom_answers_free(answers);
}

static void without_memory_or_column_nothing_is_written(void **state)
{
	struct fathom_answers *answers = create(2);
	struct fathom_errinfo info = { .err = FATHOM_OK };
	uint32_t codes[2];
	uint32_t first[2];
	size_t n = 99;

	(void)state;
	assert_non_null(answers);
	name(answers, 0, "a");
	name(answers, 1, "b");
	assert_int_equal(
		fathom_answers_encode(answers, (enum fathom_column)5, codes, first, &n, &info),
		FATHOM_E_ARGUMENT);
	assert_int_equal(info.err, FATHOM_E_ARGUMENT);
	/* The tables by identity and by bytes. */
	for (long i = 1; alloc_is_ours && i <= 2; i++) {
		allocations = 0;
		fail_after = i;
		assert_int_equal(fathom_answers_encode(answers, FATHOM_COLUMN_SYMBOL, codes, first,
						       &n, &info),
				 FATHOM_E_MEMORY);
		fail_after = 0;
		assert_int_equal(info.err, FATHOM_E_MEMORY);
	}
	assert_int_equal(n, 99);
	fathom_answers_free(answers);
}

static void no_answers_have_no_values(void **state)
{
	struct fathom_answers *answers = create(0);

	(void)state;
	assert_non_null(answers);
	assert_codes(answers, FATHOM_COLUMN_SYMBOL, 0, NULL, 0, NULL);
	fathom_answers_free(answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_one_code),
		cmocka_unit_test(frames_are_the_innermost),
		cmocka_unit_test(modules_differ_by_their_build_ids),
		cmocka_unit_test(many_are_as_comparing_all_with_all),
		cmocka_unit_test(without_memory_or_column_nothing_is_written),
		cmocka_unit_test(no_answers_have_no_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
