/* SPDX-License-Identifier: MIT */
/*
 * Instructions that are written, beside what llvm-mc assembles, at the ends of their reach and one
 * byte further.
 */
#include "unit.h"

#include <string.h>

#include "host/code/aarch64/arm_instructions.h"
#include "host/code/x86_64/x86_instructions.h"

#define AT UINT64_C(0x7f0000001000)

typedef bool put_fn(uint64_t avma, uint64_t to, uint8_t *bytes);

/* The bytes that @put writes at AT to lead @distance bytes on from there. */
struct row {
	put_fn *put;
	int64_t distance;
	bool is_near;
	uint8_t size;
	uint8_t bytes[6];
};

static const struct row rows[] = {
	{ fathom_x86_put_call, 0x1005, true, 5, { 0xe8, 0x00, 0x10, 0x00, 0x00 } },
	{ fathom_x86_put_call, 0, true, 5, { 0xe8, 0xfb, 0xff, 0xff, 0xff } },
	{ fathom_x86_put_call, 0x80000004, true, 5, { 0xe8, 0xff, 0xff, 0xff, 0x7f } },
	{ fathom_x86_put_call, 0x80000005, false, 0, { 0 } },
	{ fathom_x86_put_jump, -INT64_C(0x7ffffffb), true, 5, { 0xe9, 0x00, 0x00, 0x00, 0x80 } },
	{ fathom_x86_put_jump, -INT64_C(0x7ffffffc), false, 0, { 0 } },
	{ fathom_x86_put_jump, INT64_C(1) << 32, false, 0, { 0 } },
	{ fathom_x86_put_short_jump, 129, true, 2, { 0xeb, 0x7f } },
	{ fathom_x86_put_short_jump, 130, false, 0, { 0 } },
	{ fathom_x86_put_short_jump, -126, true, 2, { 0xeb, 0x80 } },
	{ fathom_x86_put_short_jump, -127, false, 0, { 0 } },
	{ fathom_x86_put_jump_by_word, 0x123a, true, 6, { 0xff, 0x25, 0x34, 0x12, 0x00, 0x00 } },
	{ fathom_x86_put_jump_by_word, 0x80000006, false, 0, { 0 } },
};

static void branches_of_x86_lead_where_they_are_to(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint8_t bytes[6];

		assert_int_equal(rows[i].put(AT, AT + (uint64_t)rows[i].distance, bytes),
				 rows[i].is_near);
		assert_memory_equal(bytes, rows[i].bytes, rows[i].size);
		if (rows[i].is_near && rows[i].size > 2)
			assert_int_equal(fathom_x86_target(AT, bytes, rows[i].size),
					 AT + (uint64_t)rows[i].distance);
	}
}

static void a_far_jump_of_x86_has_its_address_behind_it(void **state)
{
	static const uint8_t expected[] = { 0xff, 0x25, 0,    0,    0,    0,    0x88,
					    0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 };
	uint8_t bytes[FATHOM_X86_FAR_SIZE];

	(void)state;
	fathom_x86_put_far_jump(UINT64_C(0x1122334455667788), bytes);
	assert_int_equal(sizeof bytes, sizeof expected);
	assert_memory_equal(bytes, expected, sizeof expected);
}

static void calls_and_jumps_by_words_differ(void **state)
{
	static const uint8_t jump[] = { 0xff, 0x25 };
	static const uint8_t call[] = { 0xff, 0x15 };
	static const uint8_t indirect[] = { 0xff, 0xe1 }; /* jmp *%rcx */

	(void)state;
	assert_true(fathom_x86_is_jump_by_word(jump) && !fathom_x86_is_jump_by_word(call));
	assert_true(fathom_x86_is_call_by_word(call) && !fathom_x86_is_call_by_word(jump));
	assert_false(fathom_x86_is_jump_by_word(indirect) || fathom_x86_is_call_by_word(indirect));
}

static void branches_of_aarch64_lead_where_they_are_to(void **state)
{
	uint32_t op = 0;

	(void)state;
	assert_true(fathom_arm_jump(AT, AT + 32, &op));
	assert_int_equal(op, 0x14000008);
	assert_true(fathom_arm_call(AT, AT - 4, &op));
	assert_int_equal(op, 0x97ffffff);
	assert_true(fathom_arm_jump(AT, AT - 0x8000000, &op));
	assert_int_equal(op, 0x16000000);
	assert_true(fathom_arm_jump(AT, AT + 0x7fffffc, &op));
	assert_int_equal(op, 0x15ffffff);
	assert_false(fathom_arm_jump(AT, AT + 0x8000000, &op));
	assert_false(fathom_arm_call(AT, AT - 0x8000004, &op));
	assert_false(fathom_arm_call(AT, AT + 2, &op));
}

static void a_far_jump_of_aarch64_has_its_address_behind_it(void **state)
{
	static const uint32_t expected[] = { 0x58000050, 0xd61f0200, 0x55667788, 0x11223344 };
	uint32_t words[FATHOM_ARM_FAR_WORDS];

	(void)state;
	fathom_arm_put_far_jump(UINT64_C(0x1122334455667788), words);
	assert_memory_equal(words, expected, sizeof expected);
}

static void pairs_of_aarch64_are_pushed_and_popped(void **state)
{
	(void)state;
	assert_int_equal(fathom_arm_push(16), 0xa9bf7bf0);
	assert_int_equal(fathom_arm_push(48), 0xa9bd7bf0);
	assert_int_equal(fathom_arm_pop(16), 0xa8c17bf0);
	assert_int_equal(fathom_arm_pop(48), 0xa8c37bf0);
	assert_int_equal(fathom_arm_pop(496), 0xa8df7bf0);
}

static void few_instructions_of_aarch64_may_change_under_threads(void **state)
{
	/* b, bl, nop, brk #0xffff, svc #0, hvc #1, isb */
	static const uint32_t may[] = { 0x14000008, 0x97ffffff, 0xd503201f, 0xd43fffe0,
					0xd4000001, 0xd4000022, 0xd5033fdf };
	/* ret, ldr x0, [x1], cbz x0, bti c, hlt #0 */
	static const uint32_t may_not[] = { 0xd65f03c0, 0xf9400020, 0xb4000000, 0xd503245f,
					    0xd4400000 };

	(void)state;
	for (size_t i = 0; i < sizeof may / sizeof *may; i++)
		assert_true(fathom_arm_may_change(may[i]));
	for (size_t i = 0; i < sizeof may_not / sizeof *may_not; i++)
		assert_false(fathom_arm_may_change(may_not[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches_of_x86_lead_where_they_are_to),
		cmocka_unit_test(a_far_jump_of_x86_has_its_address_behind_it),
		cmocka_unit_test(calls_and_jumps_by_words_differ),
		cmocka_unit_test(branches_of_aarch64_lead_where_they_are_to),
		cmocka_unit_test(a_far_jump_of_aarch64_has_its_address_behind_it),
		cmocka_unit_test(pairs_of_aarch64_are_pushed_and_popped),
		cmocka_unit_test(few_instructions_of_aarch64_may_change_under_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
