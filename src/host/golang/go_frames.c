/* SPDX-License-Identifier: MIT */
#include "host/golang/go_frames.h"

#include "safe/dwarf/cfa.h"

/* The stack pointer by the psABI of each machine, and the return address by Go's convention. */
struct fathom_go_convention {
	uint32_t machine;
	uint8_t word;
	uint8_t sp;
	uint8_t return_register;
	bool is_linked; /* calls leave the return address in a register */
};

static const struct fathom_go_convention conventions[] = {
	{ EM_X86_64, 8, 7, 16, false },
	{ EM_386, 4, 4, 8, false },
	{ EM_AARCH64, 8, 31, 30, true },
};

/* Frames beyond this are none of Go's: its stacks are smaller. */
#define MOST_FRAME (INT32_C(1) << 30)

static const struct fathom_go_convention *convention_of(uint32_t machine)
{
	for (size_t i = 0; i < sizeof conventions / sizeof *conventions; i++)
		if (conventions[i].machine == machine)
			return &conventions[i];
	return NULL;
}

fathom_err fathom_go_frames_init(struct fathom_go_frames *g, struct fathom_memory *m,
				 uint32_t machine)
{
	const struct fathom_go_convention *c = convention_of(machine);
	uint8_t bytes[16];
	struct fathom_out initial = { .at = bytes, .cap = sizeof bytes };

	*g = (struct fathom_go_frames){ .part = { .memory = m },
					.scratch = { .memory = m },
					.convention = c };
	if (!c)
		return FATHOM_OK;
	fathom_out_u8(&initial, DW_CFA_def_cfa);
	fathom_out_uleb(&initial, c->sp);
	fathom_out_uleb(&initial, c->is_linked ? 0 : c->word);
	if (!c->is_linked)
		fathom_cfa_saved(&initial, c->return_register, 1);
	g->cie = (struct fathom_cie_form){ .instructions = { bytes, initial.n },
					   .code_alignment = 1,
					   .data_alignment = -(int64_t)c->word,
					   .return_register = c->return_register };
	FATHOM_TRY(fathom_go_part_room(&g->part, 64));
	g->cie_off = fathom_cie_write(&g->part.out, &g->cie);
	g->cie.instructions = (struct fathom_bytes){ NULL, 0 };
	return FATHOM_OK;
}

void fathom_go_frames_deinit(struct fathom_go_frames *g)
{
	fathom_go_part_free(&g->part);
	fathom_go_part_free(&g->scratch);
}

/* Writes the rule of a frame of @size bytes, as the stack pointer was moved. */
static void put_rule(struct fathom_out *o, const struct fathom_go_convention *c, uint32_t size)
{
	fathom_out_u8(o, DW_CFA_def_cfa_offset);
	fathom_out_uleb(o, size + (c->is_linked ? 0 : c->word));
	/* The register is stored at the stack pointer. */
	if (c->is_linked && size)
		fathom_cfa_saved(o, c->return_register, size / c->word);
	else if (c->is_linked)
		fathom_cfa_restore(o, c->return_register);
}

/* Most bytes of a rule and of the way to it. */
#define RULE_SIZE 32

fathom_err fathom_go_frames_add(struct fathom_go_frames *g, const struct fathom_pclntab *t,
				const struct fathom_go_function *f, uint64_t end)
{
	const struct fathom_go_convention *c = g->convention;
	struct fathom_go_runs r = fathom_go_runs_init(t, f, f->sp);
	struct fathom_out *o = &g->scratch.out;
	uint64_t at = f->entry;

	if (!c)
		return FATHOM_OK;
	o->n = 0;
	FATHOM_TRY(fathom_go_part_room(&g->scratch, RULE_SIZE));
	if (f->is_outermost) {
		fathom_out_u8(o, DW_CFA_undefined);
		fathom_out_uleb(o, c->return_register);
	}
	while (r.high < end && fathom_go_runs_next(&r)) {
		if (r.value < 0 || r.value > MOST_FRAME || (uint32_t)r.value % c->word)
			return FATHOM_OK;
		FATHOM_TRY(fathom_go_part_room(&g->scratch, RULE_SIZE));
		fathom_cfa_advance(o, (uint32_t)(r.low - at));
		at = r.low;
		put_rule(o, c, (uint32_t)r.value);
	}
	if (r.high < end)
		return FATHOM_OK;
	FATHOM_TRY(fathom_go_part_room(&g->part, o->n + 64));
	(void)fathom_fde_write(&g->part.out, &g->cie, g->cie_off, f->entry, end - f->entry, 0,
			       (struct fathom_bytes){ o->at, o->n });
	return FATHOM_OK;
}
