/* SPDX-License-Identifier: MIT */
#include "host/sites/syscall_lines.h"

#include <elf.h>
#include <stdlib.h>

#include "host/code/x86_64/x86_instructions.h"

/*
 * Bytes of loaded segments above which nothing is proven: it would take more than a tenth of a
 * second.
 */
#define MOST_BYTES (UINT64_C(64) << 20)

/* Parts of one function. */
#define MOST_PARTS 16

/* Displacements, and how far one of a byte leads. */
enum { WORD = 4, REACH = 128 };

/* Low bits by which addresses are told apart first. */
#define TOLD_BITS 16

/* A mod of ModRM: the operand is a register. Numbers of operations in its reg. */
enum { REGISTER = 3, OP_NOT = 2, OP_NEG = 3, OP_DEC = 1 };

/* Returns whether `0f @opcode` is cmov, set, movzx, movsx or imul. */
static bool is_simple_long(uint8_t opcode)
{
	return opcode >> 4 == 4 || opcode >> 4 == 9 || (opcode & 0xf6) == 0xb6 || opcode == 0xaf;
}

/*
 * Returns the bytes of an instruction with @opcode and registers as operands, from the opcode on; 0
 * if it is no arithmetic or move. @op: the reg of its ModRM.
 */
static uint64_t simple_size(uint8_t opcode, uint8_t op)
{
	switch (opcode) {
	case 0x63: /* movsxd */
	case 0x84: /* test */
	case 0x85:
	case 0x88: /* mov */
	case 0x89:
	case 0x8a:
	case 0x8b:
	case 0xd0: /* shifts by 1, by %cl */
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return 2;
	case 0x80: /* arithmetic with a byte */
	case 0x83:
	case 0xc0: /* shifts by a byte */
	case 0xc1:
		return 3;
	case 0xf6:
	case 0xf7:
		return op == OP_NOT || op == OP_NEG ? 2 : 0;
	case 0xfe: /* inc, dec */
	case 0xff:
		return op <= OP_DEC ? 2 : 0;
	default: /* arithmetic of two registers */
		return opcode < 0x40 && (opcode & 7) < 4 ? 2 : 0;
	}
}

bool fathom_syscall_insn_line_has(struct fathom_bytes code)
{
	const bool has_rex = code.size && (code.data[0] & 0xf0) == 0x40;
	const struct fathom_bytes b = bytes_from(code, has_rex);

	if (b.size < 2)
		return false;
	if (b.data[0] == 0x0f)
		return b.size == 3 && is_simple_long(b.data[1]) && b.data[2] >> 6 == REGISTER;
	return b.data[1] >> 6 == REGISTER && b.size == simple_size(b.data[0], b.data[1] >> 3 & 7);
}

/* The proof that nobody jumps to the midst of lines. */
struct proof {
	struct fathom_site_work *w;
	struct fathom_syscall_insn_lines *lines;
	uint64_t bits[(1 << TOLD_BITS) / 64]; /* bit i: an address of a line ends in i */
};

static void add_address(struct proof *p, uint64_t address)
{
	const uint64_t bit = address & ((1 << TOLD_BITS) - 1);

	p->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* Finds the function of @line, and adds the addresses that count. */
static void add_line(struct proof *p, struct fathom_syscall_insn_line *line)
{
	struct fathom_fde fde;

	for (uint8_t k = 0; k < line->n_inner; k++)
		add_address(p, line->inner[k]);
	if (fathom_unwind_tables_find(&p->w->module->unwind, line->inner[0], &fde))
		return;
	line->function = fde.low;
	add_address(p, fde.low);
}

/* The function with the low bits @address is a whole one. */
static void enter(struct proof *p, uint32_t address)
{
	for (size_t i = 0; i < p->lines->n; i++)
		if (p->lines->items[i].function && (uint32_t)p->lines->items[i].function == address)
			p->lines->items[i].is_entered = true;
}

/* Refuses the lines that have an inner address with the low bits of @address. */
static void refuse(struct proof *p, uint32_t address)
{
	for (size_t i = 0; i < p->lines->n; i++)
		for (uint8_t k = 0; k < p->lines->items[i].n_inner; k++)
			if ((uint32_t)p->lines->items[i].inner[k] == address)
				p->lines->items[i].is_refused = true;
}

/* Returns false if @address is no low bits of what counts. */
static inline bool may_count(const struct proof *p, uint32_t address)
{
	const uint32_t bit = address & ((1 << TOLD_BITS) - 1);

	return p->bits[bit / 64] >> bit % 64 & 1;
}

/* Somebody may jump to the address with the low bits @address. */
static inline void note(struct proof *p, uint32_t address)
{
	if (may_count(p, address))
		refuse(p, address);
}

static void note_symbol(struct proof *p, const struct fathom_symtab *t,
			const struct fathom_symbol *s, uint32_t address)
{
	struct fathom_str name;

	if (!may_count(p, address))
		return;
	refuse(p, address);
	name = fathom_symtab_name(t, s);
	if (s->type == STT_FUNC && name.data && !memchr(name.data, '.', name.size))
		enter(p, address);
}

/* Notes where functions and symbols begin. */
static void note_starts(struct proof *p)
{
	const struct fathom_symbol_set *set = &p->w->module->symbols;

	for (size_t i = 0; i < p->w->functions.n; i++)
		note(p, (uint32_t)p->w->functions.items[i].svma);
	for (uint32_t i = 0; i < set->n_tables; i++) {
		const struct fathom_symbol_table *t = &set->table[i];

		for (uint32_t k = 0; k < t->view.count; k++) {
			struct fathom_symbol_region region;
			struct fathom_symbol s;
			uint64_t svma;

			fathom_symtab_get(&t->view, k, &s);
			if (fathom_symbol_place(t, &s, &svma, &region))
				note_symbol(p, &t->view, &s, (uint32_t)svma);
		}
	}
}

/* Returns whether a call may end with the displacement at byte @i of @b. */
static bool may_be_call(struct fathom_bytes b, uint64_t i)
{
	return i && b.data[i - 1] == FATHOM_X86_CALL;
}

/*
 * Returns whether byte @i of @b may begin a displacement of four bytes: before it is the opcode of
 * a call, jump, conditional jump or xbegin, or the ModRM of an operand relative to the instruction.
 */
static bool may_be_displacement(struct fathom_bytes b, uint64_t i)
{
	const uint8_t last = i ? b.data[i - 1] : 0;
	const uint8_t before = i > 1 ? b.data[i - 2] : 0;

	return may_be_call(b, i) || last == FATHOM_X86_JUMP || (before == 0x0f && last >> 4 == 8) ||
	       (before == 0xc7 && last == 0xf8) || (last & 0xc7) == 5;
}

/* Notes all that the bytes @b of an executable segment, from @svma on, could lead to. */
static void note_code(struct proof *p, struct fathom_bytes b, uint64_t svma, bool is_fixed)
{
	for (uint64_t i = 0; i + WORD <= b.size; i++) {
		const uint32_t to = load_u32(b.data + i, false) + (uint32_t)(svma + i + WORD);

		if (!may_count(p, to))
			continue;
		if (may_be_displacement(b, i))
			refuse(p, to);
		if (may_be_call(b, i))
			enter(p, to);
	}
	for (uint64_t i = 0; is_fixed && i + WORD <= b.size; i++)
		note(p, load_u32(b.data + i, false));
}

/* Notes the addresses that words in the bytes @b of a segment, from @svma on, have or lead to. */
static void note_words(struct proof *p, struct fathom_bytes b, uint64_t svma)
{
	for (uint64_t i = -svma % WORD; i + WORD <= b.size; i += WORD) {
		const uint32_t word = load_u32(b.data + i, false);

		note(p, word);
		note(p, word + (uint32_t)(svma + i));
	}
}

/* Returns whether the byte before a displacement of one byte may be the opcode of a jump. */
static bool is_short_jump(uint8_t opcode)
{
	return opcode >> 4 == 7 || (opcode >= 0xe0 && opcode <= 0xe3) ||
	       opcode == FATHOM_X86_SHORT_JUMP;
}

/* Returns whether a short jump in the bytes @b, from @svma on, could lead to @to. */
static bool has_short_jump(struct fathom_bytes b, uint64_t svma, uint64_t to)
{
	const uint64_t at = to - svma; /* svma may be above it */

	for (int64_t i = -REACH; i < REACH; i++) {
		const uint64_t k = at + (uint64_t)i;

		if (k - 1 < b.size && k < b.size && is_short_jump(b.data[k - 1]) &&
		    k + 1 + (uint64_t)(int64_t)(int8_t)b.data[k] == at)
			return true;
	}
	return false;
}

static void note_short_jumps(const struct proof *p, struct fathom_bytes b, uint64_t svma)
{
	for (size_t i = 0; i < p->lines->n; i++) {
		struct fathom_syscall_insn_line *line = &p->lines->items[i];

		for (uint8_t k = 0; k < line->n_inner; k++)
			line->is_refused |= has_short_jump(b, svma, line->inner[k]);
	}
}

/* Notes what the bytes of all loaded segments could lead to; false if they are too many. */
static bool note_segments(struct proof *p)
{
	const struct fathom_image *image = &p->w->object->image;
	struct fathom_segment s;
	uint64_t left = MOST_BYTES;

	for (uint32_t i = 0; fathom_image_segment(image, i, &s); i++) {
		const struct fathom_bytes b = bytes_slice(image->bytes, s.off, s.filesz);

		if (s.type != PT_LOAD || !s.filesz)
			continue;
		if (!b.size || b.size > left)
			return false;
		left -= b.size;
		note_words(p, b, s.vaddr);
		if (!(s.flags & PF_X))
			continue;
		note_code(p, b, s.vaddr, image->type == ET_EXEC);
		note_short_jumps(p, b, s.vaddr);
	}
	return true;
}

/* The parts of a function, as unwind rules tell them. */
struct parts {
	size_t n;
	struct fathom_range items[MOST_PARTS];
};

/* Adds the part that holds @svma; returns false if it has landing pads, or is not known. */
static bool add_part(const struct proof *p, struct parts *parts, uint64_t svma)
{
	struct fathom_fde fde;

	for (size_t i = 0; i < parts->n; i++)
		if (svma - parts->items[i].low < parts->items[i].high - parts->items[i].low)
			return true;
	if (parts->n == MOST_PARTS ||
	    fathom_unwind_tables_find(&p->w->module->unwind, svma, &fde) || fde.has_lsda ||
	    fde.is_damaged || fde.low > svma || fde.high <= svma)
		return false;
	parts->items[parts->n++] = (struct fathom_range){ fde.low, fde.high };
	return true;
}

/*
 * Returns whether all jumps of the part @r are direct, or leave by a word, as stubs do. Adds the
 * parts that they lead to.
 */
static bool has_direct_jumps(const struct proof *p, struct parts *parts, struct fathom_range r)
{
	struct fathom_stack_code c;

	for (uint64_t svma = r.low; svma < r.high; svma += c.size) {
		if (!fathom_site_decode(p->w, svma, &c))
			return false;
		if (c.flow != FATHOM_FLOW_BRANCH && c.flow != FATHOM_FLOW_JUMP)
			continue;
		if (c.is_direct ? !add_part(p, parts, c.target) : !c.is_by_slot)
			return false;
	}
	return true;
}

/* Returns whether the function that holds @svma jumps only to where its instructions say. */
static bool is_plain(const struct proof *p, uint64_t svma)
{
	struct parts parts = { .n = 0 };

	if (!add_part(p, &parts, svma))
		return false;
	for (size_t i = 0; i < parts.n; i++)
		if (!has_direct_jumps(p, &parts, parts.items[i]))
			return false;
	return true;
}

fathom_err fathom_syscall_insn_lines_prove(struct fathom_site_work *w,
					   struct fathom_syscall_insn_lines *lines)
{
	struct proof *p;
	bool is_small;

	if (!lines->n)
		return FATHOM_OK;
	p = calloc(1, sizeof *p);
	if (!p)
		return FATHOM_E_MEMORY;
	p->w = w;
	p->lines = lines;
	for (size_t i = 0; i < lines->n; i++)
		add_line(p, &lines->items[i]);
	note_starts(p);
	is_small = note_segments(p);
	for (size_t i = 0; i < lines->n; i++) {
		struct fathom_syscall_insn_line *line = &lines->items[i];

		line->is_refused |= !is_small || !line->is_entered || !is_plain(p, line->inner[0]);
	}
	free(p);
	return FATHOM_OK;
}
