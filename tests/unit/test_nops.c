/* SPDX-License-Identifier: MIT */
/*
 * NOPs by their bytes: those of Intel's and AMD's manuals, of assemblers, and what only looks so.
 */
#include "unit.h"

#include "safe/base/nops.h"

struct row {
	uint8_t size; /* of the NOP; 0: it is none */
	uint8_t n;    /* bytes */
	uint8_t bytes[16];
};

static const struct row rows[] = {
	{ 1, 1, { 0x90 } },
	{ 2, 2, { 0x66, 0x90 } },
	{ 3, 3, { 0x0f, 0x1f, 0x00 } },
	{ 4, 4, { 0x0f, 0x1f, 0x40, 0x00 } },
	{ 5, 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	{ 5, 5, { 0x0f, 0x1f, 0x44, 0x00, 0x08 } },
	{ 5, 5, { 0x67, 0x0f, 0x1f, 0x04, 0x00 } },
	{ 6, 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	{ 7, 7, { 0x0f, 0x1f, 0x80, 0, 0, 0, 0 } },
	{ 8, 8, { 0x0f, 0x1f, 0x84, 0x00, 0, 0, 0, 0 } },
	{ 10, 10, { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0, 2, 0, 0 } },
	{ 15, 15, { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 } },
	/* with an address of 32 bits, relative to the instruction, and without a base */
	{ 7, 7, { 0x0f, 0x1f, 0x05, 0, 0, 0, 0 } },
	{ 8, 8, { 0x0f, 0x1f, 0x04, 0x25, 0, 0, 0, 0 } },
	/* pause, another group, a register, cut short, too many prefixes, nothing */
	{ 0, 2, { 0xf3, 0x90 } },
	{ 0, 3, { 0x0f, 0x1f, 0x08 } },
	{ 0, 3, { 0x0f, 0x1f, 0xc0 } },
	{ 0, 4, { 0x0f, 0x1f, 0x44, 0x00 } },
	{ 0, 3, { 0x66, 0x0f, 0x1f } },
	{ 0,
	  16,
	  { 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 } },
	{ 0, 0, { 0 } },
};

static void the_size_of_a_nop_is_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(
			fathom_nop_size(false, (struct fathom_bytes){ rows[i].bytes, rows[i].n }),
			rows[i].size);
}

static void only_whole_nops_count(void **state)
{
	static const uint8_t code[] = { 0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x66, 0x90, 0xc3 };
	const struct fathom_bytes bytes = { code, sizeof code };

	(void)state;
	assert_int_equal(fathom_nops_size(false, bytes, 100), 8);
	assert_int_equal(fathom_nops_size(false, bytes, 7), 6);
	assert_int_equal(fathom_nops_size(false, bytes_from(bytes, 2), 100), 0);
}

static void aarch64_has_one_nop_and_two_marks(void **state)
{
	static const uint8_t code[] = { 0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5,
					0x5f, 0x24, 0x03, 0xd5, 0xdf, 0x24, 0x03, 0xd5,
					0x9f, 0x24, 0x03, 0xd5, 0x1f, 0x20, 0x03 };
	const struct fathom_bytes bytes = { code, sizeof code };

	(void)state;
	assert_int_equal(fathom_nops_size(true, bytes, 100), 8);
	assert_true(fathom_is_landing(true, bytes_from(bytes, 8)));
	assert_true(fathom_is_landing(true, bytes_from(bytes, 12)));
	assert_false(fathom_is_landing(true, bytes_from(bytes, 16)));
	assert_int_equal(fathom_nop_size(true, bytes_from(bytes, 20)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_size_of_a_nop_is_known),
		cmocka_unit_test(only_whole_nops_count),
		cmocka_unit_test(aarch64_has_one_nop_and_two_marks),
	};

	return cmocka_run_group_tests_name("nops", tests, NULL, NULL);
}
