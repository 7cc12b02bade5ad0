/* SPDX-License-Identifier: MIT */
/*
 * Following addresses through registers, where code is straight. What a register holds is forgotten
 * wherever a branch leads to, behind what does not go on with the next instruction, and, for those
 * that callees may change, behind calls.
 *
 * Branches are those of the code itself, and those that lead back from where it branches to, as
 * from the cold part of a function; labels that only a jump table leads to are not known.
 *
 * One thing outlives labels: the page that an adrp has put into a register. If a register that is
 * used behind a label holds a page on one of the ways there, then the use is to complete an address
 * in this page: on that way it makes no sense else. So the pages of all ways are taken together;
 * where two ways bring different pages, there is none.
 */
#include <stdlib.h>

#include "disasm_work.h"

#define N_REGISTERS 32

/* So many places outside are looked at, and so many instructions there. */
#define MAX_EXCURSIONS     1024
#define MAX_EXCURSION_SIZE 64

/* What leads to an instruction: a branch, a call. */
enum { LABEL = 1, ENTRY = 2 };

enum how { UNKNOWN, NUMBER, CONTENTS };

/* What is known of a register. */
struct known {
	uint64_t value;  /* NUMBER: that it holds */
	uint32_t from;   /* the instruction that says so; CONTENTS: of what its slot holds */
	uint8_t how;     /* enum how */
	bool is_address; /* by how it was made, not only by its value */
	bool is_page;    /* by an adrp, not yet completed */
};

/* The pages that branches bring to a label. */
struct arriving {
	struct known known[N_REGISTERS];
	uint32_t contradicted; /* registers for which there are several */
};

struct following {
	struct fathom_disasm_work *w;
	struct known known[N_REGISTERS];
	uint8_t *labels;            /* a byte for each instruction */
	struct arriving **arriving; /* for each instruction; NULL: none */
};

/* The number of the instruction at @address, or that of instructions. */
static size_t find_code(const struct fathom_disasm_work *w, uint64_t address)
{
	size_t low = 0;
	size_t high = w->codes.n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (fathom_work_code(w, mid)->address < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < w->codes.n && fathom_work_code(w, low)->address == address ? low : w->codes.n;
}

static void mark(struct following *f, const struct fathom_code *c)
{
	size_t at;

	if (c->kind != FATHOM_REFERENCE_BRANCH)
		return;
	at = find_code(f->w, c->value);
	if (at < f->w->codes.n)
		f->labels[at] |= c->flow == FATHOM_FLOW_CALL ? ENTRY : LABEL;
}

/* Marks where the straight code at @address, outside, branches back to. */
static void look_outside(struct following *f, uint64_t address)
{
	const struct fathom_disasm_work *w = f->w;
	uint8_t bytes[MAX_EXCURSION_SIZE * FATHOM_MAX_INSN];
	char buf[FATHOM_INSN_TEXT];
	struct fathom_bytes left = { bytes, 0 };
	size_t size = 0;

	if (fathom_target_read(w->target, address, bytes, sizeof bytes, &size, NULL))
		return;
	left.size = size;
	for (unsigned i = 0; i < MAX_EXCURSION_SIZE && left.size; i++) {
		struct fathom_text text = text_init(buf, sizeof buf);
		struct fathom_external ignored;
		struct fathom_code c;

		w->decoder->decode(w->decoder, left, address, &c, &text);
		if (w->relocatable)
			fathom_disasm_relocate_one(w, &c, &ignored);
		mark(f, &c);
		if (c.flow == FATHOM_FLOW_JUMP || c.flow == FATHOM_FLOW_RETURN ||
		    c.flow == FATHOM_FLOW_STOP)
			break;
		address += c.size;
		left = bytes_from(left, c.size);
	}
}

static bool is_inside(const struct fathom_disasm_work *w, uint64_t address)
{
	return address - w->start < w->to->next - w->start;
}

static void find_labels(struct following *f)
{
	unsigned excursions = 0;

	for (size_t i = 0; i < f->w->codes.n; i++) {
		const struct fathom_code *c = fathom_work_code(f->w, i);

		mark(f, c);
		if (c->kind == FATHOM_REFERENCE_BRANCH && c->flow == FATHOM_FLOW_BRANCH &&
		    f->w->target && !is_inside(f->w, c->value) && excursions++ < MAX_EXCURSIONS)
			look_outside(f, c->value);
	}
}

static void forget(struct following *f, uint32_t registers)
{
	for (unsigned r = 0; r < N_REGISTERS; r++)
		if (registers >> r & 1)
			f->known[r].how = UNKNOWN;
}

static const struct known *known_of(const struct following *f, uint8_t reg)
{
	static const struct known nothing = { .how = UNKNOWN };

	return reg < N_REGISTERS ? &f->known[reg] : &nothing;
}

static struct fathom_external *external_of(const struct following *f, size_t i)
{
	return f->w->external.n ? (struct fathom_external *)f->w->external.data + i : NULL;
}

/* A branch to what is in a register. */
static void follow_branch(const struct following *f, size_t i, struct fathom_code *c)
{
	const struct known *k = known_of(f, c->reg);
	const struct fathom_code *from;

	if (c->kind || (c->flow != FATHOM_FLOW_CALL && c->flow != FATHOM_FLOW_JUMP) || !k->how)
		return;
	from = fathom_work_code(f->w, k->from);
	c->kind = k->how == NUMBER ? FATHOM_REFERENCE_BRANCH : from->kind;
	c->value = k->how == NUMBER ? k->value : from->value;
	c->relative = k->how == NUMBER ? k->is_address : from->relative;
	c->slot_size = from->slot_size;
	if (f->w->external.n)
		*external_of(f, i) = *external_of(f, k->from);
}

/* Something at a distance from a register. */
static void follow_base(const struct following *f, struct fathom_code *c)
{
	const struct known *k = known_of(f, c->base);

	if (c->base == FATHOM_NO_REGISTER)
		return;
	c->base = FATHOM_NO_REGISTER;
	if (k->how != NUMBER) {
		c->kind = FATHOM_REFERENCE_NONE;
		c->effect = FATHOM_EFFECT_NONE;
		return;
	}
	c->value += k->value;
	c->relative = k->is_address;
	if (c->effect == FATHOM_EFFECT_ADD) {
		c->kind = k->is_address ? FATHOM_REFERENCE_ADDRESS : FATHOM_REFERENCE_VALUE;
		c->effect = FATHOM_EFFECT_SET;
	}
}

/* A part of a register is replaced: the whole is what counts, not what it was before. */
static void follow_insert(const struct following *f, struct fathom_code *c)
{
	const struct known *k = known_of(f, c->reg);
	struct fathom_code *before;

	if (c->effect != FATHOM_EFFECT_INSERT)
		return;
	c->effect = FATHOM_EFFECT_NONE;
	if (k->how != NUMBER)
		return;
	before = fathom_work_code(f->w, k->from);
	if (before->kind == FATHOM_REFERENCE_VALUE)
		before->kind = FATHOM_REFERENCE_NONE;
	c->value = (k->value & ~(UINT64_C(0xffff) << c->shift)) | c->value << c->shift;
	c->effect = FATHOM_EFFECT_SET;
	c->kind = FATHOM_REFERENCE_VALUE;
}

/* Takes what a branch to instruction @to brings there. */
static fathom_err send(struct following *f, size_t to)
{
	struct arriving *a = f->arriving[to];

	if (!a)
		a = f->arriving[to] = calloc(1, sizeof *a);
	if (!a)
		return FATHOM_E_MEMORY;
	for (unsigned r = 0; r < N_REGISTERS; r++) {
		if (f->known[r].how == UNKNOWN || !f->known[r].is_page)
			continue;
		if (a->known[r].how && a->known[r].value != f->known[r].value)
			a->contradicted |= 1u << r;
		a->known[r] = f->known[r];
	}
	return FATHOM_OK;
}

/* At label @i: forgets all but pages, to which those are added that branches bring. */
static fathom_err arrive(struct following *f, size_t i)
{
	struct arriving *a;

	for (unsigned r = 0; r < N_REGISTERS; r++)
		if (!f->known[r].is_page || (f->labels[i] & ENTRY))
			f->known[r].how = UNKNOWN;
	FATHOM_TRY(send(f, i));
	a = f->arriving[i];
	memcpy(f->known, a->known, sizeof f->known);
	forget(f, a->contradicted);
	free(a);
	f->arriving[i] = NULL;
	return FATHOM_OK;
}

/* What an instruction leaves in registers. */
static void leave(struct following *f, size_t i, const struct fathom_code *c)
{
	forget(f, c->writes);
	if (c->flow == FATHOM_FLOW_CALL)
		forget(f, f->w->decoder->clobbered);
	if (c->reg >= N_REGISTERS)
		return;
	if (c->effect == FATHOM_EFFECT_SET)
		f->known[c->reg] = (struct known){ c->value, (uint32_t)i, NUMBER, c->relative,
						   c->relative && !c->kind };
	else if (c->effect == FATHOM_EFFECT_LOAD && c->kind == FATHOM_REFERENCE_SLOT)
		f->known[c->reg] = (struct known){ 0, (uint32_t)i, CONTENTS, false, false };
}

static fathom_err follow_one(struct following *f, size_t i)
{
	struct fathom_code *c = fathom_work_code(f->w, i);
	size_t to;

	if (f->labels[i])
		FATHOM_TRY(arrive(f, i));
	follow_branch(f, i, c);
	follow_base(f, c);
	follow_insert(f, c);
	leave(f, i, c);
	if (c->kind == FATHOM_REFERENCE_BRANCH && c->operand_size && c->flow != FATHOM_FLOW_CALL) {
		to = find_code(f->w, c->value);
		if (to > i && to < f->w->codes.n)
			FATHOM_TRY(send(f, to));
	}
	if (c->flow == FATHOM_FLOW_JUMP || c->flow == FATHOM_FLOW_RETURN ||
	    c->flow == FATHOM_FLOW_STOP)
		forget(f, ~UINT32_C(0));
	return FATHOM_OK;
}

fathom_err fathom_disasm_follow(struct fathom_disasm_work *w)
{
	struct following f = { .w = w,
			       .labels = calloc(w->codes.n + 1, 1),
			       .arriving = calloc(w->codes.n + 1, sizeof *f.arriving) };
	fathom_err err = f.labels && f.arriving ? FATHOM_OK : FATHOM_E_MEMORY;

	if (!err)
		find_labels(&f);
	for (size_t i = 0; i < w->codes.n && !err; i++)
		err = follow_one(&f, i);
	for (size_t i = 0; i < w->codes.n && f.arriving; i++)
		free(f.arriving[i]);
	free(f.labels);
	free(f.arriving);
	return err;
}
