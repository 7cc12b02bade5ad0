/* SPDX-License-Identifier: MIT */
/* Where pools of trampolines are placed, by maps made by hand; and one of this process. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/trampoline/trampoline.h"

#define GIB (UINT64_C(1) << 30)

/* A program, a library 4 GiB above it with a small gap below, and what lies between. */
static const char text[] = "00400000-00500000 r-xp 00000000 08:01 1 /bin/program\n"
			   "00600000-00700000 rw-p 00000000 00:00 0 [heap]\n"
			   "100000000-100100000 r--p 00000000 08:01 2 /lib/low.so\n"
			   "100110000-100200000 r-xp 00000000 08:01 3 /lib/high.so\n";

static struct fathom_maps maps_of_text(void)
{
	struct fathom_maps maps;

	assert_int_equal(fathom_maps_parse(strdup(text), strlen(text), &maps), FATHOM_OK);
	return maps;
}

static uint64_t place(const struct fathom_trampoline_request *want)
{
	struct fathom_maps maps = maps_of_text();
	const uint64_t avma = fathom_trampoline_gap(&maps, want);

	fathom_maps_deinit(&maps);
	return avma;
}

static void the_nearest_gap_below_is_taken(void **state)
{
	struct fathom_trampoline_request want = { 0x100120000, 0x100120000, 2 * GIB, 0x10000,
						  0,           NULL,        NULL };

	(void)state;
	assert_int_equal(place(&want), 0x100100000);
	/* Memory that does not fit there lies below the next mapping. */
	want.size = 0x11000;
	assert_int_equal(place(&want), 0x100000000 - 0x11000);
	/* Not above the program; below it there is room from 64 KiB on. */
	want.low = want.high = 0x400100;
	want.size = 0x3f0000;
	assert_int_equal(place(&want), 0x10000);
	want.size++;
	assert_int_equal(place(&want), 0);
	/* In no mapping. */
	want.low = want.high = 0x550000;
	want.size = 0x1000;
	assert_int_equal(place(&want), 0);
}

static void nothing_out_of_reach_is_taken(void **state)
{
	struct fathom_trampoline_request want = { 0x100110000, 0x100200000, 0x201000, 0x1000,
						  0,           NULL,        NULL };

	(void)state;
	/* From 0xff...f000 to 0x100200000 it is 0x201000: a byte too far. */
	assert_int_equal(place(&want), 0x10010f000);
	want.size = 0x11000;
	want.reach = 0x211000;
	assert_int_equal(place(&want), 0);
	want.reach++;
	assert_int_equal(place(&want), 0xfffef000);
}

static void room_is_left_above_where_there_is_some(void **state)
{
	struct fathom_trampoline_request want = { 0x100120000, 0x100120000, 2 * GIB, 0x4000,
						  0x4000,      NULL,        NULL };

	(void)state;
	assert_int_equal(place(&want), 0x100108000);
	want.low = want.high = 0x400100;
	want.size = want.spare = 0x200000;
	assert_int_equal(place(&want), 0x200000);
	want.size = want.spare = 0x100000;
	assert_int_equal(place(&want), 0x200000);
}

static bool is_allowed(const void *data, uint64_t avma)
{
	return avma <= *(const uint64_t *)data;
}

static void other_places_of_a_gap_are_tried(void **state)
{
	uint64_t highest = 0x10010d000;
	struct fathom_trampoline_request want = { 0x100120000, 0x100120000, 2 * GIB, 0x1000,
						  0,           is_allowed,  &highest };

	(void)state;
	assert_int_equal(place(&want), 0x10010d000);
	/* Not all of a gap is searched, but each is. */
	highest = 0x100000000;
	assert_int_equal(place(&want), 0xfffff000);
}

static void a_pool_has_room_until_it_is_full(void **state)
{
	struct fathom_trampoline_pool p = { 0x1000, 40, 0 };
	struct fathom_trampoline_pool none = { 0, 40, 0 };

	(void)state;
	assert_int_equal(fathom_trampoline_pool_take(&p, 16), 0x1000);
	assert_int_equal(fathom_trampoline_pool_take(&p, 16), 0x1010);
	assert_int_equal(fathom_trampoline_pool_take(&p, 16), 0);
	assert_int_equal(fathom_trampoline_pool_take(&p, 8), 0x1020);
	assert_int_equal(fathom_trampoline_pool_take(&none, 8), 0);
}

static void a_pool_of_this_process_can_be_written_then_run(void **state)
{
	const uint64_t here = (uintptr_t)&a_pool_of_this_process_can_be_written_then_run;
	const uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct fathom_trampoline_request want = { here, here, GIB, size, 0, NULL, NULL };
	struct fathom_trampoline_pool p =
		fathom_trampoline_pool_map_own(&want, PROT_READ | PROT_WRITE);
	struct fathom_maps maps;
	size_t i;

	(void)state;
	assert_true(p.avma && p.avma < here && here - p.avma < GIB);
	memset((void *)(uintptr_t)p.avma, 0xcc, size);
	assert_int_equal(fathom_trampoline_pool_seal(&p, NULL), FATHOM_OK);
	assert_int_equal(fathom_maps_read("/proc/self/maps", &maps, NULL), FATHOM_OK);
	i = fathom_maps_at(&maps, p.avma);
	assert_true(i < maps.n && maps.items[i].executable && !maps.items[i].writable);
	fathom_maps_deinit(&maps);
	(void)munmap((void *)(uintptr_t)p.avma, size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearest_gap_below_is_taken),
		cmocka_unit_test(nothing_out_of_reach_is_taken),
		cmocka_unit_test(room_is_left_above_where_there_is_some),
		cmocka_unit_test(other_places_of_a_gap_are_tried),
		cmocka_unit_test(a_pool_has_room_until_it_is_full),
		cmocka_unit_test(a_pool_of_this_process_can_be_written_then_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
