/* SPDX-License-Identifier: MIT */
/* Lines of CPython's tables, worked out by hand from what its notes say of them. */
#include "unit.h"

#include "host/interpreters/python.h"

static void lines_of_pairs_until_3_9(void **state)
{
	/* The line grows by 1 at 0, by 2 at 8, by -3 at 14; then by 300 at 20, in steps of 127. */
	static const uint8_t bytes[] = { 0, 1, 8, 2, 6, 0xfd, 6, 127, 0, 127, 0, 46 };
	const struct fathom_bytes table = { bytes, sizeof bytes };
	static const struct {
		uint64_t position;
		uint32_t line;
	} wanted[] = { { 0, 11 },  { 7, 11 },  { 8, 13 },   { 13, 13 },
		       { 14, 10 }, { 19, 10 }, { 20, 310 }, { 1000, 310 } };

	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		for (uint16_t minor = 8; minor < 10; minor++)
			assert_int_equal(
				fathom_python_old_line(table, 10, wanted[i].position, minor),
				wanted[i].line);
	assert_int_equal(fathom_python_old_line((struct fathom_bytes){ bytes, 0 }, 10, 4, 9), 10);
}

static void lines_of_ranges_of_3_10(void **state)
{
	/* [0, 8) is of line 11, [8, 14) of none, [14, 18) of 13: what has none changes nothing. */
	static const uint8_t bytes[] = { 8, 1, 6, 0x80, 4, 2, 9 };
	const struct fathom_bytes table = { bytes, sizeof bytes };
	static const uint32_t wanted[] = { 11, 11, 11, 11, 0, 0, 0, 13, 13, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		assert_int_equal(fathom_python_old_line(table, 10, 2 * i, 10), wanted[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_pairs_until_3_9),
		cmocka_unit_test(lines_of_ranges_of_3_10),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
