/* SPDX-License-Identifier: MIT */
/* Positions of V8's tables: bytes and positions are those that node 20 prints (--print-bytecode).
 */
#include "unit.h"

#include "host/interpreters/v8.h"

static void positions_of_a_function(void **state)
{
	/* Bytecodes at 0, 4, 8, 11, 16 begin statements, that at 13 is an expression. */
	static const uint8_t bytes[] = { 0x01, 0x84, 0x02, 0x02, 0x38, 0x08, 0x34, 0x08,
					 0x2c, 0x06, 0x38, 0x05, 0x24, 0x06, 0x10 };
	const struct fathom_bytes table = { bytes, sizeof bytes };
	static const struct {
		uint64_t offset;
		int64_t position;
	} wanted[] = { { 0, 78 },   { 2, 78 },   { 4, 91 },   { 8, 102 },
		       { 10, 102 }, { 11, 116 }, { 13, 125 }, { 16, 129 } };

	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
		assert_int_equal(fathom_v8_position(table, wanted[i].offset), wanted[i].position);
}

static void tables_that_end_or_lie_have_no_position(void **state)
{
	static const uint8_t cut[] = { 0x02, 0x84 };
	/* An offset, and a position that is of other code than JavaScript. */
	static const uint8_t far[] = { 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x02 };
	static const uint8_t external[] = { 0x02, 0x06 };

	(void)state;
	assert_int_equal(fathom_v8_position((struct fathom_bytes){ cut, 0 }, 0), -1);
	assert_int_equal(fathom_v8_position((struct fathom_bytes){ cut, sizeof cut }, 0), -1);
	assert_int_equal(fathom_v8_position((struct fathom_bytes){ far, sizeof far }, 0), -1);
	assert_int_equal(fathom_v8_position((struct fathom_bytes){ external, sizeof external }, 0),
			 -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions_of_a_function),
		cmocka_unit_test(tables_that_end_or_lie_have_no_position),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
