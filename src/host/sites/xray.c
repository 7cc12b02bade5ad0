/* SPDX-License-Identifier: MIT */
/*
 * Sites of clang's `-fxray-instrument` (LLVM, docs/XRay.rst; compiler-rt, xray_interface_internal.h
 * and the machines' xray_*.cpp). The section xray_instr_map has entries of 32 bytes: the address of
 * a sled, that of its function, its kind, two bytes, and padding. From version 2 on, both addresses
 * are relative to where they stand.
 *
 * A sled of x86-64 is `jmp .+11` or `ret` before NOPs, 11 bytes; of aarch64 `b .+32` and seven
 * NOPs.
 *
 * Not handled: relocatable files; sleds for events, which are neither entries nor returns.
 */
#include "host/code/aarch64/arm_instructions.h"
#include "host/code/x86_64/x86_instructions.h"
#include "safe/base/nops.h"
#include "host/sites/site_work.h"

#define ENTRY_SIZE 32
#define RELATIVE   2 /* the first version with relative addresses */
#define X86_SLED   11
#define ARM_SLED   32

/* Kinds of sleds. */
enum { SLED_ENTRY, SLED_EXIT, SLED_TAIL, SLED_ENTRY_WITH_ARGUMENTS };

struct entry {
	uint64_t sled;
	uint64_t function;
	uint8_t kind;
};

/* Reads the entry at @svma; *@i is as in fathom_site_word(). */
static struct entry read_entry(struct fathom_site_work *w, struct fathom_bytes bytes, uint64_t svma,
			       size_t *i)
{
	const bool swap = w->object->image.swap;
	struct entry e = { .kind = bytes.data[16] };

	if (bytes.data[18] >= RELATIVE) {
		e.sled = svma + load_u64(bytes.data, swap);
		e.function = svma + 8 + load_u64(bytes.data + 8, swap);
	} else {
		e.sled = fathom_site_word(w, bytes_slice(bytes, 0, 8), svma, i);
		e.function = fathom_site_word(w, bytes_slice(bytes, 8, 8), svma + 8, i);
	}
	return e;
}

/* Returns whether @code starts with a sled of @kind. */
static bool is_sled(bool is_aarch64, struct fathom_bytes code, uint8_t kind)
{
	const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const uint64_t size = is_aarch64 ? ARM_SLED : X86_SLED;
	uint64_t head = 2;
	uint32_t branch;

	if (code.size < size)
		return false;
	if (is_aarch64) {
		head = 4;
		if (!fathom_arm_jump(0, ARM_SLED, &branch) || load_u32(code.data, big) != branch)
			return false;
	} else if (kind == SLED_EXIT) {
		head = 1;
		if (code.data[0] != FATHOM_X86_RET)
			return false;
	} else if (code.data[0] != FATHOM_X86_SHORT_JUMP || code.data[1] != size - head) {
		return false;
	}
	return fathom_nops_size(is_aarch64, bytes_from(code, head), size - head) == size - head;
}

/* Returns whether the sled of @e is where one of its kind is: at the start, or in the function. */
static bool is_in_place(struct fathom_site_work *w, struct fathom_site_line *line,
			const struct entry *e)
{
	const struct fathom_function *f = fathom_functions_at(&w->functions, e->function);

	if (e->kind == SLED_EXIT || e->kind == SLED_TAIL)
		return e->sled > e->function && e->sled < fathom_functions_end(&w->functions, f) &&
		       fathom_site_is_instruction(w, line, e->sled);
	return e->sled - e->function ==
	       fathom_landing_size(w->is_aarch64, fathom_site_code(w, e->function));
}

static fathom_err take_entry(struct fathom_site_work *w, struct fathom_site_line *line,
			     const struct entry *e)
{
	static const uint8_t places[] = { FATHOM_SITE_ENTRY, FATHOM_SITE_RETURN,
					  FATHOM_SITE_TAIL_CALL, FATHOM_SITE_ENTRY };
	const struct fathom_bytes code = fathom_site_code(w, e->sled);
	struct fathom_raw_site s = { .svma = e->sled,
				     .function = e->function,
				     .size = w->is_aarch64 ? ARM_SLED : X86_SLED,
				     .kind = FATHOM_SITE_XRAY,
				     .content = FATHOM_SITE_SLED };

	if (e->kind > SLED_ENTRY_WITH_ARGUMENTS)
		return FATHOM_OK;
	s.place = places[e->kind];
	if (!code.size)
		fathom_site_refuse(w, FATHOM_REFUSED_NOT_CODE);
	else if (!is_sled(w->is_aarch64, code, e->kind))
		fathom_site_refuse(w, FATHOM_REFUSED_OTHER_CODE);
	else if (!fathom_functions_at(&w->functions, e->function))
		fathom_site_refuse(w, FATHOM_REFUSED_NO_FUNCTION);
	else if (s.place != FATHOM_SITE_ENTRY && !w->decoder && !w->is_aarch64)
		fathom_site_refuse(w, FATHOM_REFUSED_NO_DECODER);
	else if (!is_in_place(w, line, e))
		fathom_site_refuse(w, FATHOM_REFUSED_OTHER_CODE);
	else
		return fathom_site_add(w, &s);
	return FATHOM_OK;
}

static fathom_err take_section(struct fathom_site_work *w, uint32_t section)
{
	const struct fathom_object *o = w->object;
	const struct fathom_bytes bytes =
		fathom_image_section_bytes(&o->image, &o->sections[section].header);
	struct fathom_site_line line = { 0 };
	size_t fixup = 0;

	for (uint64_t off = 0; range_inside(off, ENTRY_SIZE, bytes.size); off += ENTRY_SIZE) {
		const struct entry e = read_entry(w, bytes_slice(bytes, off, ENTRY_SIZE),
						  o->sections[section].base + off, &fixup);

		FATHOM_TRY(take_entry(w, &line, &e));
	}
	return FATHOM_OK;
}

fathom_err fathom_site_find_xray(struct fathom_site_work *w)
{
	const struct fathom_object *o = w->object;

	for (uint32_t i = 1; o->image.type != ET_REL && i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		if (s->name.data && str_is(s->name, "xray_instr_map") && s->flags & SHF_ALLOC)
			FATHOM_TRY(take_section(w, i));
	}
	return FATHOM_OK;
}
