/* SPDX-License-Identifier: MIT */
/* Names of types as c++filt -t prints them, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "safe/cxx/type_name.h"

static char name[FATHOM_TYPE_NAME];

static bool demangle(const char *mangled, size_t size)
{
	return fathom_type_name((struct fathom_str){ mangled, (uint32_t)size }, name);
}

static void names(void **state)
{
	static const char *const rows[][2] = {
		{ "i", "int" },
		{ "PKc", "char const*" },
		{ "Pv", NULL },
		{ "5Plain", "Plain" },
		{ "*5Plain", "Plain" },
		{ "P5Plain", "Plain*" },
		{ "St13runtime_error", "std::runtime_error" },
		{ "N5space9OverridesE", "space::Overrides" },
		{ "NSt8ios_base7failureB5cxx11E", "std::ios_base::failure[abi:cxx11]" },
		{ "N12_GLOBAL__N_15InnerE", "(anonymous namespace)::Inner" },
		/* Templates, substitutions and functions. */
		{ "N5space8InheritsISt6vectorIlSaIlEEEE", NULL },
		{ "Ss", NULL },
		{ "Z4mainE5Local", NULL },
		{ "", NULL },
		{ "NE", NULL },
		{ "0", NULL },
		{ "i5Plain", NULL },
		{ "99999999999999999999Plain", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const bool is_name = demangle(rows[i][0], strlen(rows[i][0]));

		assert_int_equal(is_name, rows[i][1] != NULL);
		if (is_name)
			assert_string_equal(name, rows[i][1]);
	}
}

static void no_beginning_of_a_name_is_one(void **state)
{
	static const char whole[] = "NSt8ios_base7failureB5cxx11E";

	(void)state;
	for (size_t n = 0; n + 1 < sizeof whole; n++) {
		char *const exact = test_malloc(n ? n : 1);

		memcpy(exact, whole, n);
		assert_false(demangle(exact, n));
		test_free(exact);
	}
}

static void long_names(void **state)
{
	char mangled[FATHOM_TYPE_NAME + 8];

	(void)state;
	memset(mangled, 'x', sizeof mangled);
	memcpy(mangled, "511", 3);
	assert_true(demangle(mangled, 3 + 511));
	assert_int_equal(strlen(name), 511);
	memcpy(mangled, "512", 3);
	assert_false(demangle(mangled, 3 + 512));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(no_beginning_of_a_name_is_one),
		cmocka_unit_test(long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
