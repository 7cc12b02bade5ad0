/* SPDX-License-Identifier: MIT */
#include "host/code/stub_cfi.h"

#include <stdlib.h>

#include "safe/dwarf/dwarf.h"

/* Bytes of the rules of a stub, and of a CIE and an FDE without rules, at most. */
#define MOST 96

void fathom_stub_cfi_init(struct fathom_stub_cfi *c, const struct fathom_stub_registers *registers,
			  uint16_t pc, size_t n)
{
	const size_t cap = MOST * (n + 1);

	*c = (struct fathom_stub_cfi){ .registers = registers, .pc = pc };
	c->bytes = malloc(2 * cap + MOST);
	if (!c->bytes)
		return;
	c->rules = (struct fathom_out){ .at = c->bytes, .cap = cap };
	c->frame = (struct fathom_out){ .at = c->bytes + cap, .cap = cap + MOST };
}

void fathom_stub_cfi_deinit(struct fathom_stub_cfi *c)
{
	free(c->bytes);
}

/* libgcc takes a column that is no register's from expressions only. */
static void put_expression(struct fathom_stub_cfi *c, uint64_t size)
{
	fathom_out_u8(&c->rules, DW_CFA_val_expression);
	fathom_out_uleb(&c->rules, c->pc);
	fathom_out_uleb(&c->rules, size);
}

void fathom_stub_cfi_caller(struct fathom_stub_cfi *c, uint64_t avma)
{
	put_expression(c, 1 + sizeof avma);
	fathom_out_u8(&c->rules, DW_OP_addr);
	fathom_out_u64(&c->rules, avma);
}

void fathom_stub_cfi_called(struct fathom_stub_cfi *c)
{
	const struct fathom_stub_registers *r = c->registers;

	if (c->pc == r->link)
		return;
	put_expression(c, r->link ? 2 : 3);
	fathom_out_u8(&c->rules, (uint8_t)(DW_OP_breg0 + (r->link ? r->link : r->sp)));
	fathom_out_sleb(&c->rules, 0);
	if (r->link)
		return;
	fathom_out_u8(&c->rules, DW_OP_deref);
	fathom_stub_cfi_frame(c, sizeof(uint64_t));
}

void fathom_stub_cfi_frame(struct fathom_stub_cfi *c, uint32_t bytes)
{
	fathom_out_u8(&c->rules, DW_CFA_def_cfa_offset);
	fathom_out_uleb(&c->rules, bytes);
	for (uint32_t i = 0; i < c->registers->n_saved; i++) {
		if (bytes)
			fathom_cfa_saved(&c->rules, c->registers->saved[i], bytes / 8 - i);
		else
			fathom_cfa_restore(&c->rules, c->registers->saved[i]);
	}
}

void fathom_stub_cfi_advance(struct fathom_stub_cfi *c, size_t size)
{
	fathom_cfa_advance(&c->rules, (uint32_t)size);
}

struct fathom_jit_unwind fathom_stub_cfi_end(struct fathom_stub_cfi *c, uint64_t avma,
					     uint64_t size)
{
	const uint8_t initial[] = { DW_CFA_def_cfa, (uint8_t)c->registers->sp, 0 };
	const struct fathom_cie_form cie = {
		.instructions = { initial, sizeof initial },
		.code_alignment = 1,
		.data_alignment = -8,
		.return_register = c->pc,
	};
	const size_t cie_off = fathom_cie_write(&c->frame, &cie);

	(void)fathom_fde_write(&c->frame, &cie, cie_off, avma, size, 0,
			       (struct fathom_bytes){ c->bytes, c->bytes ? c->rules.n : 0 });
	return (struct fathom_jit_unwind){
		.size = sizeof(struct fathom_jit_unwind),
		.kind = c->bytes ? FATHOM_JIT_EH_FRAME : FATHOM_JIT_NONE,
		.eh_frame = c->frame.at,
		.eh_frame_size = c->frame.n,
		.eh_frame_code = avma,
	};
}
