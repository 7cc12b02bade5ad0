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
	return (struct fathom_script_frame){ .loop = { .code = 0x1000, .size = 0x100 },
					     .slots = { slot, other } };
}

/* Asserts the places of @n @scripts. */
static void assert_places(const struct fathom_script_frame *scripts, size_t n, const size_t *wanted)
{
	const struct fathom_native_frames frames = { natives, sizeof natives / sizeof *natives,
						     sp_of, NULL, code_of };
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

static struct fathom_script_frame grouped(uint64_t anchor, uint64_t slot, uint64_t other)
{
	struct fathom_script_frame f = scripted(slot, other);

	f.anchor = anchor;
	f.loop.is_below = true;
	return f;
}

static void frames_of_one_loop_stand_together(void **state)
{
	static const size_t wanted[] = { 1, 1, 3 };
	static const size_t wrong[] = { FATHOM_SCRIPT_NOWHERE, FATHOM_SCRIPT_NOWHERE };
	/* The innermost loop may have its slot in a register that is not known. */
	const struct fathom_script_frame right[] = { grouped(1, 0, 0), grouped(1, 0, 0),
						     grouped(2, 0x208, 0x3f8) };
	/* Its own part of the stack shows nothing. */
	const struct fathom_script_frame own[] = { grouped(1, 0x108, 0), grouped(2, 0x408, 0) };
	const struct fathom_script_frame none[] = { grouped(1, 0, 0), grouped(2, 0, 0) };

	(void)state;
	assert_places(right, 3, wanted);
	assert_places(own, 2, wrong);
	assert_places(none, 2, wrong);
}

static void loops_without_frames_are_told_by_slots(void **state)
{
	static const size_t inner[] = { 1 };
	static const size_t outer[] = { 3 };
	static const size_t nowhere[] = { FATHOM_SCRIPT_NOWHERE };
	const struct fathom_script_frame in_register[] = { grouped(1, 0, 0) };
	const struct fathom_script_frame saved[] = { grouped(1, 0x208, 0) };
	const struct fathom_script_frame both[] = { grouped(1, 0x108, 0x208) };

	(void)state;
	assert_places(in_register, 1, inner);
	assert_places(saved, 1, outer);
	assert_places(both, 1, nowhere);
}

static void groups_without_loops_are_told_by_slots(void **state)
{
	static const size_t begun[] = { 0, 1, 3 };
	static const size_t outside[] = { 1, 3, FATHOM_SCRIPT_NOWHERE };
	static const size_t nowhere[] = { FATHOM_SCRIPT_NOWHERE, FATHOM_SCRIPT_NOWHERE,
					  FATHOM_SCRIPT_NOWHERE };
	const struct fathom_script_frame first[] = { grouped(1, 0, 0), grouped(2, 0x108, 0),
						     grouped(3, 0x208, 0) };
	const struct fathom_script_frame last[] = { grouped(1, 0, 0), grouped(2, 0x208, 0),
						    grouped(3, 0, 0) };
	/* A loop between has no code of its own, as what a compiler has made. */
	const struct fathom_script_frame middle[] = { grouped(1, 0, 0), grouped(2, 0x208, 0),
						      grouped(3, 0x308, 0) };

	(void)state;
	assert_places(first, 3, begun);
	assert_places(last, 3, outside);
	assert_places(middle, 3, nowhere);
}

static void a_loop_has_a_part_that_is_set_apart(void **state)
{
	static const size_t wanted[] = { 0, 1, 3 };
	struct fathom_script_frame scripts[] = { grouped(1, 0, 0), grouped(2, 0x108, 0),
						 grouped(3, 0x208, 0) };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		scripts[i].loop.cold = 0x4fff;
		scripts[i].loop.cold_size = 2;
	}
	assert_places(scripts, 3, wanted);
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

static void each_runtime_is_looked_for_from_the_innermost_frame_on(void **state)
{
	static const size_t wanted[] = { 2, 1, 3, 0 };
	struct fathom_script_frame scripts[] = {
		{ .anchor = 0x300 }, scripted(0x108, 0), scripted(0x308, 0), { .anchor = 0x1ff }
	};

	(void)state;
	scripts[1].runtime = 1;
	scripts[2].runtime = 1;
	scripts[3].runtime = 2;
	assert_places(scripts, 4, wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_with_slots_have_a_loop_each),
		cmocka_unit_test(frames_of_one_loop_stand_together),
		cmocka_unit_test(loops_without_frames_are_told_by_slots),
		cmocka_unit_test(groups_without_loops_are_told_by_slots),
		cmocka_unit_test(a_loop_has_a_part_that_is_set_apart),
		cmocka_unit_test(frames_with_anchors_are_where_these_are),
		cmocka_unit_test(each_runtime_is_looked_for_from_the_innermost_frame_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
