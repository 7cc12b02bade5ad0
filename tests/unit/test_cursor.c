/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "safe/base/cursor.h"

#define CURSOR(...)                                                                 \
	cur_init((struct fathom_bytes){ (const uint8_t[]){ __VA_ARGS__ },           \
					sizeof((const uint8_t[]){ __VA_ARGS__ }) }, \
		 false)

/* Returns whether this machine is little-endian: the bytes below are. */
static bool little(void)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

static void numbers_are_read_in_either_byte_order(void **state)
{
	struct fathom_cursor c = CURSOR(1, 2, 3, 4, 5, 6, 7, 8);
	struct fathom_cursor start = c;

	(void)state;
	c.swap = start.swap = !little();
	assert_int_equal(cur_u16(&c), 0x0201);
	c = start;
	assert_int_equal(cur_u24(&c), 0x030201);
	c = start;
	assert_int_equal(cur_u32(&c), 0x04030201);
	c = start;
	assert_true(cur_u64(&c) == UINT64_C(0x0807060504030201));
	c = start;
	c.swap = little();
	assert_int_equal(cur_u24(&c), 0x010203);
	assert_int_equal(cur_u32(&c), 0x04050607);
	assert_true(cur_ok(&c));
}

static void a_read_past_the_end_sticks(void **state)
{
	struct fathom_cursor c = CURSOR(1, 2, 3);
	const uint8_t *third = c.p + 2;

	(void)state;
	assert_int_equal(cur_u16(&c), little() ? 0x0201 : 0x0102);
	assert_int_equal(cur_u16(&c), 0);
	assert_false(cur_ok(&c));
	assert_ptr_equal(c.bad, third);
	assert_int_equal(cur_left(&c), 0);
	/* After a failure nothing is read, not even what would fit. */
	assert_int_equal(cur_u8(&c), 0);
	assert_ptr_equal(c.bad, third);
}

static void an_empty_range_fails_too(void **state)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ NULL, 0 }, false);

	(void)state;
	assert_true(cur_ok(&c));
	assert_int_equal(cur_u8(&c), 0);
	assert_false(cur_ok(&c));
}

/* DWARF 5, appendix C, tables C.1 and C.2. */
static void leb128_examples_of_the_specification(void **state)
{
	struct fathom_cursor u = CURSOR(2, 127, 0x80, 1, 0x81, 1, 0x82, 1, 0xb9, 0x64);
	struct fathom_cursor s =
		CURSOR(2, 0x7e, 0xff, 0, 0x81, 0x7f, 0x80, 1, 0x80, 0x7f, 0x81, 1, 0xff, 0x7e);

	(void)state;
	assert_int_equal(cur_uleb(&u), 2);
	assert_int_equal(cur_uleb(&u), 127);
	assert_int_equal(cur_uleb(&u), 128);
	assert_int_equal(cur_uleb(&u), 129);
	assert_int_equal(cur_uleb(&u), 130);
	assert_int_equal(cur_uleb(&u), 12857);
	assert_true(cur_ok(&u));
	assert_int_equal(cur_sleb(&s), 2);
	assert_int_equal(cur_sleb(&s), -2);
	assert_int_equal(cur_sleb(&s), 127);
	assert_int_equal(cur_sleb(&s), -127);
	assert_int_equal(cur_sleb(&s), 128);
	assert_int_equal(cur_sleb(&s), -128);
	assert_int_equal(cur_sleb(&s), 129);
	assert_int_equal(cur_sleb(&s), -129);
	assert_true(cur_ok(&s));
}

static void leb128_fits_64_bits_or_fails(void **state)
{
	struct fathom_cursor max =
		CURSOR(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01);
	struct fathom_cursor over =
		CURSOR(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03);
	struct fathom_cursor padded =
		CURSOR(0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
	struct fathom_cursor open = CURSOR(0x80, 0x80);

	(void)state;
	assert_true(cur_uleb(&max) == UINT64_MAX);
	assert_true(cur_ok(&max));
	assert_int_equal(cur_uleb(&over), 0);
	assert_false(cur_ok(&over));
	assert_int_equal(cur_uleb(&padded), 5);
	assert_true(cur_ok(&padded));
	assert_int_equal(cur_uleb(&open), 0);
	assert_false(cur_ok(&open));
}

static void a_sub_cursor_keeps_its_bounds(void **state)
{
	struct fathom_cursor c = CURSOR(1, 2, 3, 4);
	struct fathom_cursor sub = cur_sub(&c, 2);
	struct fathom_cursor too_long;

	(void)state;
	assert_int_equal(cur_u8(&sub), 1);
	assert_int_equal(cur_u8(&sub), 2);
	assert_int_equal(cur_u8(&sub), 0);
	assert_false(cur_ok(&sub));
	assert_true(cur_ok(&c));
	assert_int_equal(cur_u8(&c), 3);
	too_long = cur_sub(&c, UINT64_MAX);
	assert_false(cur_ok(&c));
	assert_false(cur_ok(&too_long));
	assert_int_equal(cur_left(&too_long), 0);
}

static void a_string_needs_its_end(void **state)
{
	struct fathom_cursor c = CURSOR('a', 'b', 0, 'c');
	struct fathom_str s = cur_str(&c);

	(void)state;
	assert_int_equal(s.size, 2);
	assert_memory_equal(s.data, "ab", 2);
	s = cur_str(&c);
	assert_null(s.data);
	assert_false(cur_ok(&c));
}

static void a_character_is_found_wherever_it_stands(void **state)
{
	char text[40];

	(void)state;
	/* From every start, at every place, with another one before and after. */
	for (uint32_t size = 0; size <= sizeof text; size++)
		for (uint32_t at = 0; at < size; at++)
			for (uint32_t from = 0; from <= size + 1; from++) {
				const struct fathom_str s = { text, size };

				memset(text, at % 2 ? '\xc0' : 'A', sizeof text);
				text[at] = '@';
				assert_int_equal(fathom_str_find(s, from, '@'),
						 from <= at ? at : size);
				assert_int_equal(fathom_str_find(s, from, '#'), size);
			}
}

static void initial_lengths(void **state)
{
	struct fathom_cursor short_form = CURSOR(0x10, 0, 0, 0);
	struct fathom_cursor long_form = CURSOR(0xff, 0xff, 0xff, 0xff, 0x20, 0, 0, 0, 0, 0, 0, 0);
	struct fathom_cursor reserved = CURSOR(0xf0, 0xff, 0xff, 0xff);
	uint8_t size;

	(void)state;
	short_form.swap = long_form.swap = reserved.swap = !little();
	assert_int_equal(cur_initial_length(&short_form, &size), 0x10);
	assert_int_equal(size, 4);
	assert_int_equal(cur_initial_length(&long_form, &size), 0x20);
	assert_int_equal(size, 8);
	assert_int_equal(cur_initial_length(&reserved, &size), 0);
	assert_false(cur_ok(&reserved));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_in_either_byte_order),
		cmocka_unit_test(a_read_past_the_end_sticks),
		cmocka_unit_test(an_empty_range_fails_too),
		cmocka_unit_test(leb128_examples_of_the_specification),
		cmocka_unit_test(leb128_fits_64_bits_or_fails),
		cmocka_unit_test(a_sub_cursor_keeps_its_bounds),
		cmocka_unit_test(a_string_needs_its_end),
		cmocka_unit_test(a_character_is_found_wherever_it_stands),
		cmocka_unit_test(initial_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
