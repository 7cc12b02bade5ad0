/* SPDX-License-Identifier: MIT */
/*
 * `svc #0` of modules for aarch64: instructions are words, so a word of a function that is not data
 * is one.
 */
#include "host/code/aarch64/arm_instructions.h"
#include "host/sites/syscall_insns.h"

#include <string.h>

#include "host/sites/site_work.h"

enum { WORD = FATHOM_ARM_SIZE };

/* mov x8, #N and mov w8, #N, without the number, and their mask */
enum {
	OP_MOVE_X8 = 0xd2800008,
	OP_MOVE_W8 = 0x52800008,
	MOVE_MASK = 0xffe0001f,
	NUMBER_SHIFT = 5,
	NUMBER_MASK = 0xffff
};

/* ldr w0, [x0]; tbz, tbnz, cbz and cbnz of w0, without where they lead and which bit they test */
enum {
	OP_LOAD_FLAG = 0xb9400000,
	OP_TEST = 0x36000000,
	TEST_MASK = 0xfe00001f,
	OP_COMPARE = 0x34000000,
	COMPARE_MASK = 0xfe00001f
};

/* System calls of aarch64 (include/uapi/asm-generic/unistd.h). */
enum { EXIT = 93, RT_SIGRETURN = 139, MUNMAP = 215 };

/* So many instructions before one are looked at. */
#define BEFORE 12

static uint32_t word_at(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof word);
	return word;
}

/* Returns whether @op moves @number into the register of numbers of calls. */
static bool moves(uint32_t op, uint32_t number)
{
	return ((op & MOVE_MASK) == (uint32_t)OP_MOVE_X8 || (op & MOVE_MASK) == OP_MOVE_W8) &&
	       (op >> NUMBER_SHIFT & NUMBER_MASK) == number;
}

/* The instructions of a function. */
struct code {
	const uint8_t *words;
	uint64_t n;
};

/* Returns instruction @i; 0, which is undefined, if there is none. */
static uint32_t at(const struct code *c, uint64_t i)
{
	return i < c->n ? word_at(c->words + i * WORD) : 0;
}

/*
 * Returns whether a thread that unmaps its stack, by a call at @i, ends by the next call: it has no
 * stack between.
 */
static bool unmaps_stack(const struct code *c, uint64_t i)
{
	return moves(at(c, i - 1), MUNMAP) && at(c, i) == FATHOM_ARM_SVC &&
	       moves(at(c, i + 1), EXIT) && at(c, i + 2) == FATHOM_ARM_SVC;
}

/*
 * Returns whether the call at @i has to stay where it is. Unwinders know the frames of handlers by
 * a call of rt_sigreturn(). Since 2.41 of glibc, and in musl, the handler of cancellation asks
 * whether the thread stands between a look at its flag and the call.
 */
static bool must_stay(const struct code *c, uint64_t i)
{
	if (moves(at(c, i - 1), RT_SIGRETURN) || unmaps_stack(c, i) || unmaps_stack(c, i - 2))
		return true;
	for (uint64_t k = i > BEFORE ? i - BEFORE : 0; k + 1 < i; k++) {
		const uint32_t next = at(c, k + 1);

		if (at(c, k) == OP_LOAD_FLAG &&
		    ((next & TEST_MASK) == OP_TEST || (next & COMPARE_MASK) == OP_COMPARE))
			return true;
	}
	return false;
}

/* Adds the calls in @code, which is at @svma. */
static fathom_err find_in(struct fathom_bytes code, uint64_t svma, struct fathom_syscall_insns *to)
{
	const struct code c = { code.data, code.size / WORD };

	for (uint64_t i = 0; i < c.n; i++) {
		const struct fathom_syscall_insn call = { .svma = svma + i * WORD };

		if (at(&c, i) != FATHOM_ARM_SVC || must_stay(&c, i) ||
		    (to->n && to->items[to->n - 1].svma >= call.svma))
			continue;
		if (!fathom_array_push(to, call))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

fathom_err fathom_syscall_insns_find_arm(struct fathom_site_work *w,
					 struct fathom_syscall_insns *to)
{
	FATHOM_TRY(fathom_functions_init(&w->functions, w->module));
	for (size_t i = 0; i < w->functions.n; i++) {
		const struct fathom_function *f = &w->functions.items[i];
		struct fathom_bytes code = fathom_site_code(w, f->svma);
		const uint64_t end = fathom_functions_end(&w->functions, f);

		if (code.size > end - f->svma)
			code.size = end - f->svma;
		if (f->svma % WORD == 0 && fathom_site_may_go_on(w, code.size))
			FATHOM_TRY(find_in(code, f->svma, to));
	}
	return FATHOM_OK;
}
