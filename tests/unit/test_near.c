/* SPDX-License-Identifier: MIT */
/* Typing errors: the distance against every way to make them, and which names are near. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/near.h"

static struct fathom_str str(const char *s)
{
	return (struct fathom_str){ s, (uint32_t)strlen(s) };
}

static unsigned distance(const char *a, const char *b, unsigned most)
{
	return fathom_near_distance(str(a), str(b), most);
}

/* Optimal string alignment by its definition, trying everything, without the fast one's code. */
static unsigned try_all(const char *a, const char *b)
{
	const size_t n = strlen(a);
	const size_t m = strlen(b);
	unsigned best;
	unsigned other;

	if (!n || !m)
		return (unsigned)(n + m);
	best = try_all(a + 1, b + 1) + (*a != *b);
	other = try_all(a + 1, b) + 1;
	best = other < best ? other : best;
	other = try_all(a, b + 1) + 1;
	best = other < best ? other : best;
	if (n > 1 && m > 1 && a[0] == b[1] && a[1] == b[0]) {
		other = try_all(a + 2, b + 2) + 1;
		best = other < best ? other : best;
	}
	return best;
}

static void distances_are_those_of_the_definition(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		char word[2][7];

		for (int k = 0; k < 2; k++) {
			const size_t n = (size_t)(rand_r(&seed) % 7);

			for (size_t j = 0; j < n; j++)
				word[k][j] = (char)('a' + rand_r(&seed) % 3);
			word[k][n] = '\0';
		}
		for (unsigned most = 0; most < 4; most++) {
			const unsigned true_one = try_all(word[0], word[1]);

			assert_int_equal(distance(word[0], word[1], most),
					 true_one > most ? most + 1 : true_one);
		}
	}
}

static void each_kind_of_slip_counts_once(void **state)
{
	char longest[FATHOM_NEAR_LONGEST + 2];

	(void)state;
	assert_int_equal(distance("malloc", "malloc", 2), 0);
	assert_int_equal(distance("malloc", "mallocc", 2), 1);
	assert_int_equal(distance("malloc", "maloc", 2), 1);
	assert_int_equal(distance("malloc", "nalloc", 2), 1);
	assert_int_equal(distance("malloc", "mallco", 2), 1);
	assert_int_equal(distance("malloc", "amlloc", 2), 1);
	assert_int_equal(distance("malloc", "calloc", 2), 1);
	assert_int_equal(distance("malloc", "realloc", 2), 2);
	assert_int_equal(distance("malloc", "free", 2), 3);
	memset(longest, 'x', sizeof longest);
	longest[FATHOM_NEAR_LONGEST + 1] = '\0';
	assert_int_equal(distance(longest, longest, 2), 3);
	assert_int_equal(distance(longest + 1, longest + 1, 2), 0);
	assert_int_equal(distance(longest + 1, longest + 3, 2), 2);
}

static const char *near(const char *wanted)
{
	static const char *const names[] = { "addr", "cache", "disasm", "find", "snapshot" };

	return fathom_near_text(wanted, names, sizeof names / sizeof *names);
}

static void the_nearest_name_is_chosen(void **state)
{
	static const char *const two[] = { "calloc", "malloc", "valloc" };

	(void)state;
	assert_string_equal(near("adr"), "addr");
	assert_string_equal(near("fnid"), "find");
	assert_string_equal(near("dissasm"), "disasm");
	assert_string_equal(near("disassm"), "disasm");
	assert_string_equal(near("snap"), "snapshot");
	assert_null(near("fn"));
	assert_null(near("x"));
	assert_null(near(""));
	assert_null(near("cove"));
	assert_null(near("snapshotted"));
	/* The nearest wins; of equally near ones, the first. */
	assert_string_equal(fathom_near_text("mallocx", two, 3), "malloc");
	assert_string_equal(fathom_near_text("xalloc", two, 3), "calloc");
	assert_null(fathom_near_text("malloc", NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_are_those_of_the_definition),
		cmocka_unit_test(each_kind_of_slip_counts_once),
		cmocka_unit_test(the_nearest_name_is_chosen),
	};

	return cmocka_run_group_tests_name("near", tests, NULL, NULL);
}
