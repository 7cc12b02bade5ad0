/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "host/jit/gdb_list.h"

#define BASE 0x10000

/* Memory of a process, from BASE on. */
static uint8_t image[4096];

static size_t read_image(void *data, uint64_t avma, void *to, size_t size)
{
	const uint64_t off = avma - BASE;

	(void)data;
	if (avma < BASE || off >= sizeof image)
		return 0;
	if (size > sizeof image - off)
		size = (size_t)(sizeof image - off);
	memcpy(to, image + off, size);
	return size;
}

static unsigned n_gone_ahead;

static size_t read_each(void *data, const struct fathom_reader_piece *pieces, size_t n, uint8_t *to)
{
	size_t i = 0;

	n_gone_ahead++;
	for (; i < n && read_image(data, pieces[i].avma, to, pieces[i].size) == pieces[i].size; i++)
		to += pieces[i].size;
	return i;
}

static const struct fathom_reader remote = { read_image, read_each, NULL };

static void put(uint64_t avma, uint64_t value, unsigned size, bool swap)
{
	for (unsigned i = 0; i < size; i++)
		image[avma - BASE + i] = (uint8_t)(value >> 8 * (swap ? size - 1 - i : i));
}

static void put_entry64(uint64_t at, uint64_t next, uint64_t prev, uint64_t symfile, uint64_t size)
{
	put(at, next, 8, false);
	put(at + 8, prev, 8, false);
	put(at + 16, symfile, 8, false);
	put(at + 24, size, 8, false);
}

static void put_descriptor64(uint64_t at, uint32_t version, uint64_t first)
{
	memset(image, 0, sizeof image);
	put(at, version, 4, false);
	put(at + 16, first, 8, false);
}

static struct fathom_gdb_list list64(void)
{
	return (struct fathom_gdb_list){ .layout = fathom_gdb_layout(true, EM_X86_64, false),
					 .descriptor = BASE };
}

static const struct fathom_gdb_item *item(const struct fathom_gdb_items *items, size_t i)
{
	return items->items + i;
}

/* The offsets that offsetof() gives in programs for these machines. */
static void layouts_are_those_of_the_machines(void **state)
{
	const struct fathom_gdb_layout x86_64 = fathom_gdb_layout(true, EM_X86_64, false);
	const struct fathom_gdb_layout i386 = fathom_gdb_layout(false, EM_386, false);
	const struct fathom_gdb_layout arm = fathom_gdb_layout(false, EM_ARM, false);

	(void)state;
	assert_true(x86_64.size_off == 24 && x86_64.entry == 32 && x86_64.descriptor == 24);
	assert_true(i386.size_off == 12 && i386.entry == 20 && i386.descriptor == 16);
	assert_true(arm.size_off == 16 && arm.entry == 24 && arm.descriptor == 16);
}

static void entries_are_found_in_their_order(void **state)
{
	const struct fathom_gdb_list l = list64();
	struct fathom_gdb_items items = { 0 };

	(void)state;
	put_descriptor64(BASE, 1, BASE + 100);
	put_entry64(BASE + 100, BASE + 200, 0, 0xaaaa, 11);
	put_entry64(BASE + 200, 0, BASE + 100, 0xbbbb, 22);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	assert_int_equal(items.n, 2);
	assert_true(item(&items, 0)->avma == BASE + 100 && item(&items, 0)->before == BASE);
	assert_true(item(&items, 0)->entry.symfile == 0xaaaa && item(&items, 0)->entry.size == 11);
	assert_true(item(&items, 1)->avma == BASE + 200 && item(&items, 1)->before == BASE + 100);
	assert_true(item(&items, 1)->entry.symfile == 0xbbbb && item(&items, 1)->entry.size == 22);
	fathom_array_free(&items);
}

static void lists_of_32_bit_and_big_endian_are_read(void **state)
{
	struct fathom_gdb_list l = { .layout = fathom_gdb_layout(false, EM_PPC, true),
				     .descriptor = BASE };
	struct fathom_gdb_items items = { 0 };

	(void)state;
	memset(image, 0, sizeof image);
	put(BASE, 1, 4, true);
	put(BASE + 12, BASE + 100, 4, true);
	put(BASE + 108, 0x12345678, 4, true);
	put(BASE + 116, 99, 8, true);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	assert_int_equal(items.n, 1);
	assert_true(item(&items, 0)->entry.symfile == 0x12345678 &&
		    item(&items, 0)->entry.size == 99);
	fathom_array_free(&items);
}

static void what_is_no_list_has_no_entries(void **state)
{
	struct fathom_gdb_list l = list64();
	struct fathom_gdb_items items = { 0 };

	(void)state;
	put_descriptor64(BASE, 2, BASE + 100);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	put_descriptor64(BASE, 1, 0);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	l.descriptor = 0x999999;
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	assert_int_equal(items.n, 0);
	fathom_array_free(&items);
}

static void circles_and_lists_that_lead_astray_end(void **state)
{
	const struct fathom_gdb_list l = list64();
	struct fathom_gdb_items items = { 0 };

	(void)state;
	put_descriptor64(BASE, 1, BASE + 100);
	put_entry64(BASE + 100, 0x999999, 0, 0, 0);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), FATHOM_E_CORRUPT);
	for (unsigned length = 1; length < 20; length++) {
		put_descriptor64(BASE, 1, BASE + 100);
		put_entry64(BASE + 100, BASE + 132, 0, 0, 0);
		for (unsigned i = 1; i <= length; i++)
			put_entry64(BASE + 100 + 32 * i, BASE + 100 + 32 * (i < length ? i + 1 : 1),
				    0, 0, 0);
		items.n = 0;
		assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), FATHOM_E_CORRUPT);
		assert_true(items.n <= 4 * (length + 2));
	}
	fathom_array_free(&items);
}

static bool has_stayed(const struct fathom_gdb_items *before, size_t i,
		       const struct fathom_gdb_items *after)
{
	struct fathom_gdb_pair p;
	bool stayed;

	assert_true(fathom_gdb_pair_init(&p, before, after));
	stayed = fathom_gdb_item_stayed(&p, i);
	fathom_gdb_pair_deinit(&p);
	return stayed;
}

static void an_entry_stays_when_it_is_linked_whatever_else_changed(void **state)
{
	const struct fathom_gdb_list l = list64();
	struct fathom_gdb_items before = { 0 };
	struct fathom_gdb_items after = { 0 };

	(void)state;
	put_descriptor64(BASE, 1, BASE + 100);
	put_entry64(BASE + 100, BASE + 200, 0, 1, 10);
	put_entry64(BASE + 200, 0, BASE + 100, 2, 20);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &before), 0);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &after), 0);
	assert_true(fathom_gdb_items_same(&before, &after));
	assert_true(has_stayed(&before, 1, &after));
	/* A third entry is put in front. */
	put_descriptor64(BASE, 1, BASE + 300);
	put_entry64(BASE + 300, BASE + 100, 0, 3, 30);
	put_entry64(BASE + 100, BASE + 200, BASE + 300, 1, 10);
	put_entry64(BASE + 200, 0, BASE + 100, 2, 20);
	after.n = 0;
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &after), 0);
	assert_false(fathom_gdb_items_same(&before, &after));
	assert_true(has_stayed(&before, 0, &after));
	assert_true(has_stayed(&before, 1, &after));
	/* The first entry has left, but the second's link back is not yet updated: torn. */
	put(BASE + 300, BASE + 200, 8, false);
	after.n = 0;
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &after), 0);
	assert_false(has_stayed(&before, 0, &after));
	assert_false(has_stayed(&before, 1, &after));
	/* The second entry has another symbol file. */
	put_entry64(BASE + 200, 0, BASE + 300, 4, 20);
	after.n = 0;
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &after), 0);
	assert_false(has_stayed(&before, 1, &after));
	fathom_array_free(&before);
	fathom_array_free(&after);
}

/* A walk that followed an entry that has left ends early, or a later link back shows it. */
static void a_walk_is_whole_when_all_entries_are_linked(void **state)
{
	const struct fathom_gdb_list l = list64();
	struct fathom_gdb_items items = { 0 };

	(void)state;
	assert_true(fathom_gdb_items_linked(&items));
	put_descriptor64(BASE, 1, BASE + 100);
	put_entry64(BASE + 100, BASE + 200, 0, 1, 10);
	put_entry64(BASE + 200, 0, BASE + 100, 2, 20);
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	assert_true(fathom_gdb_items_linked(&items));
	/* The first entry has left after it was reached; the second says that none is before it. */
	put_entry64(BASE + 200, 0, 0, 2, 20);
	items.n = 0;
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	assert_false(fathom_gdb_items_linked(&items));
	/* Its memory was cleared, so it leads nowhere. */
	put_entry64(BASE + 100, 0, 0, 0, 0);
	items.n = 0;
	assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &items), 0);
	assert_int_equal(items.n, 1);
	assert_false(fathom_gdb_items_linked(&items));
	fathom_array_free(&items);
}

#define MANY 100

/* Makes a list of those of MANY entries for which @is_there is set. */
static void put_many(const bool *is_there)
{
	uint64_t last = 0;

	put_descriptor64(BASE, 1, 0);
	for (unsigned i = 0; i < MANY; i++) {
		const uint64_t at = BASE + 32 + 32 * (uint64_t)i;

		if (!is_there[i])
			continue;
		put_entry64(at, 0, last, 0x1000 + i, 1 + i);
		put(last ? last : BASE + 16, at, 8, false);
		last = at;
	}
}

/* Whatever left or came since the last walk, reading ahead finds what single reads find. */
static void reading_ahead_finds_the_same(void **state)
{
	const struct fathom_gdb_list l = list64();
	struct fathom_gdb_items before = { 0 };
	unsigned seed = 1;

	(void)state;
	n_gone_ahead = 0;
	for (int run = 0; run < 200; run++) {
		const int rate = rand_r(&seed) % 10;
		struct fathom_gdb_items plain = { 0 };
		struct fathom_gdb_items ahead = { 0 };
		bool is_there[MANY];

		for (unsigned i = 0; i < MANY; i++)
			is_there[i] = rand_r(&seed) % 10 >= rate;
		put_many(is_there);
		assert_int_equal(fathom_gdb_list_walk(&remote, &l, NULL, &plain), 0);
		assert_int_equal(fathom_gdb_list_walk(&remote, &l, &before, &ahead), 0);
		assert_true(fathom_gdb_items_same(&plain, &ahead));
		fathom_array_free(&plain);
		fathom_array_free(&before);
		before = ahead;
	}
	fathom_array_free(&before);
	assert_true(n_gone_ahead > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_are_those_of_the_machines),
		cmocka_unit_test(entries_are_found_in_their_order),
		cmocka_unit_test(lists_of_32_bit_and_big_endian_are_read),
		cmocka_unit_test(what_is_no_list_has_no_entries),
		cmocka_unit_test(circles_and_lists_that_lead_astray_end),
		cmocka_unit_test(a_walk_is_whole_when_all_entries_are_linked),
		cmocka_unit_test(an_entry_stays_when_it_is_linked_whatever_else_changed),
		cmocka_unit_test(reading_ahead_finds_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
