/* SPDX-License-Identifier: MIT */
/* Descriptions of frames, as instructions that were written by hand (DWARF 5, 6.4.2). */
#include "unit.h"

#include "host/publish/frame.h"

#define CODE 0x1000
#define SIZE 100

static struct fathom_jit_unwind rule(uint32_t kind)
{
	return (struct fathom_jit_unwind){ .size = sizeof(struct fathom_jit_unwind), .kind = kind };
}

static void expect(const struct fathom_jit_unwind *u, const struct fathom_jit_machine *m,
		   const uint8_t *bytes, size_t n)
{
	struct fathom_jit_frame f;
	struct fathom_jit_blame blame;

	assert_int_equal(fathom_jit_frame_read(u, m, CODE, SIZE, &f, &blame), FATHOM_OK);
	assert_int_equal(f.instructions.size, n);
	assert_memory_equal(f.instructions.data, bytes, n);
	fathom_jit_frame_deinit(&f);
}

#define EXPECT(u, m, ...)                                    \
	do {                                                 \
		static const uint8_t bytes_[] = __VA_ARGS__; \
		expect(u, m, bytes_, sizeof bytes_);         \
	} while (0)

static void refuse(const struct fathom_jit_unwind *u, const struct fathom_jit_machine *m,
		   fathom_err err)
{
	struct fathom_jit_frame f;
	struct fathom_jit_blame blame = { 0 };

	assert_int_equal(fathom_jit_frame_read(u, m, CODE, SIZE, &f, &blame), err);
	assert_non_null(blame.what);
}

/*
 * def_cfa 0c, def_cfa_register 0d, def_cfa_offset 0e, offset 80|reg, restore c0|reg, advance 40|n.
 */

static void a_reserved_frame_pointer_has_one_row(void **state)
{
	struct fathom_jit_unwind u = rule(FATHOM_JIT_RESERVED);

	(void)state;
	EXPECT(&u, &fathom_jit_x86_64, { 0x0c, 6, 16, 0x86, 2 });
	EXPECT(&u, &fathom_jit_aarch64, { 0x0c, 29, 16, 0x9d, 2, 0x9e, 1 });
	/* The record of the shim lies 16 bytes above its frame pointer, in a frame of 96. */
	u.frame = 96;
	u.record = 16;
	EXPECT(&u, &fathom_jit_aarch64, { 0x0c, 29, 96, 0x9d, 10, 0x9e, 9 });
	u.flags = FATHOM_JIT_SIGNED;
	EXPECT(&u, &fathom_jit_aarch64, { 0x2d, 0x0c, 29, 96, 0x9d, 10, 0x9e, 9 });
	u.record = 88;
	refuse(&u, &fathom_jit_aarch64, FATHOM_E_ARGUMENT);
	u.flags = 0;
	u.record = 0;
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_ARGUMENT);
	u.frame = 20;
	refuse(&u, &fathom_jit_aarch64, FATHOM_E_ARGUMENT);
}

static void a_frame_pointer_has_its_prologue_and_return(void **state)
{
	struct fathom_jit_unwind u = rule(FATHOM_JIT_FRAME_POINTER);

	(void)state;
	u.from = 4;
	EXPECT(&u, &fathom_jit_x86_64, { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 });
	u.until = SIZE - 1;
	EXPECT(&u, &fathom_jit_x86_64,
	       { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 95, 0x0c, 7, 8, 0xc6 });
	u.until = 3;
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_ARGUMENT);
	u.until = SIZE + 1;
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_ARGUMENT);
	u.until = 0;
	u.from = 3;
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_ARGUMENT);
	u.from = 8;
	u.until = 24;
	u.frame = 32;
	EXPECT(&u, &fathom_jit_aarch64,
	       { 0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0x0d, 29, 0x50, 0x0c, 31, 0, 0xdd, 0xde });
	/* paciasp, stp, mov; ldp, autiasp, ret: signed from the first to before the last. */
	u.flags = FATHOM_JIT_SIGNED;
	u.from = 12;
	EXPECT(&u, &fathom_jit_aarch64,
	       { 0x44, 0x2d, 0x44, 0x0e, 32, 0x9d, 4,    0x9e, 3,    0x44,
		 0x0d, 29,   0x48, 0x0c, 31, 0,    0xdd, 0xde, 0x44, 0x2d });
	/* ldp, retaa: signed to the end. */
	u.flags |= FATHOM_JIT_SIGNED_RETURN;
	EXPECT(&u, &fathom_jit_aarch64,
	       { 0x44, 0x2d, 0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0x0d, 29, 0x4c, 0x0c, 31, 0,
		 0xdd, 0xde });
}

static void bytes_that_were_pushed_are_in_the_cfa(void **state)
{
	struct fathom_jit_unwind u = rule(FATHOM_JIT_PUSHED);

	(void)state;
	EXPECT(&u, &fathom_jit_x86_64, { 0x0e, 8 });
	u.frame = 120;
	EXPECT(&u, &fathom_jit_x86_64, { 0x0e, 0x80, 1 });
	EXPECT(&u, &fathom_jit_aarch64, { 0x0e, 120 });
	u.frame = 4;
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_ARGUMENT);
}

static void expect_events(const struct fathom_jit_machine *m, const struct fathom_jit_event *events,
			  size_t n, const uint8_t *bytes, size_t size)
{
	struct fathom_jit_unwind u = rule(FATHOM_JIT_EVENTS);

	u.events = events;
	u.n_events = n;
	if (size)
		expect(&u, m, bytes, size);
	else
		refuse(&u, m, FATHOM_E_ARGUMENT);
}

#define EVENTS(m, events, ...)                                                      \
	do {                                                                        \
		static const uint8_t bytes_[] = __VA_ARGS__;                        \
		expect_events(m, events, sizeof(events) / sizeof *(events), bytes_, \
			      sizeof bytes_);                                       \
	} while (0)

#define REFUSED(m, ...)                                                               \
	do {                                                                          \
		static const struct fathom_jit_event events_[] = __VA_ARGS__;         \
		expect_events(m, events_, sizeof events_ / sizeof *events_, NULL, 0); \
	} while (0)

static void events_become_rows(void **state)
{
	/* push %rbp; mov %rsp,%rbp; push %rbx; sub; an early return; and the rest. */
	static const struct fathom_jit_event early[] = {
		{ 1, 0, 6, FATHOM_JIT_PUSH, 0 },      { 4, 0, 0, FATHOM_JIT_SET_FRAME, 0 },
		{ 5, 0, 3, FATHOM_JIT_PUSH, 0 },      { 9, 24, 0, FATHOM_JIT_SUB, 0 },
		{ 20, 0, 0, FATHOM_JIT_REMEMBER, 0 }, { 20, 24, 0, FATHOM_JIT_ADD, 0 },
		{ 21, 0, 3, FATHOM_JIT_POP, 0 },      { 22, 0, 0, FATHOM_JIT_END_FRAME, 0 },
		{ 22, 0, 6, FATHOM_JIT_POP, 0 },      { 23, 0, 0, FATHOM_JIT_RECALL, 0 },
	};
	/* stp x29, x30, [sp, #-48]!; mov x29, sp; stp x19, x20, [sp, #16] */
	static const struct fathom_jit_event arm[] = {
		{ 4, 48, 0, FATHOM_JIT_SUB, 0 },    { 4, 0, 29, FATHOM_JIT_SAVE, 0 },
		{ 4, 8, 30, FATHOM_JIT_SAVE, 0 },   { 8, 0, 0, FATHOM_JIT_SET_FRAME, 0 },
		{ 12, 16, 19, FATHOM_JIT_SAVE, 0 }, { 12, 24, 20, FATHOM_JIT_SAVE, 0 },
	};
	/* Of a value that is pushed twice, only the first is the caller's. */
	static const struct fathom_jit_event twice[] = {
		{ 1, 0, 3, FATHOM_JIT_PUSH, 0 },
		{ 2, 0, 3, FATHOM_JIT_PUSH, 0 },
		{ 3, 0, 3, FATHOM_JIT_POP, 0 },
		{ 4, 0, FATHOM_JIT_NO_REGISTER, FATHOM_JIT_PUSH, 0 },
		{ 5, 0, FATHOM_JIT_NO_REGISTER, FATHOM_JIT_POP, 0 },
		{ 6, 0, 3, FATHOM_JIT_POP, 0 },
	};

	/* The frame pointer comes back without a word of the stack pointer: pop %rbp; ret */
	static const struct fathom_jit_event popped[] = {
		{ 1, 0, 6, FATHOM_JIT_PUSH, 0 },
		{ 4, 0, 0, FATHOM_JIT_SET_FRAME, 0 },
		{ 16, 0, 6, FATHOM_JIT_POP, 0 },
	};
	/* ldp x29, x30, [sp], #48 */
	static const struct fathom_jit_event loaded[] = {
		{ 4, 48, 0, FATHOM_JIT_SUB, 0 },      { 4, 0, 29, FATHOM_JIT_SAVE, 0 },
		{ 4, 8, 30, FATHOM_JIT_SAVE, 0 },     { 8, 0, 0, FATHOM_JIT_SET_FRAME, 0 },
		{ 20, 0, 29, FATHOM_JIT_RESTORE, 0 }, { 20, 0, 30, FATHOM_JIT_RESTORE, 0 },
		{ 20, 48, 0, FATHOM_JIT_ADD, 0 },
	};

	(void)state;
	EVENTS(&fathom_jit_x86_64, popped,
	       { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0c, 6, 16, 0x4c, 0xc6, 0x0c, 7, 8 });
	EVENTS(&fathom_jit_aarch64, loaded,
	       { 0x44, 0x0e, 48, 0x9d, 6, 0x9e, 5, 0x44, 0x0c, 29, 48, 0x4c, 0xdd, 0x0c, 31, 48,
		 0xde, 0x0e, 0 });
	EVENTS(&fathom_jit_x86_64, early,
	       { 0x41, 0x0e, 16,   0x86, 2,    0x43, 0x0c, 6,  16,   0x41, 0x83, 3,    0x44,
		 0x4b, 0x0a, 0x41, 0xc3, 0x41, 0x0c, 7,    16, 0x0e, 8,    0xc6, 0x41, 0x0b });
	EVENTS(&fathom_jit_aarch64, arm,
	       { 0x44, 0x0e, 48, 0x9d, 6, 0x9e, 5, 0x44, 0x0c, 29, 48, 0x44, 0x93, 4, 0x94, 3 });
	EVENTS(&fathom_jit_x86_64, twice,
	       { 0x41, 0x0e, 16, 0x83, 2,    0x41, 0x0e, 24,   0x41, 0x0e, 16,
		 0x41, 0x0e, 24, 0x41, 0x0e, 16,   0x41, 0x0e, 8,    0xc3 });
}

/* register 09, def_cfa_offset_sf 13, in words of -8 bytes. */
static void a_popped_return_address_is_in_a_register(void **state)
{
	/* pop %rcx; add $16, %rsp; sub $16, %rsp; push %rcx; */
	static const struct fathom_jit_event callee[] = {
		{ 1, 0, FATHOM_JIT_RCX, FATHOM_JIT_POP_RETURN, 0 },
		{ 5, 16, 0, FATHOM_JIT_ADD, 0 },
		{ 9, 16, 0, FATHOM_JIT_SUB, 0 },
		{ 10, 0, FATHOM_JIT_RCX, FATHOM_JIT_PUSH_RETURN, 0 },
	};
	/* Pushed again 8 bytes lower; an early way out where it is popped. */
	static const struct fathom_jit_event lower[] = {
		{ 1, 0, 0, FATHOM_JIT_REMEMBER, 0 },
		{ 2, 0, FATHOM_JIT_R10, FATHOM_JIT_POP_RETURN, 0 },
		{ 5, 0, 0, FATHOM_JIT_RECALL, 0 },
		{ 6, 0, FATHOM_JIT_R11, FATHOM_JIT_POP_RETURN, 0 },
		{ 7, 8, 0, FATHOM_JIT_SUB, 0 },
		{ 8, 0, FATHOM_JIT_R11, FATHOM_JIT_PUSH_RETURN, 0 },
	};

	(void)state;
	EVENTS(&fathom_jit_x86_64, callee,
	       { 0x41, 0x0e, 0, 0x09, 16, 2, 0x44, 0x13, 2, 0x44, 0x0e, 0, 0x41, 0x0e, 8, 0x90,
		 1 });
	EVENTS(&fathom_jit_x86_64, lower,
	       { 0x41, 0x0a, 0x41, 0x0e, 0,    0x09, 16, 10,   0x43, 0x0b, 0x41, 0x0e,
		 0,    0x09, 16,   11,   0x41, 0x0e, 8,  0x41, 0x0e, 16,   0x90, 2 });
	REFUSED(&fathom_jit_aarch64, { { 4, 0, 3, FATHOM_JIT_POP_RETURN, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, 3, FATHOM_JIT_PUSH_RETURN, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, FATHOM_JIT_RSP, FATHOM_JIT_POP_RETURN, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, FATHOM_JIT_NO_REGISTER, FATHOM_JIT_POP_RETURN, 0 } });
	REFUSED(&fathom_jit_x86_64,
		{ { 1, 8, 0, FATHOM_JIT_SUB, 0 }, { 2, 0, 1, FATHOM_JIT_POP_RETURN, 0 } });
	REFUSED(&fathom_jit_x86_64,
		{ { 1, 0, 1, FATHOM_JIT_POP_RETURN, 0 }, { 2, 0, 1, FATHOM_JIT_POP_RETURN, 0 } });
	/* Above the caller's frame only by whole words. */
	REFUSED(&fathom_jit_x86_64,
		{ { 1, 0, 1, FATHOM_JIT_POP_RETURN, 0 }, { 2, 4, 0, FATHOM_JIT_ADD, 0 } });
}

static void events_that_contradict_themselves_are_refused(void **state)
{
	(void)state;
	REFUSED(&fathom_jit_x86_64,
		{ { 5, 8, 0, FATHOM_JIT_SUB, 0 }, { 4, 8, 0, FATHOM_JIT_ADD, 0 } });
	REFUSED(&fathom_jit_x86_64, { { SIZE + 1, 8, 0, FATHOM_JIT_SUB, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 8, 0, FATHOM_JIT_ADD, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, 3, FATHOM_JIT_POP, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, 200, FATHOM_JIT_PUSH, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, 3, 77, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, 0, FATHOM_JIT_RECALL, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, 0, FATHOM_JIT_END_FRAME, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 0, 0, FATHOM_JIT_SIGN, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 4, 3, FATHOM_JIT_SAVE, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, INT32_MAX, 0, FATHOM_JIT_SUB, 0 } });
	REFUSED(&fathom_jit_x86_64, { { 1, 64, 0, FATHOM_JIT_SET_FRAME, 0 } });
	REFUSED(&fathom_jit_aarch64, { { 4, 0, 0, FATHOM_JIT_AUTHENTICATE, 0 } });
}

static void eh_frames_are_refused_where_they_cannot_be_read(void **state)
{
	/*
	 * A CIE "zR" of x86-64 with udata8, and an FDE of CODE; then set_loc, which names an
	 * address.
	 */
	static const uint8_t good[] = { 20, 0,    0,    0,  0,    0,    0, 0, 1,    'z',  'R', 0,
					1,  0x78, 16,   1,  0x04, 0x0c, 7, 8, 0x90, 1,    0,   0,
					28, 0,    0,    0,  28,   0,    0, 0, 0,    0x10, 0,   0,
					0,  0,    0,    0,  100,  0,    0, 0, 0,    0,    0,   0,
					0,  0x41, 0x0e, 16, 0,    0,    0, 0, 0,    0,    0,   0 };
	static const uint8_t rows[] = { 0x41, 0x0e, 16, 0, 0, 0, 0 };
	struct fathom_jit_unwind u = rule(FATHOM_JIT_EH_FRAME);
	uint8_t bad[sizeof good];

	(void)state;
	u.eh_frame = good;
	u.eh_frame_size = sizeof good;
	expect(&u, &fathom_jit_x86_64, rows, sizeof rows);
	/* Of other code. */
	u.eh_frame_code = CODE + 1;
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_ARGUMENT);
	u.eh_frame_code = 0;
	/* An instruction that nobody knows. */
	memcpy(bad, good, sizeof good);
	bad[49] = 0x3f;
	u.eh_frame = bad;
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_CORRUPT);
	/* set_loc back to where the code once was. */
	memcpy(bad, good, sizeof good);
	bad[49] = 0x01;
	memset(bad + 50, 0, 6);
	refuse(&u, &fathom_jit_x86_64, FATHOM_E_CORRUPT);
	/* Cut. */
	u.eh_frame = good;
	u.eh_frame_size = 40;
	{
		struct fathom_jit_frame f;
		struct fathom_jit_blame blame;

		assert_true(fathom_jit_frame_read(&u, &fathom_jit_x86_64, CODE, SIZE, &f, &blame) <
			    0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reserved_frame_pointer_has_one_row),
		cmocka_unit_test(a_frame_pointer_has_its_prologue_and_return),
		cmocka_unit_test(bytes_that_were_pushed_are_in_the_cfa),
		cmocka_unit_test(events_become_rows),
		cmocka_unit_test(a_popped_return_address_is_in_a_register),
		cmocka_unit_test(events_that_contradict_themselves_are_refused),
		cmocka_unit_test(eh_frames_are_refused_where_they_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
