/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/jit/perf_map.h"
#include "rewritten.h"

static struct fathom_memory memory = { .budget = UINT64_MAX };

/* The file that append() writes, which map_of() empties. */
static int written = -1;

/* Appends @size bytes to the file, and reads on. */
static void append(struct fathom_perf_map *map, const char *text, size_t size)
{
	const off_t end = lseek(written, 0, SEEK_END);

	assert_int_equal(pwrite(written, text, size, end), (ssize_t)size);
	assert_int_equal(fathom_perf_map_read(map, written, (uint64_t)end + size), 0);
}

static struct fathom_perf_map map_of(const char *text)
{
	struct fathom_perf_map map = { 0 };

	fathom_perf_map_init(&map, &memory);
	assert_int_equal(ftruncate(written, 0), 0);
	append(&map, text, strlen(text));
	return map;
}

static void assert_at(const struct fathom_perf_map *map, uint64_t avma, const char *name)
{
	struct fathom_perf_symbol s;
	const bool found = fathom_perf_map_at(map, avma, &s);

	assert_int_equal(found, name != NULL);
	if (!found || !name)
		return;
	assert_int_equal(s.name.size, strlen(name));
	assert_memory_equal(s.name.data, name, s.name.size);
	assert_true(avma >= s.start && avma - s.start < s.size);
}

static void both_dialects_are_read(void **state)
{
	struct fathom_perf_map map = map_of("1000 10 plain\n"
					    "0x0000000000002000 0x00000010 with prefix\n"
					    "7FFFABCD0000 A0 upper case\n"
					    "  3000\t20  two blanks\n");

	(void)state;
	assert_at(&map, 0xfff, NULL);
	assert_at(&map, 0x1000, "plain");
	assert_at(&map, 0x100f, "plain");
	assert_at(&map, 0x1010, NULL);
	assert_at(&map, 0x2008, "with prefix");
	assert_at(&map, 0x7fffabcd009f, "upper case");
	assert_at(&map, 0x3000, " two blanks");
	fathom_perf_map_clear(&map);
}

static void names_go_to_the_end_of_the_line(void **state)
{
	struct fathom_perf_map map = map_of("1000 10 void java.lang.Object::<init>(int, long)\n"
					    "2000 10 carriage\r\n"
					    "3000 10 \n"
					    "4000 10\n"
					    "5000 10 \xc3\xa9t\xc3\xa9\n");

	(void)state;
	assert_at(&map, 0x1000, "void java.lang.Object::<init>(int, long)");
	assert_at(&map, 0x2000, "carriage");
	assert_at(&map, 0x3000, NULL);
	assert_at(&map, 0x4000, NULL);
	assert_at(&map, 0x5000, "\xc3\xa9t\xc3\xa9");
	fathom_perf_map_clear(&map);
}

static void a_later_line_takes_away_what_it_covers(void **state)
{
	struct fathom_perf_map map = map_of("1000 100 old\n1040 20 new\n1080 10 \n10f0 20 last\n");

	(void)state;
	assert_at(&map, 0x103f, "old");
	assert_at(&map, 0x1040, "new");
	assert_at(&map, 0x105f, "new");
	assert_at(&map, 0x1060, "old");
	/* A line without a name still removes the old code. */
	assert_at(&map, 0x1080, NULL);
	assert_at(&map, 0x1090, "old");
	assert_at(&map, 0x10f0, "last");
	assert_at(&map, 0x110f, "last");
	fathom_perf_map_clear(&map);
}

static void what_is_no_line_is_left_out(void **state)
{
	static const char *const lines[] = {
		"\n",
		"1000\n",
		"1000 \n",
		"1000 x name\n",
		"x 10 name\n",
		"1000 -10 name\n",
		"1000,10 name\n",
		"1000 10name\n",
		"0x 10 name\n",
		"10000000000000000 10 name\n",
		"1000 10000000000000000 name\n",
		"ffffffffffffffff 10 overflow\n",
		"1000 0 nothing\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct fathom_perf_map map = map_of(lines[i]);

		assert_at(&map, 0x1000, NULL);
		assert_at(&map, UINT64_MAX, NULL);
		fathom_perf_map_clear(&map);
	}
}

static void bytes_that_no_name_has_make_no_line(void **state)
{
	static const char text[] = "1000 10 a\0b\n2000 10 c\n";
	struct fathom_perf_map map = map_of("");

	(void)state;
	append(&map, text, sizeof text - 1);
	assert_at(&map, 0x1000, NULL);
	assert_at(&map, 0x2000, "c");
	fathom_perf_map_clear(&map);
}

static void the_last_line_counts_without_its_end_when_nobody_writes(void **state)
{
	struct fathom_perf_map map = map_of("1000 100 first\n1080 10 sec");

	(void)state;
	assert_at(&map, 0x107f, "first");
	assert_at(&map, 0x1080, "first");
	fathom_perf_map_end(&map);
	assert_at(&map, 0x107f, "first");
	assert_at(&map, 0x1080, "sec");
	assert_at(&map, 0x1090, "first");
	/* The line goes on after all. */
	append(&map, "ond", 3);
	assert_at(&map, 0x108f, "first");
	append(&map, "\n3000 1", 7);
	assert_at(&map, 0x1080, "second");
	/* A number alone names nothing. */
	fathom_perf_map_end(&map);
	assert_at(&map, 0x3000, NULL);
	append(&map, "0 third\n", 8);
	fathom_perf_map_end(&map);
	assert_at(&map, 0x300f, "third");
	/* A line without a name removes what was there. */
	append(&map, "1000 20 ", 8);
	fathom_perf_map_end(&map);
	assert_at(&map, 0x1000, NULL);
	assert_at(&map, 0x1020, "first");
	fathom_perf_map_clear(&map);
	assert_at(&map, 0x1000, NULL);
	assert_int_equal(memory.used, 0);
}

static void a_line_cut_where_a_page_ends_does_not_count(void **state)
{
	struct fathom_perf_map map = map_of("");
	char text[4097];

	(void)state;
	/* The end of the page cuts the name "second". */
	(void)snprintf(text, sizeof text, "1000 10 %*s\n2000 10 sec", 4096 - 8 - 12, "first");
	assert_int_equal(strlen(text), 4096);
	append(&map, text, 4095);
	fathom_perf_map_end(&map);
	assert_at(&map, 0x2000, "se");
	append(&map, "c", 1);
	fathom_perf_map_end(&map);
	assert_at(&map, 0x2000, NULL);
	append(&map, "o", 1);
	fathom_perf_map_end(&map);
	assert_at(&map, 0x2000, "seco");
	fathom_perf_map_clear(&map);
}

static void write_file(int fd, const char *text)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void read_file(struct fathom_perf_map *map, int fd)
{
	const off_t size = lseek(fd, 0, SEEK_END);

	assert_int_equal(fathom_perf_map_read(map, fd, (uint64_t)size), 0);
}

static void a_file_that_grew_is_read_on_and_another_from_its_start(void **state)
{
	const int fd = memfd_create("map", MFD_CLOEXEC);
	struct fathom_perf_map map = map_of("");

	(void)state;
	write_file(fd, "1000 10 one\n2000 10 tw");
	read_file(&map, fd);
	assert_at(&map, 0x1000, "one");
	assert_at(&map, 0x2000, NULL);
	write_file(fd, "1000 10 one\n2000 10 two\n");
	read_file(&map, fd);
	assert_at(&map, 0x1000, "one");
	assert_at(&map, 0x2000, "two");
	/* Rewritten: with the same size, longer, shorter. */
	write_file(fd, "1000 10 eno\n2000 10 two\n");
	read_file(&map, fd);
	assert_at(&map, 0x1000, "eno");
	write_file(fd, "3000 10 three\n4000 10 four\n5000 10 five\n");
	read_file(&map, fd);
	assert_at(&map, 0x1000, NULL);
	assert_at(&map, 0x5000, "five");
	write_file(fd, "");
	read_file(&map, fd);
	assert_at(&map, 0x5000, NULL);
	fathom_perf_map_clear(&map);
	close(fd);
}

static void a_long_file_that_changed_anywhere_is_read_anew(void **state)
{
	const int fd = memfd_create("map", MFD_CLOEXEC);
	struct fathom_perf_map map = map_of("");
	char line[64];

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		const int n = snprintf(line, sizeof line, "%x 10 f%05u\n", 0x100000 + i * 16, i);

		assert_int_equal(write(fd, line, (size_t)n), n);
	}
	read_file(&map, fd);
	assert_at(&map, 0x100000 + 19999 * 16, "f19999");
	assert_int_equal(pwrite(fd, "100000 10 g", 11, 0), 11);
	read_file(&map, fd);
	assert_at(&map, 0x100000, "g00000");
	/* Lines have 17 bytes: this one is in the middle, far from the others. */
	assert_int_equal(pwrite(fd, "g", 1, 7501 * 17 + 10), 1);
	read_file(&map, fd);
	assert_at(&map, 0x100000 + 7501 * 16, "g07501");
	assert_int_equal(pwrite(fd, "9\n", 2, lseek(fd, 0, SEEK_END) - 2), 2);
	assert_int_equal(pwrite(fd, "8", 1, lseek(fd, 0, SEEK_END) - 2), 1);
	read_file(&map, fd);
	assert_at(&map, 0x100000 + 19999 * 16, "f19998");
	fathom_perf_map_clear(&map);
	close(fd);
}

static void a_file_that_is_rewritten_meanwhile_is_not_mixed(void **state)
{
	const int fd = memfd_create("map", MFD_CLOEXEC);
	const char *grown = "1000 10 old\n2000 10 grown\n";
	/* The start of the first file and the rest of this one would make "2000 10 mixed". */
	const char *other = "3000 100 ano\n5000 0 mixed\n";

	(void)state;
	for (int n = 1; n < 4; n++) {
		struct fathom_perf_map map = map_of("");

		write_file(fd, "1000 10 old\n2000 1");
		read_file(&map, fd);
		assert_at(&map, 0x1000, "old");
		write_file(fd, grown);
		rewrite_before(n, fd, other, strlen(other));
		read_file(&map, fd);
		assert_at(&map, 0x1000, n < 3 ? NULL : "old");
		assert_at(&map, 0x2000, n < 3 ? NULL : "grown");
		assert_at(&map, 0x3000, n < 3 ? "ano" : NULL);
		fathom_perf_map_clear(&map);
	}
	rewrite_before(0, fd, NULL, 0);
	close(fd);
}

static void more_than_the_budget_is_refused(void **state)
{
	struct fathom_memory small = { .budget = 64 };
	struct fathom_perf_map map = { 0 };
	const char *text = "1000 10 some name\n2000 10 another, and more than fits by far\n";

	(void)state;
	fathom_perf_map_init(&map, &small);
	write_file(written, text);
	assert_int_equal(fathom_perf_map_read(&map, written, strlen(text)), FATHOM_E_LIMIT);
	assert_at(&map, 0x1000, NULL);
	fathom_perf_map_clear(&map);
	assert_int_equal(small.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_dialects_are_read),
		cmocka_unit_test(names_go_to_the_end_of_the_line),
		cmocka_unit_test(a_later_line_takes_away_what_it_covers),
		cmocka_unit_test(what_is_no_line_is_left_out),
		cmocka_unit_test(bytes_that_no_name_has_make_no_line),
		cmocka_unit_test(the_last_line_counts_without_its_end_when_nobody_writes),
		cmocka_unit_test(a_line_cut_where_a_page_ends_does_not_count),
		cmocka_unit_test(a_file_that_grew_is_read_on_and_another_from_its_start),
		cmocka_unit_test(a_long_file_that_changed_anywhere_is_read_anew),
		cmocka_unit_test(a_file_that_is_rewritten_meanwhile_is_not_mixed),
		cmocka_unit_test(more_than_the_budget_is_refused),
	};

	written = memfd_create("written", MFD_CLOEXEC);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
