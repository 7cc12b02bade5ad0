/* SPDX-License-Identifier: MIT */
#include "host/symbol/code_end.h"

#include <string.h>

#include "safe/base/nops.h"

/* The most branches whose targets wait to be followed; what others lead to is not proven. */
#define MAX_WAITING 512

/* Compilers align functions to so many bytes. */
#define ALIGNMENT 16

#define N_WORDS (FATHOM_MAX_CODE_END / 64)

struct walk {
	enum fathom_code_machine machine;
	struct fathom_bytes code;
	uint64_t address;
	bool is_relocatable;
	uint64_t called;        /* the first place after the start that the code calls */
	uint64_t seen[N_WORDS]; /* a bit for each place where an instruction starts */
	uint32_t waiting[MAX_WAITING];
	uint32_t n_waiting;
};

static bool is_seen(const struct walk *w, uint64_t at)
{
	return w->seen[at / 64] >> at % 64 & 1;
}

static int64_t sign_extend(uint32_t value, unsigned bits)
{
	return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

/* Arm ARM, C4.1.94, Branches, Exception Generating and System instructions. */
static struct fathom_code_step arm_step(struct fathom_bytes code)
{
	struct fathom_code_step step = { .size = 4 };
	uint32_t insn;

	if (code.size < 4)
		return (struct fathom_code_step){ 0 };
	insn = load_u32(code.data, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	if ((insn & 0x7c000000) == 0x14000000) { /* b, bl */
		step.flow = insn >> 31 ? FATHOM_STEP_CALL : FATHOM_STEP_JUMP;
		step.distance = 4 * sign_extend(insn & 0x3ffffff, 26);
	} else if ((insn & 0xfe000000) == 0x54000000 || /* b.cond, cbz */
		   (insn & 0x7e000000) == 0x34000000) {
		step.flow = FATHOM_STEP_BRANCH;
		step.distance = 4 * sign_extend(insn >> 5 & 0x7ffff, 19);
	} else if ((insn & 0x7e000000) == 0x36000000) { /* tbz */
		step.flow = FATHOM_STEP_BRANCH;
		step.distance = 4 * sign_extend(insn >> 5 & 0x3fff, 14);
	} else if ((insn & 0xfe000000) == 0xd6000000) { /* br, blr, ret, eret */
		step.flow = (insn >> 21 & 7) == 1 ? FATHOM_STEP_CALL : FATHOM_STEP_END;
		return step;
	} else if ((insn & 0xffe0001f) == 0xd4200000 || /* brk, hlt, udf */
		   (insn & 0xffe0001f) == 0xd4400000 || !(insn >> 16)) {
		step.flow = FATHOM_STEP_END;
		return step;
	} else {
		return step;
	}
	step.has_target = true;
	step.distance -= 4;
	return step;
}

static struct fathom_code_step step_at(const struct walk *w, uint64_t at)
{
	const struct fathom_bytes code = bytes_from(w->code, at);
	struct fathom_code_step step;

	if (w->machine == FATHOM_CODE_AARCH64)
		step = arm_step(code);
	else
		step = fathom_x86_step(code, w->machine == FATHOM_CODE_X86_64);
	/* The linker fills it in. */
	if (w->is_relocatable && step.has_target && (step.distance == 0 || step.distance == -4))
		step.has_target = false;
	return step;
}

/* Returns the size of `lea 0(%esi),%esi` in one of its forms, by which i386 is padded; or 0. */
static uint64_t lea_size(struct fathom_bytes code)
{
	static const struct {
		uint8_t n;
		uint8_t bytes[8];
	} forms[] = {
		{ 3, { 0x8d, 0x76, 0 } },
		{ 4, { 0x8d, 0x74, 0x26, 0 } },
		{ 6, { 0x8d, 0xb6, 0, 0, 0, 0 } },
		{ 7, { 0x8d, 0xb4, 0x26, 0, 0, 0, 0 } },
	};
	const uint64_t prefix = code.size && code.data[0] == 0x2e;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (code.size >= prefix + forms[i].n &&
		    !memcmp(code.data + prefix, forms[i].bytes, forms[i].n))
			return prefix + forms[i].n;
	return 0;
}

/* Returns the bytes of padding at @at. */
static uint64_t padding_size(const struct walk *w, uint64_t at)
{
	const bool is_aarch64 = w->machine == FATHOM_CODE_AARCH64;
	uint64_t size = 0;
	uint64_t one = 1;

	while (one && at + size < w->code.size) {
		const struct fathom_bytes code = bytes_from(w->code, at + size);

		one = fathom_nop_size(is_aarch64, code);
		if (!one && w->machine == FATHOM_CODE_I386)
			one = lea_size(code);
		if (!one && !is_aarch64 && (code.data[0] == 0xcc || code.data[0] == 0))
			one = 1;
		size += one;
	}
	return size;
}

/* Returns whether code may begin after the call that ends at @at which is of another function. */
static bool ends_by_call(const struct walk *w, uint64_t at)
{
	const uint64_t padding = padding_size(w, at);

	return padding && !((w->address + at + padding) % ALIGNMENT);
}

/* `call 1f; 1: pop %ebx`, by which code finds its own place. */
static bool takes_place(const struct walk *w, uint64_t target)
{
	return w->machine == FATHOM_CODE_I386 && target < w->code.size &&
	       (w->code.data[target] & 0xf8) == 0x58;
}

static void note_target(struct walk *w, const struct fathom_code_step *step, uint64_t next)
{
	const uint64_t target = next + (uint64_t)step->distance;

	if (!step->has_target || target >= w->code.size)
		return;
	if (step->flow != FATHOM_STEP_CALL) {
		if (w->n_waiting < MAX_WAITING && !is_seen(w, target))
			w->waiting[w->n_waiting++] = (uint32_t)target;
	} else if (target && target < w->called && !(target == next && takes_place(w, target))) {
		w->called = target;
	}
}

/* Follows the code from @at on, up to where it was followed before. */
static void follow(struct walk *w, uint64_t at)
{
	while (at < w->code.size && !is_seen(w, at)) {
		const struct fathom_code_step step = step_at(w, at);

		if (!step.size)
			return;
		w->seen[at / 64] |= UINT64_C(1) << at % 64;
		at += step.size;
		note_target(w, &step, at);
		if (step.flow == FATHOM_STEP_JUMP || step.flow == FATHOM_STEP_END ||
		    (step.flow == FATHOM_STEP_CALL && ends_by_call(w, at)))
			return;
	}
}

uint64_t fathom_code_size(enum fathom_code_machine machine, struct fathom_bytes code,
			  uint64_t address, bool is_relocatable)
{
	struct walk w = { .machine = machine,
			  .address = address,
			  .is_relocatable = is_relocatable };
	uint64_t end = 0;
	uint64_t at = 0;

	w.code = code;
	if (w.code.size > FATHOM_MAX_CODE_END)
		w.code.size = FATHOM_MAX_CODE_END;
	w.called = w.code.size;
	follow(&w, 0);
	while (w.n_waiting)
		follow(&w, w.waiting[--w.n_waiting]);
	/* Followed code counts up to the first place that was not followed, padding aside. */
	while (at < w.called) {
		if (!is_seen(&w, at))
			at += padding_size(&w, at);
		if (at >= w.called || !is_seen(&w, at))
			break;
		at += step_at(&w, at).size;
		end = at;
	}
	/* Padding up to the next symbol is of no other function. */
	end = at == code.size ? at : end;
	return end < w.called ? end : w.called;
}
