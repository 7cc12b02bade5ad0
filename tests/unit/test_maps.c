/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "maps.h"

static void assert_name(const struct fathom_mapping *m, const char *name)
{
	assert_int_equal(m->name.size, strlen(name));
	assert_memory_equal(m->name.data, name, strlen(name));
}

static void each_field_of_a_line_is_read(void **state)
{
	struct fathom_maps maps =
		parse("7f0000001000-7f0000003000 r-xp 0001f000 103:0a 123456   /usr/lib/a b.so\n");
	const struct fathom_mapping *m = maps.items;

	(void)state;
	assert_int_equal(maps.n, 1);
	assert_true(m->start == 0x7f0000001000 && m->end == 0x7f0000003000 && m->off == 0x1f000);
	assert_true(m->device == (UINT64_C(0x103) << 32 | 0xa) && m->inode == 123456);
	assert_true(m->readable && m->executable && !m->deleted);
	assert_name(m, "/usr/lib/a b.so");
	fathom_maps_deinit(&maps);
}

static void names_may_be_missing_deleted_or_the_kernels(void **state)
{
	struct fathom_maps maps = parse("1000-2000 rw-p 00000000 00:00 0\n"
					"2000-3000 rw-p 00000000 00:00 0 \n"
					"3000-4000 r--s 00000000 00:01 7   /memfd:x (deleted)\n"
					"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 "
					"[vsyscall]");

	(void)state;
	assert_int_equal(maps.n, 4);
	assert_null(maps.items[0].name.data);
	assert_null(maps.items[1].name.data);
	assert_true(maps.items[2].deleted && !maps.items[2].executable);
	assert_name(&maps.items[2], "/memfd:x");
	assert_true(maps.items[3].end == UINT64_C(0xffffffffff601000) && !maps.items[3].readable);
	assert_name(&maps.items[3], "[vsyscall]");
	fathom_maps_deinit(&maps);
}

static void what_is_no_mapping_is_left_out(void **state)
{
	static const char *const lines[] = {
		"\n",
		"1000-2000\n",
		"2000-1000 r--p 0 00:00 0\n",
		"1000-1000 r--p 0 00:00 0\n",
		"x000-2000 r--p 0 00:00 0\n",
		"1000 2000 r--p 0 00:00 0\n",
		"1000-2000 r- 0 00:00 0\n",
		"1000-2000 r--p 0 0000 0\n",
		"1000-2000 r--p 0 00:00 x\n",
		"10000000000000000-20000000000000000 r--p 0 00:00 0\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct fathom_maps maps = parse(lines[i]);

		assert_int_equal(maps.n, 0);
		fathom_maps_deinit(&maps);
	}
}

/*
 * While a map is read, the kernel may join mappings, the first of which it has shown: the joined
 * one goes back, but only it says what is behind the first.
 */
static void of_mappings_that_go_back_the_end_counts(void **state)
{
	struct fathom_maps maps = parse("1000-3000 r--p 0 00:00 1 /a\n"
					"2000-4000 r-xp 100 00:00 2 /b\n"
					"3000-4000 r--p 0 00:00 3 /c\n"
					"1000-6000 r-xp 0 00:00 0\n");

	(void)state;
	assert_int_equal(maps.n, 3);
	assert_name(&maps.items[1], "/b");
	assert_true(maps.items[1].start == 0x3000 && maps.items[1].end == 0x4000);
	assert_int_equal(maps.items[1].off, 0x1100);
	assert_true(maps.items[2].start == 0x4000 && maps.items[2].end == 0x6000);
	assert_int_equal(maps.items[2].off, 0);
	assert_int_equal(fathom_maps_at(&maps, 0x5fff), 2);
	fathom_maps_deinit(&maps);
}

static void an_address_is_in_the_mapping_that_holds_it(void **state)
{
	struct fathom_maps maps = parse("1000-3000 r--p 0 00:00 1 /a\n"
					"3000-4000 r--p 0 00:00 2 /b\n"
					"8000-9000 r--p 0 00:00 3 /c\n");

	(void)state;
	assert_int_equal(fathom_maps_at(&maps, 0xfff), 3);
	assert_int_equal(fathom_maps_at(&maps, 0x1000), 0);
	assert_int_equal(fathom_maps_at(&maps, 0x2fff), 0);
	assert_int_equal(fathom_maps_at(&maps, 0x3000), 1);
	assert_int_equal(fathom_maps_at(&maps, 0x4000), 3);
	assert_int_equal(fathom_maps_at(&maps, 0x8fff), 2);
	assert_int_equal(fathom_maps_at(&maps, UINT64_MAX), 3);
	fathom_maps_deinit(&maps);
}

static void a_number_that_is_too_large_ends_its_line_only(void **state)
{
	struct fathom_maps maps = parse("1ffffffffffffffff\n"
					"1000-2000 rw-p 0 00:00 99999999999999999999\n"
					"3000-4000 rw-p 0 00:00 18446744073709551615\n");

	(void)state;
	assert_int_equal(maps.n, 1);
	assert_true(maps.items[0].start == 0x3000 && maps.items[0].inode == UINT64_MAX);
	fathom_maps_deinit(&maps);
}

#define N_LINKED 400

/* Each mapping leads to the first and the next of its file, as a comparison of all pairs shows. */
static void the_mappings_of_a_file_are_linked(void **state)
{
	char text[N_LINKED * 64];
	struct fathom_maps maps;
	uint32_t seed = 1;
	size_t at = 0;

	(void)state;
	for (unsigned i = 0; i < N_LINKED; i++) {
		seed = seed * 1103515245 + 12345;
		at += (size_t)snprintf(text + at, sizeof text - at,
				       "%x000-%x000 r-xp 0 0%u:0%u %u /%c\n", 2 * i + 1, 2 * i + 2,
				       seed >> 16 & 1, seed >> 17 & 1, seed >> 18 & 7,
				       'a' + (char)(seed >> 21 & 1));
	}
	maps = parse(text);
	assert_int_equal(maps.n, N_LINKED);
	for (size_t i = 0; i < maps.n; i++) {
		size_t first = 0;
		size_t next = i + 1;

		while (!fathom_mapping_same_file(&maps.items[first], &maps.items[i]))
			first++;
		while (next < maps.n &&
		       !fathom_mapping_same_file(&maps.items[next], &maps.items[i]))
			next++;
		assert_int_equal(maps.items[i].first, first);
		assert_int_equal(maps.items[i].next, next);
	}
	fathom_maps_deinit(&maps);
}

/* Asserts that a mapping of the map is the one that a query for its start finds. */
static void asserts_same(const struct fathom_mapping *a, const struct fathom_mapping *b)
{
	assert_true(a->start == b->start && a->end == b->end && a->off == b->off);
	assert_true(a->readable == b->readable && a->writable == b->writable &&
		    a->executable == b->executable && a->deleted == b->deleted);
	assert_true(fathom_mapping_same_file(a, b));
}

static void the_kernel_answers_as_the_map_says(void **state)
{
	struct fathom_maps all;
	size_t same = 0;

	(void)state;
	assert_int_equal(fathom_maps_read("/proc/self/maps", &all, NULL), 0);
	for (size_t i = 0; i < all.n; i++) {
		const uint64_t two[2] = { all.items[i].end - 1, all.items[i].start };
		struct fathom_maps one;

		/* The heap may move. */
		if (!all.items[i].inode && !str_is(all.items[i].name, "[vdso]"))
			continue;
		if (fathom_maps_query("/proc/self/maps", two, 2, &one))
			skip(); /* the kernel is older than 6.11 */
		assert_true(one.is_part && one.n == 1);
		asserts_same(&one.items[0], &all.items[i]);
		fathom_maps_deinit(&one);
		same++;
	}
	assert_true(same > 4);
	fathom_maps_deinit(&all);
}

static void an_address_that_nothing_holds_has_no_mapping(void **state)
{
	const uint64_t addresses[] = { 1, 0 };
	struct fathom_maps none;

	(void)state;
	if (fathom_maps_query("/proc/self/maps", addresses, 2, &none))
		skip();
	assert_true(none.n == 0);
	fathom_maps_deinit(&none);
	assert_true(fathom_maps_query("/proc/self/nothing", addresses, 2, &none) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_of_a_line_is_read),
		cmocka_unit_test(names_may_be_missing_deleted_or_the_kernels),
		cmocka_unit_test(what_is_no_mapping_is_left_out),
		cmocka_unit_test(of_mappings_that_go_back_the_end_counts),
		cmocka_unit_test(an_address_is_in_the_mapping_that_holds_it),
		cmocka_unit_test(a_number_that_is_too_large_ends_its_line_only),
		cmocka_unit_test(the_mappings_of_a_file_are_linked),
		cmocka_unit_test(the_kernel_answers_as_the_map_says),
		cmocka_unit_test(an_address_that_nothing_holds_has_no_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
