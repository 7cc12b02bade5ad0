/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fathom/fathom.h"
#include "safe/base/error.h"
#include "safe/base/text.h"

/* Checks the groups of @value, which @digits are of. */
static void check_grouped(uint64_t value, const char *digits)
{
	char grouped[FATHOM_GROUPED_SIZE + 1];
	const size_t n = fathom_format_grouped(grouped, value);
	const size_t n_digits = strlen(digits);
	size_t k = 0;

	assert_int_equal(n, n_digits + (n_digits - 1) / 3);
	for (size_t i = 0; i < n; i++) {
		if ((n - i) % 4 == 0)
			assert_int_equal(grouped[i], '\'');
		else
			assert_int_equal(grouped[i], digits[k++]);
	}
}

static void numbers_as_printf_writes_them(void **state)
{
	char ours[FATHOM_NUMBER_SIZE + 1];
	char theirs[32];

	(void)state;
	for (unsigned bit = 0; bit <= 64; bit++) {
		for (uint64_t around = 0; around < 3; around++) {
			const uint64_t value = (bit == 64 ? 0 : UINT64_C(1) << bit) + around - 1;

			ours[fathom_format_hex(ours, value)] = '\0';
			(void)snprintf(theirs, sizeof theirs, "0x%" PRIx64, value);
			assert_string_equal(ours, theirs);
			ours[fathom_format_dec(ours, value)] = '\0';
			(void)snprintf(theirs, sizeof theirs, "%" PRIu64, value);
			assert_string_equal(ours, theirs);
			check_grouped(value, theirs);
		}
	}
}

static void an_error_says_file_section_and_offset(void **state)
{
	struct fathom_errinfo info;
	char text[64];

	(void)state;
	assert_int_equal(fathom_fail(&info, FATHOM_E_CORRUPT, ".debug_info", 0x1f, "is damaged"),
			 FATHOM_E_CORRUPT);
	strcpy(info.file, "a.out");
	assert_int_equal(fathom_errinfo_format(&info, text, sizeof text), 35);
	assert_string_equal(text, "a.out: .debug_info+0x1f: is damaged");
	/* Cut to fit, but the full length is returned. */
	assert_int_equal(fathom_errinfo_format(&info, text, 8), 35);
	assert_string_equal(text, "a.out: ");
	assert_int_equal(fathom_errinfo_format(&info, text, 0), 35);
}

static void every_class_has_its_own_words(void **state)
{
	(void)state;
	for (fathom_err a = FATHOM_E_CHANGED; a <= 0; a++)
		for (fathom_err b = FATHOM_E_CHANGED; b < a; b++)
			assert_string_not_equal(fathom_err_name(a), fathom_err_name(b));
	assert_string_equal(fathom_err_name(-1000), "unknown error");
	assert_string_equal(fathom_source_name(FATHOM_SOURCE_PLT), "plt");
	assert_string_equal(fathom_source_name((enum fathom_source)99), "");
	assert_string_equal(fathom_reason_name(FATHOM_REASON_LIMIT), "limit");
	assert_string_equal(fathom_reason_name((enum fathom_reason)99), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_as_printf_writes_them),
		cmocka_unit_test(an_error_says_file_section_and_offset),
		cmocka_unit_test(every_class_has_its_own_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
