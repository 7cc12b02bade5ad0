/* SPDX-License-Identifier: MIT */
/*
 * Finds the references of instructions in relocatable files. The relocations state them: the linker
 * has not yet written them into the instructions. An instruction with a relocation that is not
 * understood refers to nothing.
 */
#include <stdlib.h>

#include "host/disasm/work.h"

static void refer_to_nothing(struct fathom_code *c)
{
	c->kind = FATHOM_REFERENCE_NONE;
	c->effect = FATHOM_EFFECT_NONE;
	c->base = FATHOM_NO_REGISTER;
}

/* Makes @c refer to @address or, if that is not known, to the symbol's name. */
static void refer(struct fathom_code *c, struct fathom_external *e, const struct fathom_fixup *f,
		  uint64_t distance)
{
	const uint64_t offset = f->addend + distance;

	if (!f->defined && !f->name.data) {
		refer_to_nothing(c);
		return;
	}
	c->base = FATHOM_NO_REGISTER;
	c->value = f->value + offset;
	if (!f->defined) {
		*e = (struct fathom_external){ f->name, offset };
		c->value = 0;
		c->relative = false;
		if (c->effect != FATHOM_EFFECT_LOAD && c->effect != FATHOM_EFFECT_SET)
			c->effect = FATHOM_EFFECT_NONE;
	}
}

/* Makes @c refer to a slot that the linker will make and fill with the symbol's address. */
static void refer_to_slot_of(struct fathom_code *c, struct fathom_external *e,
			     const struct fathom_fixup *f)
{
	if (!f->name.data) {
		refer_to_nothing(c);
		return;
	}
	c->base = FATHOM_NO_REGISTER;
	c->kind = FATHOM_REFERENCE_SLOT;
	c->value = 0;
	c->relative = false;
	*e = (struct fathom_external){ f->name, 0 };
}

static void apply(struct fathom_code *c, struct fathom_external *e, const struct fathom_fixup *f)
{
	const uint64_t end = c->address + c->size;

	switch (f->kind) {
	case FATHOM_FIXUP_PCREL:
		/*
		 * The operand counts from the end of the instruction, the relocation from itself.
		 */
		refer(c, e, f, end - f->svma);
		break;
	case FATHOM_FIXUP_BRANCH:
	case FATHOM_FIXUP_ADDRESS:
		refer(c, e, f, 0);
		break;
	case FATHOM_FIXUP_LOW:
		if (c->effect == FATHOM_EFFECT_ADD) {
			c->kind = FATHOM_REFERENCE_ADDRESS;
			c->effect = FATHOM_EFFECT_SET;
		}
		c->relative = true;
		refer(c, e, f, 0);
		break;
	case FATHOM_FIXUP_GOT:
	case FATHOM_FIXUP_GOT_LOW:
		refer_to_slot_of(c, e, f);
		break;
	case FATHOM_FIXUP_PAGE:
		c->kind = FATHOM_REFERENCE_ADDRESS;
		c->effect = FATHOM_EFFECT_NONE;
		refer(c, e, f, 0);
		break;
	case FATHOM_FIXUP_GOT_PAGE:
		c->kind = FATHOM_REFERENCE_ADDRESS;
		c->effect = FATHOM_EFFECT_NONE;
		*e = (struct fathom_external){ f->name, 0 };
		break;
	default:
		refer_to_nothing(c);
		break;
	}
}

/* Returns whether @c needs no relocation: constants and full addresses do, if they mean a place. */
static bool may_stand(const struct fathom_code *c)
{
	return c->relative || c->kind == FATHOM_REFERENCE_BRANCH || c->base != FATHOM_NO_REGISTER;
}

/* An instruction may have two relocations: one for memory, one for a constant. */
void fathom_disasm_relocate_one(const struct fathom_disasm_work *w, struct fathom_code *c,
				struct fathom_external *e)
{
	struct fathom_fixup f;
	size_t at = 0;
	bool any = false;
	bool constant = false;

	while (fathom_fixups_find(w->fixups, c->address, c->address + c->size, &at, &f)) {
		at++;
		if (c->has_constant && f.kind == FATHOM_FIXUP_ADDRESS && f.defined) {
			c->constant = f.value + f.addend;
			constant = true;
		} else if (!any) {
			apply(c, e, &f);
			any = true;
		}
	}
	c->has_constant = constant;
	if (!any && c->kind && !may_stand(c))
		refer_to_nothing(c);
}

fathom_err fathom_disasm_relocate(struct fathom_disasm_work *w)
{
	struct fathom_external *external;

	if (!w->relocatable)
		return FATHOM_OK;
	if (!fathom_array_room(&w->external, w->codes.n))
		return FATHOM_E_MEMORY;
	w->external.n = w->codes.n;
	external = w->external.items;
	memset(external, 0, w->codes.n * sizeof *external);
	for (size_t i = 0; i < w->codes.n; i++)
		fathom_disasm_relocate_one(w, fathom_work_code(w, i), &external[i]);
	return FATHOM_OK;
}
