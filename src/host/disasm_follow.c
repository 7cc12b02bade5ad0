/* SPDX-License-Identifier: MIT */
/*
 * Following addresses through registers, where code is straight. What a register holds is forgotten
 * wherever a branch of the same code leads to, behind what does not go on with the next
 * instruction, and, for those that callees may change, behind calls. Labels that only a jump table
 * leads to are not known; behind them a value may still be remembered that came from above.
 */
#include <stdlib.h>

#include "disasm_work.h"

#define N_REGISTERS 32

enum how { UNKNOWN, NUMBER, CONTENTS };

/* What is known of a register. */
struct known {
	uint64_t value;  /* NUMBER: that it holds */
	uint32_t from;   /* the instruction that says so; CONTENTS: of what its slot holds */
	uint8_t how;     /* enum how */
	bool is_address; /* by how it was made, not only by its value */
};

struct following {
	struct fathom_disasm_work *w;
	struct known known[N_REGISTERS];
	uint8_t *labels; /* a byte for each instruction */
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

static void find_labels(struct following *f)
{
	for (size_t i = 0; i < f->w->codes.n; i++) {
		const struct fathom_code *c = fathom_work_code(f->w, i);
		size_t at;

		if (c->kind != FATHOM_REFERENCE_BRANCH)
			continue;
		at = find_code(f->w, c->value);
		if (at < f->w->codes.n)
			f->labels[at] = 1;
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
	c->relative = true;
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

static void follow_one(struct following *f, size_t i)
{
	struct fathom_code *c = fathom_work_code(f->w, i);

	if (f->labels[i])
		forget(f, ~UINT32_C(0));
	follow_branch(f, i, c);
	follow_base(f, c);
	follow_insert(f, c);
	forget(f, c->writes);
	if (c->flow == FATHOM_FLOW_CALL)
		forget(f, f->w->decoder->clobbered);
	else if (c->flow == FATHOM_FLOW_JUMP || c->flow == FATHOM_FLOW_RETURN ||
		 c->flow == FATHOM_FLOW_STOP)
		forget(f, ~UINT32_C(0));
	if (c->reg >= N_REGISTERS)
		return;
	if (c->effect == FATHOM_EFFECT_SET)
		f->known[c->reg] = (struct known){ c->value, (uint32_t)i, NUMBER, c->relative };
	else if (c->effect == FATHOM_EFFECT_LOAD && c->kind == FATHOM_REFERENCE_SLOT)
		f->known[c->reg] = (struct known){ 0, (uint32_t)i, CONTENTS, false };
}

fathom_err fathom_disasm_follow(struct fathom_disasm_work *w)
{
	struct following f = { .w = w, .labels = calloc(w->codes.n + 1, 1) };

	if (!f.labels)
		return FATHOM_E_MEMORY;
	find_labels(&f);
	for (size_t i = 0; i < w->codes.n; i++)
		follow_one(&f, i);
	free(f.labels);
	return FATHOM_OK;
}
