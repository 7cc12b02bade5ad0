/* SPDX-License-Identifier: MIT */
/*
 * Follows addresses through registers, in straight-line code. The value of a register is forgotten
 * at each label, after an instruction that does not continue with the next one and, if callees may
 * change the register, after calls.
 *
 * Labels are made by the branches of the code itself, of the rest of its function, and of what it
 * branches to, as the cold part of a function. Jump tables are not read: in a function with one,
 * every instruction is a label.
 *
 * One thing outlives labels: the page that an adrp has put into a register. If a register that is
 * used after a label holds a page on one of the ways there, the use must complete an address in
 * this page: it makes no sense otherwise. So the pages of all ways are merged; if two ways bring
 * different pages, the register has none.
 */
#include <stdlib.h>

#include "host/disasm/work.h"
#include "host/space/target.h"
#include "safe/base/sort.h"

#define N_REGISTERS 32

/* Limits of looking outside the range: places, ways from each, and instructions of each way. */
#define MAX_EXCURSIONS     4096
#define MAX_PATHS          8
#define MAX_EXCURSION_SIZE 64

/* The most bytes of a function to look at if only a part of it is wanted. */
#define MAX_AROUND (UINT64_C(1) << 20)

/* The first addresses whose functions are looked at are the ends of the range. */
#define N_ENDS 2

/* Ways to an instruction: a branch, a call. */
enum { LABEL = 1, ENTRY = 2 };

enum how { UNKNOWN, NUMBER, CONTENTS };

/* Knowledge of a register. */
struct known {
	uint64_t value;  /* NUMBER: the one it holds */
	uint32_t from;   /* the instruction that set it; CONTENTS: the one with the slot */
	uint8_t how;     /* enum how */
	bool is_address; /* because of how it was made, not only of its value */
	bool is_page;    /* from an adrp, not yet completed */
};

/* The pages that branches bring to a label. */
struct arriving {
	struct known known[N_REGISTERS];
	uint32_t some;         /* registers that are not UNKNOWN */
	uint32_t contradicted; /* registers that get several pages */
};

struct following {
	struct fathom_disasm_work *w;
	struct known known[N_REGISTERS];
	uint32_t some;     /* registers that are not UNKNOWN */
	uint8_t *labels;   /* one byte per instruction */
	bool called;       /* the last instruction, padding aside, was a call */
	uint64_t all_from; /* the range that mark_all() marked last */
	uint64_t all_to;
	struct arriving **arriving; /* one per instruction; NULL: none */
};

/* Returns the index of the first instruction at or after @address, or their number. */
static size_t first_code(const struct fathom_disasm_work *w, uint64_t address)
{
	return FATHOM_BISECT(w->codes.n, i, fathom_work_code(w, i)->address < address);
}

/* Returns the index of the instruction at @address; the number of instructions if none. */
static size_t find_code(const struct fathom_disasm_work *w, uint64_t address)
{
	const size_t i = first_code(w, address);

	return i < w->codes.n && fathom_work_code(w, i)->address == address ? i : w->codes.n;
}

static void mark(struct following *f, const struct fathom_code *c)
{
	const bool branches = c->kind == FATHOM_REFERENCE_BRANCH;
	size_t at;

	/* Code whose address is taken may be reached from anywhere. */
	if (!branches && (c->base != FATHOM_NO_REGISTER || (c->kind != FATHOM_REFERENCE_ADDRESS &&
							    c->kind != FATHOM_REFERENCE_VALUE)))
		return;
	at = find_code(f->w, c->value);
	if (at < f->w->codes.n)
		f->labels[at] |= branches && c->flow == FATHOM_FLOW_CALL ? ENTRY : LABEL;
}

/* Makes every instruction from @start to before @end a label: any may be reached. */
static void mark_all(struct following *f, uint64_t start, uint64_t end)
{
	const size_t first = first_code(f->w, start);

	/* A function may have a thousand tables. */
	if (f->all_from == start && f->all_to == end)
		return;
	for (size_t i = first; i < f->w->codes.n && fathom_work_code(f->w, i)->address < end; i++)
		f->labels[i] |= LABEL;
	f->all_from = start;
	f->all_to = end;
}

static bool is_inside(const struct fathom_disasm_work *w, uint64_t address)
{
	return address - w->start < w->to->next - w->start;
}

/* Returns whether @c jumps through a table; @computed are the registers that were computed. */
static bool takes_table(const struct fathom_code *c, uint32_t *computed)
{
	const bool by_register = c->reg < N_REGISTERS && *computed >> c->reg & 1;

	if (c->flow == FATHOM_FLOW_JUMP && c->kind == FATHOM_REFERENCE_NONE)
		return c->computes || by_register;
	*computed = c->computes ? *computed | c->writes : *computed & ~c->writes;
	return false;
}

static bool goes_on(const struct fathom_code *c)
{
	return c->flow != FATHOM_FLOW_JUMP && c->flow != FATHOM_FLOW_RETURN &&
	       c->flow != FATHOM_FLOW_STOP;
}

/* Returns whether @c may branch to a part of the function outside the range. */
static bool leads_outside(const struct following *f, const struct fathom_code *c)
{
	return c->kind == FATHOM_REFERENCE_BRANCH &&
	       (c->flow == FATHOM_FLOW_BRANCH || c->flow == FATHOM_FLOW_JUMP) && f->w->target &&
	       !is_inside(f->w, c->value);
}

/* A walk over code outside the range. */
struct outside {
	uint8_t bytes[MAX_EXCURSION_SIZE * FATHOM_MAX_INSN];
	struct fathom_bytes left;
	uint64_t address;
};

/* Decodes the next instruction outside; returns false if it cannot be read. */
static bool next_outside(const struct following *f, struct outside *o, struct fathom_code *ret)
{
	const struct fathom_disasm_work *w = f->w;
	char buf[FATHOM_INSN_TEXT];
	struct fathom_text text = text_init(buf, sizeof buf);
	struct fathom_external ignored;
	size_t size = 0;

	if (o->left.size < FATHOM_MAX_INSN) {
		if (fathom_target_read(w->target, o->address, o->bytes, sizeof o->bytes, &size,
				       NULL))
			return false;
		o->left = (struct fathom_bytes){ o->bytes, size };
	}
	w->decoder->decode(w->decoder, o->left, o->address, ret, &text);
	if (w->relocatable)
		fathom_disasm_relocate_one(w, ret, &ignored);
	o->address += ret->size;
	o->left = bytes_from(o->left, ret->size);
	return true;
}

/* Marks what the code at @address, outside, branches back to. */
static void look_outside(struct following *f, uint64_t address)
{
	uint64_t paths[MAX_PATHS] = { address };
	unsigned n = 1;

	for (unsigned k = 0; k < n; k++) {
		struct outside o = { .address = paths[k] };
		struct fathom_code c = { .flow = FATHOM_FLOW_NEXT };

		for (unsigned i = 0; i < MAX_EXCURSION_SIZE && goes_on(&c); i++) {
			if (!next_outside(f, &o, &c))
				break;
			mark(f, &c);
			if (c.flow == FATHOM_FLOW_BRANCH && leads_outside(f, &c) && n < MAX_PATHS)
				paths[n++] = c.value;
		}
	}
}

/* Marks where outside code from @start to @end leads; returns false if that may be anywhere. */
static bool look_along(struct following *f, uint64_t start, uint64_t end)
{
	struct outside o = { .address = start };
	uint32_t computed = 0;
	struct fathom_code c;

	if (end - start > MAX_AROUND)
		return false;
	while (o.address < end) {
		if (!next_outside(f, &o, &c) || takes_table(&c, &computed))
			return false;
		mark(f, &c);
	}
	return true;
}

/* Marks what @a's function leads to outside the range; with @has_table, all of it. */
static void look_around(struct following *f, const struct fathom_answer *a, bool has_table)
{
	const uint64_t start = a->pc.address - a->offset;
	const uint64_t end = start + a->size;
	const uint64_t first = f->w->start;
	const uint64_t next = f->w->to->next;

	if (!a->symbol || !a->size) {
		if (has_table)
			mark_all(f, first, next);
	} else if (has_table || (start < first && !look_along(f, start, first)) ||
		   (end > next && !look_along(f, next, end))) {
		mark_all(f, start, end);
	}
}

/* Does so for the functions of @addresses; the first two are the ends of the range. */
static void look_around_all(struct following *f, const struct fathom_u64_array *addresses)
{
	const struct fathom_batch_options o = { .flags = FATHOM_NAMES_ONLY | FATHOM_NO_DEMANGLE };
	struct fathom_answers *answers;

	/* A target that has gone is reported when names are asked for. */
	if (!f->w->target || fathom_target_answer(f->w->target, &o, addresses->items, addresses->n,
						  &answers, NULL)) {
		if (f->w->target || addresses->n > N_ENDS)
			mark_all(f, f->w->start, f->w->to->next);
		return;
	}
	for (size_t i = 0; i < addresses->n; i++)
		look_around(f, fathom_answers_get(answers, i), i >= N_ENDS);
	fathom_answers_free(answers);
}

static fathom_err add_address(struct fathom_u64_array *to, uint64_t address)
{
	if (!fathom_array_push(to, address))
		return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

/* Finds all labels. @addresses are those whose functions are looked at. */
static fathom_err find_labels(struct following *f, struct fathom_u64_array *addresses)
{
	const struct fathom_disasm_work *w = f->w;
	unsigned excursions = 0;
	uint32_t computed = 0;

	FATHOM_TRY(add_address(addresses, w->start));
	FATHOM_TRY(add_address(addresses, w->to->next - 1));
	for (size_t i = 0; i < w->codes.n; i++) {
		const struct fathom_code *c = fathom_work_code(w, i);

		mark(f, c);
		if (takes_table(c, &computed))
			FATHOM_TRY(add_address(addresses, c->address));
		if (leads_outside(f, c) && excursions++ < MAX_EXCURSIONS)
			look_outside(f, c->value);
	}
	if (excursions > MAX_EXCURSIONS)
		mark_all(f, w->start, w->to->next);
	look_around_all(f, addresses);
	return FATHOM_OK;
}

/* Returns whether any instruction depends on the value of a register. */
static bool needs_following(const struct fathom_disasm_work *w)
{
	for (size_t i = 0; i < w->codes.n; i++) {
		const struct fathom_code *c = fathom_work_code(w, i);

		if (c->base != FATHOM_NO_REGISTER || c->effect == FATHOM_EFFECT_INSERT ||
		    (!c->kind && c->reg != FATHOM_NO_REGISTER &&
		     (c->flow == FATHOM_FLOW_CALL || c->flow == FATHOM_FLOW_JUMP)))
			return true;
	}
	return false;
}

static void forget(struct following *f, uint32_t registers)
{
	for (uint32_t left = registers & f->some; left; left &= left - 1)
		f->known[__builtin_ctz(left)].how = UNKNOWN;
	f->some &= ~registers;
}

/* Returns the registers that hold pages. */
static uint32_t pages_of(const struct following *f)
{
	uint32_t pages = 0;

	for (uint32_t left = f->some; left; left &= left - 1)
		if (f->known[__builtin_ctz(left)].is_page)
			pages |= left & -left;
	return pages;
}

static const struct known *known_of(const struct following *f, uint8_t reg)
{
	static const struct known nothing = { .how = UNKNOWN };

	return reg < N_REGISTERS ? &f->known[reg] : &nothing;
}

static struct fathom_external *external_of(const struct following *f, size_t i)
{
	return f->w->external.n ? f->w->external.items + i : NULL;
}

/* Resolves a branch to what a register holds. */
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

/* Resolves a place at a distance from a register. */
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

/* Resolves the replacement of a part of a register: what counts is the whole value after it. */
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

/* Merges the pages at a branch to instruction @to with those that arrive there. */
static fathom_err send(struct following *f, size_t to)
{
	const uint32_t pages = pages_of(f);
	struct arriving *a = f->arriving[to];

	if (!a && pages)
		a = f->arriving[to] = calloc(1, sizeof *a);
	if (!a)
		return pages ? FATHOM_E_MEMORY : FATHOM_OK;
	for (uint32_t left = pages; left; left &= left - 1) {
		const int r = __builtin_ctz(left);

		if (a->known[r].how && a->known[r].value != f->known[r].value)
			a->contradicted |= UINT32_C(1) << r;
		a->known[r] = f->known[r];
	}
	a->some |= pages;
	return FATHOM_OK;
}

/* At label @i, forgets all but pages, and merges the pages that branches bring. */
static fathom_err arrive(struct following *f, size_t i)
{
	struct arriving *a = f->arriving[i];

	forget(f, f->labels[i] & ENTRY ? UINT32_MAX : ~pages_of(f));
	/* A call before the label may not return: pages must come by a branch, too. */
	if (f->called)
		forget(f, a ? ~a->some : UINT32_MAX);
	if (!a)
		return FATHOM_OK;
	FATHOM_TRY(send(f, i));
	memcpy(f->known, a->known, sizeof f->known);
	f->some = a->some;
	forget(f, a->contradicted);
	free(a);
	f->arriving[i] = NULL;
	return FATHOM_OK;
}

/* Updates the registers after an instruction. */
static void leave(struct following *f, size_t i, const struct fathom_code *c)
{
	forget(f, c->writes);
	if (c->flow == FATHOM_FLOW_CALL)
		forget(f, f->w->decoder->clobbered);
	if (c->reg >= N_REGISTERS)
		return;
	if (c->effect == FATHOM_EFFECT_SET ||
	    (c->effect == FATHOM_EFFECT_LOAD && c->kind == FATHOM_REFERENCE_SLOT))
		f->some |= UINT32_C(1) << c->reg;
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
	f->called = c->flow == FATHOM_FLOW_CALL || (f->called && c->padding);
	if (!goes_on(c))
		forget(f, ~UINT32_C(0));
	return FATHOM_OK;
}

fathom_err fathom_disasm_follow(struct fathom_disasm_work *w)
{
	struct following f = { .w = w,
			       .labels = calloc(w->codes.n + 1, 1),
			       .arriving = calloc(w->codes.n + 1, sizeof *f.arriving) };
	fathom_err err = f.labels && f.arriving ? FATHOM_OK : FATHOM_E_MEMORY;
	struct fathom_u64_array addresses = { 0 };

	if (!err && needs_following(w))
		err = find_labels(&f, &addresses);
	for (size_t i = 0; i < w->codes.n && !err; i++)
		err = follow_one(&f, i);
	for (size_t i = 0; i < w->codes.n && f.arriving; i++)
		free(f.arriving[i]);
	fathom_array_free(&addresses);
	free(f.labels);
	free(f.arriving);
	return err;
}
