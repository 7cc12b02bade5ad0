/* SPDX-License-Identifier: MIT */
/* Which lines of a text are shown around one of them, and where lines end. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "fathom/source.h"

/* Asserts that @n lines around @line of @text are @wanted, as "1=first;2=second;". */
static void assert_lines(const char *text, uint64_t line, uint64_t n, const char *wanted)
{
	struct fathom_source_lines lines;
	char got[256] = "";
	size_t at = 0;

	fathom_source_lines_begin(text, strlen(text), line, n, &lines);
	while (fathom_source_lines_next(&lines))
		at += (size_t)snprintf(got + at, sizeof got - at, "%d=%.*s;", (int)lines.number,
				       (int)lines.size, lines.line);
	assert_string_equal(got, wanted);
}

static void the_line_is_in_the_middle(void **state)
{
	static const char text[] = "a\nb\nc\nd\ne\nf\ng\n";

	(void)state;
	assert_lines(text, 4, 1, "4=d;");
	assert_lines(text, 4, 2, "3=c;4=d;");
	assert_lines(text, 4, 3, "3=c;4=d;5=e;");
	assert_lines(text, 4, 4, "2=b;3=c;4=d;5=e;");
	assert_lines(text, 4, 5, "2=b;3=c;4=d;5=e;6=f;");
	assert_lines(text, 4, 0, "");
}

static void at_both_ends_there_are_fewer_lines_before_or_after(void **state)
{
	static const char text[] = "a\nb\nc\nd\n";

	(void)state;
	assert_lines(text, 1, 3, "1=a;2=b;3=c;");
	assert_lines(text, 2, 5, "1=a;2=b;3=c;4=d;");
	assert_lines(text, 4, 3, "3=c;4=d;");
	assert_lines(text, 5, 1, "");
	assert_lines(text, 5, 3, "4=d;");
	assert_lines(text, 1000, 5, "");
	assert_lines(text, UINT32_MAX, UINT32_MAX, "");
}

static void lines_end_in_every_way(void **state)
{
	(void)state;
	assert_lines("", 1, 5, "");
	assert_lines("\n", 1, 5, "1=;");
	assert_lines("a", 1, 5, "1=a;");
	assert_lines("a\nb", 2, 5, "1=a;2=b;");
	assert_lines("a\r\nb\r\n", 1, 5, "1=a;2=b;");
	assert_lines("a\r\r\n\r\nb\rc\r", 1, 5, "1=a\r;2=;3=b\rc;");
	assert_lines("\n\n\nd", 4, 5, "2=;3=;4=d;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_is_in_the_middle),
		cmocka_unit_test(at_both_ends_there_are_fewer_lines_before_or_after),
		cmocka_unit_test(lines_end_in_every_way),
	};

	return cmocka_run_group_tests_name("text_lines", tests, NULL, NULL);
}
