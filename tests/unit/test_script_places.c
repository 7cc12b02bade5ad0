/* SPDX-License-Identifier: MIT */
/* The places of script frames among native ones, on stacks that are made up. */
#include "unit.h"

#include "fathom/answer.h"
#include "host/interpreters/script_places.h"

/* Native frames: where each has its stack pointer and its instruction. */
struct native {
	uint64_t sp;
	uint64_t code;
};

static uint64_t sp_of(const void *frames, size_t i)
{
	return ((const struct native *)frames)[i].sp;
}

static uint64_t code_of(const void *frames, size_t i)
{
	return ((const struct native *)frames)[i].code;
}

/* The loop is [0x1000, 0x1100): frames 1 and 3 are in it. */
static const struct native natives[] = {
	{ 0x100, 0x5000 }, { 0x200, 0x1010 }, { 0x300, 0x6000 },
	{ 0x400, 0x10ff }, { 0x500, 0x7000 },
};

static struct fathom_script_frame scripted(uint64_t slot, uint64_t other)
{
	return (struct fathom_script_frame){ .loop = 0x1000,
					     .loop_size = 0x100,
					     .slots = { slot, other } };
}

/* Asserts the places of @n @scripts. */
static void assert_places(const struct fathom_script_frame *scripts, size_t n, const size_t *wanted)
{
	const struct fathom_native_frames frames = { natives, sizeof natives / sizeof *natives,
						     sp_of, code_of };
	size_t places[4];
	size_t n_lost = 0;

	for (size_t i = 0; i < n; i++)
		n_lost += wanted[i] == FATHOM_SCRIPT_NOWHERE;
	assert_int_equal(fathom_script_find_places(&frames, scripts, n, places), n_lost);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(places[i], wanted[i]);
}

static void frames_with_slots_have_a_loop_each(void **state)
{
	static const size_t right[] = { 1, 3 };
	static const size_t wrong[] = { FATHOM_SCRIPT_NOWHERE, FATHOM_SCRIPT_NOWHERE,
					FATHOM_SCRIPT_NOWHERE };
	/* In the loop's own part, or in what its callee has saved; a stale one comes first. */
	const struct fathom_script_frame both[] = { scripted(0x108, 0x2f8), scripted(0x10, 0x308) };
	const struct fathom_script_frame outside[] = { scripted(0x208, 0), scripted(0x508, 0) };
	const struct fathom_script_frame more[] = { scripted(0x208, 0), scripted(0x408, 0),
						    scripted(0x408, 0) };

	(void)state;
	assert_places(both, 2, right);
	assert_places(outside, 2, wrong);
	/* Fewer, or more, than native frames of the loop. */
	assert_places(both, 1, wrong);
	assert_places(more, 3, wrong);
}

static void frames_with_anchors_are_where_these_are(void **state)
{
	static const size_t wanted[] = { 0, 0, 2, FATHOM_SCRIPT_NOWHERE };
	/* The stack of the outermost native frame has no known end. */
	const struct fathom_script_frame scripts[] = {
		{ .anchor = 0x1ff }, { .anchor = 0x1ff }, { .anchor = 0x300 }, { .anchor = 0x500 }
	};

	(void)state;
	assert_places(scripts, 4, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_with_slots_have_a_loop_each),
		cmocka_unit_test(frames_with_anchors_are_where_these_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
