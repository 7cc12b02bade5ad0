/* SPDX-License-Identifier: MIT */
/*
 * Sites become jumps by a store of one byte, while other threads run what was there.
 *
 * A site with five bytes or more:
 *
 *	was	 0f 1f 44 00 08			nopl 8(%rax,%rax,1)
 *	step 1	 0f 1f 44 XX YY			a NOP, too: what it would address does not count
 *	step 2	 e9 1f 44 XX YY			jmp stub
 *
 * The bytes of a jump's displacement that are given by the NOP are its form. So the lower part of
 * the distance of its stub is given, and the upper part may be chosen: all stubs of a form lie as
 * their jumps do, at one distance. Of NOPs of one byte each, between which a thread may stand, most
 * are given: the last but one may be a prefix of the last, or the last one may be a prefix,
 * without effect, of the next instruction.
 *
 * A site with five bytes in front of its function, which nobody runs:
 *
 *	was	 ... 90 90 90 90 90 | 90 90
 *	step 1	 ... e9 AA BB CC DD | 90 f9	the NOP becomes STC: no entry looks at CF
 *	step 2	 ... e9 AA BB CC DD | eb f9	jmp to five bytes before the entry
 *
 * CMC, f5, leads over an ENDBR64 at the entry.
 */
#include "host/self_trace/text_site.h"

#include <string.h>

#include "host/code/x86_64/x86_instructions.h"

enum { JUMP_SIZE = FATHOM_X86_BRANCH_SIZE, SHORT_SIZE = FATHOM_X86_SHORT_SIZE };

/* Where the stack pointer is recorded the return address lies. */
const uint32_t fathom_text_site_above = 1;

/* stc and cmc, which as a short jump's displacement lead to JUMP_SIZE bytes before the entry. */
enum { STC = 0xf9, CMC = 0xf5, OVER_ENDBR = 4 };

/* Prefixes. */
enum { OPERAND_SIZE = 0x66, CS = 0x2e };

/* A form: the given bytes of a displacement, from the lowest on, and how many they are. */
#define FORM(n, low)   ((uint64_t)(n) << 32 | (low))
#define FORM_N(form)   ((uint32_t)((form) >> 32))
#define FORM_LOW(form) ((uint32_t)(form))

/* NOPs of one byte, and those after which no prefix may come. */
#define FORM_SINGLE       FORM(4, UINT32_C(0x90909090))
#define FORM_SINGLE_ALONE FORM(5, UINT32_C(0x90909090))

/*
 * The upper two bytes of distances that are such NOPs, too: the last one, and the one before it,
 * which may be a prefix of that. From N_ALONE on the last one is a prefix of the next instruction,
 * of no effect.
 */
enum { N_ALONE = 6 };
static const uint16_t singles[] = { 0x9090, 0x9066, 0x902e, 0x903e, 0x9026,
				    0x9036, 0x2e90, 0x2690, 0x3690, 0x3e90 };

/* Returns the @i-th distance of which the lowest @n bytes are @low, from the nearest below on. */
static bool distance_of(uint32_t n, uint32_t low, uint32_t i, int64_t *ret)
{
	/* Nearer ones would be tried in vain: pools are pages. */
	const uint64_t step = UINT64_C(1) << (n < 2 ? 16 : 8 * n);
	const uint64_t count = (UINT64_C(1) << 32) / step;

	if (i >= count)
		return false;
	/* Below the module; then above it, from the farthest on: what is there is a heap's. */
	*ret = (int32_t)(uint32_t)((count - 1 - i) * step + low);
	return true;
}

bool fathom_stub_distance(uint64_t form, uint32_t i, int64_t *ret)
{
	const uint32_t n = form == FORM_SINGLE_ALONE ? N_ALONE : sizeof singles / sizeof *singles;

	if (form != FORM_SINGLE && form != FORM_SINGLE_ALONE)
		return distance_of(FORM_N(form), FORM_LOW(form), i, ret);
	if (i >= n)
		return false;
	*ret = (int32_t)((FORM_LOW(form) & 0xffff) | (uint32_t)singles[i] << 16);
	return true;
}

/*
 * Returns how many bytes of the NOP at @code, which is at least JUMP_SIZE long, come before its
 * displacement and SIB byte; 0: it is another one.
 */
static uint32_t given_bytes(const uint8_t *code, size_t size)
{
	size_t n = 0, end;
	uint8_t mode;

	while (n + 2 < size && (code[n] == OPERAND_SIZE || code[n] == CS))
		n++;
	/* nopw and nopl, with a displacement of one byte or four */
	if (n + 2 >= size || code[n] != 0x0f || code[n + 1] != 0x1f)
		return 0;
	mode = code[n + 2] >> 6;
	end = n + 3 + ((code[n + 2] & 7) == 4) + (mode == 1 ? 1 : 4);
	return (mode == 1 || mode == 2) && end >= JUMP_SIZE ? (uint32_t)n + 3 : 0;
}

/* Returns whether the first @n bytes at @code are NOPs of one byte. */
static bool are_single(const uint8_t *code, size_t n)
{
	while (n && code[n - 1] == FATHOM_X86_NOP)
		n--;
	return !n;
}

/* Returns whether the instruction at @code has no prefix that selects a segment. */
static bool may_have_prefix(const uint8_t *code)
{
	static const uint8_t others[] = { OPERAND_SIZE, 0x67, 0xf0, 0xf2, 0xf3 };

	while (memchr(others, *code, sizeof others))
		code++;
	return *code != CS && *code != 0x26 && *code != 0x36 && *code != 0x3e && *code != 0x64 &&
	       *code != 0x65;
}

/* Sets the form of a jump in the slot of @s; returns false if it cannot have one. */
static bool find_form(const struct fathom_site *s, uint64_t *ret)
{
	const uint8_t *behind = (const uint8_t *)(uintptr_t)(s->address + s->size);
	uint32_t low, n = 0;

	if (s->size < JUMP_SIZE)
		return false;
	memcpy(&low, s->bytes + 1, sizeof low);
	if (s->content == FATHOM_SITE_SLED) {
		/* After a return, or after a short jump, nothing is run. */
		n = s->place == FATHOM_SITE_RETURN ? 0 : 1;
	} else if (are_single(s->bytes, JUMP_SIZE)) {
		*ret = s->size > JUMP_SIZE || may_have_prefix(behind) ? FORM_SINGLE
								      : FORM_SINGLE_ALONE;
		return true;
	} else {
		n = given_bytes(s->bytes, s->size);
		if (n < 2)
			return false;
		/* The first one is the jump's. */
		n = n - 1 < sizeof low ? n - 1 : sizeof low;
	}
	*ret = FORM(n, n < sizeof low ? low & ((UINT32_C(1) << 8 * n) - 1) : low);
	return true;
}

/* Returns the byte by which the slot of @s leads in front of its function; 0: none does. */
static uint8_t to_prefix(const struct fathom_site *s)
{
	const uint64_t off = s->address - s->function;

	if (s->prefix_size < JUMP_SIZE || s->size < SHORT_SIZE || s->content != FATHOM_SITE_NOPS ||
	    (s->bytes[0] != FATHOM_X86_NOP && s->bytes[0] != OPERAND_SIZE) ||
	    s->bytes[1] != FATHOM_X86_NOP)
		return 0;
	return off == 0 ? STC : off == OVER_ENDBR ? CMC : 0;
}

static bool is_there(uint64_t avma, const uint8_t *bytes, size_t size)
{
	return !memcmp((const void *)(uintptr_t)avma, bytes, size);
}

enum fathom_patch_refusal fathom_text_site_check(const struct fathom_site *s,
						 struct fathom_stub_site *ret)
{
	const bool is_return = s->content == FATHOM_SITE_SLED && s->place == FATHOM_SITE_RETURN;
	const bool has_prefix = to_prefix(s) != 0;

	*ret = (struct fathom_stub_site){ .site = s->address,
					  .back = is_return ? 0 : s->address + s->size,
					  .from = has_prefix ? s->function : s->address + JUMP_SIZE,
					  .prefix = has_prefix ? s->function - JUMP_SIZE : 0 };
	if (fathom_text_site_lacks_frame(s))
		return FATHOM_PATCH_NO_FRAME;
	if (!has_prefix && !find_form(s, &ret->form))
		return FATHOM_PATCH_NO_ROOM;
	if (!is_there(s->address, s->bytes, s->size) ||
	    (has_prefix && !is_there(s->function - s->prefix_size, s->prefix, s->prefix_size)))
		return FATHOM_PATCH_CHANGED;
	return FATHOM_PATCH_DONE;
}

/* Adds a jump in front of the function, to which a short jump in the slot leads. */
static bool add_prefix(struct fathom_text_plan *plan, const struct fathom_site *s,
		       const uint8_t jump[JUMP_SIZE])
{
	const uint64_t at = s->function - JUMP_SIZE;
	const uint32_t slot = (uint32_t)(s->address - at);
	uint8_t old[JUMP_SIZE + OVER_ENDBR + SHORT_SIZE];
	uint8_t bytes[sizeof old];

	memcpy(old, (const void *)(uintptr_t)at, slot + SHORT_SIZE);
	memcpy(bytes, old, slot);
	memcpy(bytes, jump, JUMP_SIZE);
	bytes[slot] = FATHOM_X86_SHORT_JUMP;
	bytes[slot + 1] = to_prefix(s);
	return fathom_text_plan_add_steps(plan, at, old, bytes, slot + SHORT_SIZE, slot);
}

uint64_t fathom_text_site_add(const struct fathom_site *s, const struct fathom_stub_site *to,
			      struct fathom_text_plan *plan, bool *ret_is_far)
{
	uint8_t jump[JUMP_SIZE] = { FATHOM_X86_JUMP };

	*ret_is_far = !to->stub || !fathom_x86_put_rel32(to->from, to->stub, jump + 1);
	if (*ret_is_far)
		return 0;
	if (!(to_prefix(s)
		      ? add_prefix(plan, s, jump)
		      : fathom_text_plan_add_steps(plan, s->address, s->bytes, jump, JUMP_SIZE, 0)))
		return 0;
	return to->stub + FATHOM_X86_BRANCH_SIZE;
}
