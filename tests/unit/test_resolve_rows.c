/* SPDX-License-Identifier: MIT */
/* Rows byte by byte: what is a row, what is none yet, and what is wrong with it. */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/resolve_rows.h"

#define ID "00ff10"

/* Reads the first row of the @size bytes at @text as @form, columns build_id, offset, module. */
static struct row_step read_text(struct row_reader *r, enum row_form form, const char *text,
				 size_t size, bool is_end, struct row *ret)
{
	static char copy[1 << 12];

	assert_true(size < sizeof copy);
	memcpy(copy, text, size);
	copy[size] = 'x';
	r->form = form;
	r->n_columns = 3;
	r->columns[0] = ROW_BUILD_ID;
	r->columns[1] = ROW_OFFSET;
	r->columns[2] = ROW_MODULE;
	return row_read(r, copy, size, is_end, ret);
}

static void assert_text(struct row_text t, const char *text, size_t size)
{
	assert_int_equal(t.size, size);
	assert_memory_equal(t.data, text, size);
}

static void test_tsv(void **state)
{
	static const char line[] = ID "\t0x1f\ta\\tb\\0\\\\c\n" ID "\t";
	struct row_reader r = { .default_kind = FATHOM_PC_RETURN };
	const size_t size = strlen(strchr(line, '\n') + 1);
	uint8_t id[FATHOM_BUILD_ID_MAX];
	struct row_step step;
	struct row row;

	(void)state;
	step = read_text(&r, ROW_TSV, line, sizeof line - 1, false, &row);
	assert_true(step.has_row);
	assert_int_equal(step.size, sizeof line - 1 - size);
	assert_int_equal(row.error, ROW_GOOD);
	assert_int_equal(row.offset, 0x1f);
	assert_int_equal(row.kind, FATHOM_PC_RETURN);
	assert_text(row.keys[ROW_MODULE], "a\tb\0\\c", 6);
	assert_int_equal(row_build_id(&row, id), 3);
	assert_memory_equal(id, "\x00\xff\x10", 3);
}

/* A row that is not whole is none, unless nothing follows. */
static void test_whole(void **state)
{
	static const char line[] = ID "\t1\tm\n";
	struct row_reader r = { 0 };
	struct row row;

	(void)state;
	for (size_t size = 0; size < sizeof line - 2; size++) {
		assert_int_equal(read_text(&r, ROW_TSV, line, size, false, &row).size, 0);
		assert_int_equal(read_text(&r, ROW_TSV, line, size, true, &row).size, size);
		assert_true(!size || row.error || size == sizeof line - 3);
	}
	assert_int_equal(read_text(&r, ROW_TSV, "", 0, true, &row).has_row, false);
	assert_int_equal(read_text(&r, ROW_TSV, "\n", 1, false, &row).size, 1);
	assert_int_equal(row.error, ROW_BAD);
}

static void test_errors(void **state)
{
	static const struct {
		const char *line;
		enum row_error error;
	} rows[] = {
		{ ID "\t1\tm", ROW_GOOD },
		{ ID "\t1\t\\N", ROW_GOOD },
		{ "\\N\t1\tm", ROW_GOOD },
		{ "\t1\tm", ROW_GOOD },
		{ "\t1\t", ROW_BAD_BUILD_ID },
		{ "\\N\t1\t\\N", ROW_BAD_BUILD_ID },
		{ "0\t1\tm", ROW_BAD_BUILD_ID },
		{ "0g\t1\tm", ROW_BAD_BUILD_ID },
		{ ID "\t1", ROW_BAD },
		{ ID "\t1\tm\t", ROW_BAD },
		{ ID, ROW_BAD },
		{ "", ROW_BAD },
		{ ID "\t1\tm\\", ROW_BAD },
		{ ID "\t1\t\\x1", ROW_BAD },
		{ ID "\t1\t\\x4g", ROW_BAD },
		{ ID "\t\tm", ROW_BAD_OFFSET },
		{ ID "\t-1\tm", ROW_BAD_OFFSET },
		{ ID "\tff\tm", ROW_BAD_OFFSET },
		{ ID "\t\\N\tm", ROW_BAD_OFFSET },
		{ ID "\t0x\tm", ROW_BAD_OFFSET },
		{ ID "\t18446744073709551615\tm", ROW_GOOD },
		{ ID "\t18446744073709551616\tm", ROW_BAD_OFFSET },
		{ ID "\t0xffffffffffffffff\tm", ROW_GOOD },
		{ ID "\t0x10000000000000000\tm", ROW_BAD_OFFSET },
	};
	struct row_reader r = { 0 };
	char line[128];
	struct row row;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const int size = snprintf(line, sizeof line, "%s\n", rows[i].line);

		assert_true(read_text(&r, ROW_TSV, line, (size_t)size, false, &row).has_row);
		assert_int_equal(row.error, rows[i].error);
	}
}

static void test_json(void **state)
{
	static const struct {
		const char *line;
		enum row_error error;
		const char *module;
	} rows[] = {
		{ "{\"build_id\":\"" ID "\",\"offset\":7,\"module\":\"m\"}", ROW_GOOD, "m" },
		{ " { \"offset\" : \"7\" , \"build_id\":\"" ID "\"}\r", ROW_GOOD, "" },
		{ "{\"build_id\":\"" ID "\",\"x\":[{\"}\":\"\\\"]\"}],\"offset\":7}", ROW_GOOD,
		  "" },
		{ "{\"module\":\"\\u00e9\\ud83d\\ude00\\n\",\"offset\":0x7}", ROW_GOOD,
		  "\xc3\xa9\xf0\x9f\x98\x80\n" },
		{ "{\"module\":null,\"build_id\":\"" ID "\",\"offset\":7}", ROW_GOOD, "" },
		{ "{\"module\":\"\\ud83d\",\"offset\":7}", ROW_GOOD, "\xef\xbf\xbd" },
		{ "{\"build_id\":\"" ID "\",\"offset\":7,}", ROW_BAD, "" },
		{ "{\"build_id\":\"" ID "\",\"offset\":7", ROW_BAD, "" },
		{ "{\"build_id\":\"" ID "\",\"offset\":7}}", ROW_BAD, "" },
		{ "{\"build_id\":\"" ID "\" \"offset\":7}", ROW_BAD, "" },
		{ "{\"build_id\":\"" ID "\",\"offset\":[7]}", ROW_BAD_OFFSET, "" },
		{ "{\"build_id\":\"" ID "\"}", ROW_BAD_OFFSET, "" },
		{ "{\"build_id\":\"" ID "\",\"offset\":7,\"x\":[", ROW_BAD, "" },
		{ "{\"build_id\":\"" ID "\",\"offset\":7,\"x\":\"", ROW_BAD, "" },
		{ "{\"build_id\":\"" ID "\",\"offset\":7,\"x\":\"\\", ROW_BAD, "" },
		{ "{\"build_id\":\"" ID "\",\"offset\":7,\"x\":\"\\u12\"}", ROW_BAD, "" },
		{ "[]", ROW_BAD, "" },
	};
	struct row_reader r = { 0 };
	char line[256];
	struct row row;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const int size = snprintf(line, sizeof line, "%s\n", rows[i].line);

		assert_true(read_text(&r, ROW_JSON, line, (size_t)size, false, &row).has_row);
		assert_int_equal(row.error, rows[i].error);
		if (row.error)
			continue;
		assert_int_equal(row.offset, 7);
		if (*rows[i].module)
			assert_text(row.keys[ROW_MODULE], rows[i].module, strlen(rows[i].module));
	}
}

static void test_binary(void **state)
{
	static const char bytes[] = "\x06" ID "\xff\x01\0\0\0\0\0\x80\x01m\x06";
	const size_t size = sizeof bytes - 2;
	struct row_reader r = { 0 };
	struct row row;

	(void)state;
	for (size_t cut = 0; cut < size; cut++) {
		assert_int_equal(read_text(&r, ROW_BINARY, bytes, cut, false, &row).size, 0);
		assert_int_equal(read_text(&r, ROW_BINARY, bytes, cut, true, &row).size, cut);
		assert_true(!cut || row.error == ROW_BAD);
	}
	assert_int_equal(read_text(&r, ROW_BINARY, bytes, size + 1, false, &row).size, size);
	assert_int_equal(row.error, ROW_GOOD);
	assert_true(row.offset == UINT64_C(0x80000000000001ff));
	assert_text(row.keys[ROW_MODULE], "m", 1);
	assert_false(r.is_lost);
	/* A length of more than a row may have. */
	assert_true(read_text(&r, ROW_BINARY, "\x81\x80\x40", 3, false, &row).has_row);
	assert_true(r.is_lost);
	assert_int_equal(row.error, ROW_LONG);
}

/* Of a line that is too long there is one row, and the next one is whole. */
static void test_long(void **state)
{
	const size_t size = 3 * ROW_MAX;
	char *text = malloc(size + 16);
	struct row_reader r = { .form = ROW_TSV, .n_columns = 2, .columns = { 0, 1 } };
	struct row_step step;
	size_t n_rows = 0;
	size_t n_long = 0;
	size_t used = 0;
	struct row row;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', size);
	memcpy(text + size, "\nab\t5\n", 6);
	for (size_t have = 0; used < size + 6; have = have + 999 < size ? have + 999 : size + 6) {
		while ((step = row_read(&r, text + used, have - used, false, &row)).size) {
			used += step.size;
			n_rows += step.has_row;
			n_long += step.has_row && row.error == ROW_LONG;
		}
		assert_true(have - used <= ROW_MAX + 1000);
	}
	assert_int_equal(n_long, 1);
	assert_int_equal(n_rows, 2);
	assert_int_equal(row.error, ROW_GOOD);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tsv),    cmocka_unit_test(test_whole),
		cmocka_unit_test(test_errors), cmocka_unit_test(test_json),
		cmocka_unit_test(test_binary), cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
