/* SPDX-License-Identifier: MIT */
#include "safe/unwind/row.h"

#include <elf.h>

#include "safe/dwarf/cfa.h"

/* Returns @value, a factored offset, in bytes. */
static int64_t factored(const struct fathom_row_reader *r, uint64_t value)
{
	return (int64_t)(value * (uint64_t)r->fde->cie->data_alignment);
}

static int64_t read_factored(struct fathom_row_reader *r)
{
	return factored(r, cur_uleb(&r->c));
}

static int64_t read_factored_signed(struct fathom_row_reader *r)
{
	return factored(r, (uint64_t)cur_sleb(&r->c));
}

static void set_rule(struct fathom_row_reader *r, uint64_t number, struct fathom_rule rule)
{
	if (number >= r->arch->n)
		return;
	r->now.rule[number] = rule;
	r->now.stated |= UINT64_C(1) << number;
}

static void set_kind(struct fathom_row_reader *r, uint64_t number, uint8_t kind)
{
	set_rule(r, number, (struct fathom_rule){ .kind = kind });
}

static void set_offset(struct fathom_row_reader *r, uint64_t number, uint8_t kind, int64_t offset)
{
	set_rule(r, number, (struct fathom_rule){ .kind = kind, .offset = offset });
}

/* Sets a register to be another one; one that the machine does not have is lost with it. */
static void set_register(struct fathom_row_reader *r, uint64_t number, uint64_t other)
{
	if (other < r->arch->n)
		set_rule(r, number,
			 (struct fathom_rule){ .kind = FATHOM_RULE_REGISTER,
					       .number = (uint8_t)other });
	else
		set_kind(r, number, FATHOM_RULE_UNDEFINED);
}

/* Reads an expression as the rule of @kind. */
static struct fathom_rule read_expression(struct fathom_row_reader *r, uint8_t kind)
{
	const uint64_t size = cur_uleb(&r->c);
	const uint8_t *p = cur_take(&r->c, size);

	if (size > UINT32_MAX)
		cur_fail(&r->c);
	return (struct fathom_rule){ .kind = kind, .size = (uint32_t)size, .expression = p };
}

static fathom_err set_cfa(struct fathom_row_reader *r, uint64_t number, int64_t offset)
{
	if (number >= r->arch->n)
		return FATHOM_E_UNSUPPORTED;
	r->now.cfa = (struct fathom_rule){ .kind = FATHOM_RULE_REGISTER,
					   .number = (uint8_t)number,
					   .offset = offset };
	return FATHOM_OK;
}

/* Changes the CFA's register or offset. If it is no register + offset, no rule is left. */
static fathom_err set_cfa_register(struct fathom_row_reader *r, uint64_t number)
{
	if (r->now.cfa.kind == FATHOM_RULE_REGISTER)
		return set_cfa(r, number, r->now.cfa.offset);
	r->now.cfa.kind = FATHOM_RULE_UNSPECIFIED;
	return FATHOM_OK;
}

static void set_cfa_offset(struct fathom_row_reader *r, int64_t offset)
{
	if (r->now.cfa.kind == FATHOM_RULE_REGISTER)
		r->now.cfa.offset = offset;
	else
		r->now.cfa.kind = FATHOM_RULE_UNSPECIFIED;
}

/* Moves on to @svma, which is not after the FDE's end. CIEs have no place to move from. */
static fathom_err move_to(struct fathom_row_reader *r, uint64_t svma)
{
	if (!r->n_states || svma < r->location || svma > r->fde->high)
		return FATHOM_E_CORRUPT;
	r->location = svma;
	return FATHOM_OK;
}

static fathom_err advance(struct fathom_row_reader *r, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, r->fde->cie->code_alignment, &bytes) ||
	    bytes > r->fde->high - r->location)
		return FATHOM_E_CORRUPT;
	return move_to(r, r->location + bytes);
}

static fathom_err set_location(struct fathom_row_reader *r)
{
	uint64_t svma;

	FATHOM_TRY(fathom_cie_pointer(r->fde->cie, &r->c, &svma));
	return move_to(r, svma);
}

/* Removes the lowest register from @left, which is not empty, and returns its number. */
static unsigned next_register(uint64_t *left)
{
	const unsigned number = (unsigned)__builtin_ctzll(*left);

	*left &= *left - 1;
	return number;
}

static fathom_err push_state(struct fathom_row_reader *r)
{
	struct fathom_row_state *s = &r->state[r->n_states];

	if (r->n_states == FATHOM_ROW_STATES)
		return FATHOM_E_LIMIT;
	*s = (struct fathom_row_state){ .cfa = r->now.cfa,
					.stated = r->now.stated,
					.first = r->n_pool,
					.is_ra_signed = r->now.is_ra_signed };
	for (uint64_t left = s->stated; left;) {
		if (r->n_pool == FATHOM_ROW_SAVED_RULES)
			return FATHOM_E_LIMIT;
		r->pool[r->n_pool++] = r->now.rule[next_register(&left)];
	}
	r->n_states++;
	return FATHOM_OK;
}

/* Takes the state that was remembered last; the CIE's stays. */
static fathom_err pop_state(struct fathom_row_reader *r)
{
	const struct fathom_row_state *s;
	const struct fathom_rule *rule;

	if (r->n_states < 2)
		return FATHOM_E_CORRUPT;
	s = &r->state[--r->n_states];
	r->now.cfa = s->cfa;
	r->now.stated = s->stated;
	r->now.is_ra_signed = s->is_ra_signed;
	r->n_pool = s->first;
	rule = &r->pool[s->first];
	for (uint64_t left = s->stated; left;)
		r->now.rule[next_register(&left)] = *rule++;
	return FATHOM_OK;
}

/* Gives register @number the rule that it has after the CIE's instructions. */
static fathom_err restore(struct fathom_row_reader *r, uint64_t number)
{
	const struct fathom_rule *rule = r->pool;
	uint64_t bit;

	if (!r->n_states)
		return FATHOM_E_CORRUPT;
	if (number >= r->arch->n)
		return FATHOM_OK;
	bit = UINT64_C(1) << number;
	if (!(r->state[0].stated & bit)) {
		r->now.stated &= ~bit;
		return FATHOM_OK;
	}
	for (uint64_t before = r->state[0].stated & (bit - 1); before; rule++)
		(void)next_register(&before);
	set_rule(r, number, *rule);
	return FATHOM_OK;
}

static fathom_err negate_ra_state(struct fathom_row_reader *r)
{
	if (r->arch->machine != EM_AARCH64)
		return FATHOM_E_UNSUPPORTED;
	r->now.is_ra_signed = !r->now.is_ra_signed;
	return FATHOM_OK;
}

/* Runs the instruction @op, which has no operand in itself. */
static fathom_err run_extended(struct fathom_row_reader *r, uint8_t op)
{
	struct fathom_cursor *c = &r->c;
	uint64_t n;

	switch (op) {
	case DW_CFA_nop:
		return FATHOM_OK;
	case DW_CFA_set_loc:
		return set_location(r);
	case DW_CFA_advance_loc1:
		return advance(r, cur_u8(c));
	case DW_CFA_advance_loc2:
		return advance(r, cur_u16(c));
	case DW_CFA_advance_loc4:
		return advance(r, cur_u32(c));
	case DW_CFA_MIPS_advance_loc8:
		return advance(r, cur_u64(c));
	case DW_CFA_remember_state:
		return r->n_states ? push_state(r) : FATHOM_E_CORRUPT;
	case DW_CFA_restore_state:
		return pop_state(r);
	case DW_CFA_restore_extended:
		return restore(r, cur_uleb(c));
	case DW_CFA_def_cfa:
		n = cur_uleb(c);
		return set_cfa(r, n, (int64_t)cur_uleb(c));
	case DW_CFA_def_cfa_sf:
		n = cur_uleb(c);
		return set_cfa(r, n, read_factored_signed(r));
	case DW_CFA_def_cfa_register:
		return set_cfa_register(r, cur_uleb(c));
	case DW_CFA_def_cfa_offset:
		set_cfa_offset(r, (int64_t)cur_uleb(c));
		return FATHOM_OK;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_offset(r, read_factored_signed(r));
		return FATHOM_OK;
	case DW_CFA_def_cfa_expression:
		r->now.cfa = read_expression(r, FATHOM_RULE_EXPRESSION);
		return FATHOM_OK;
	case DW_CFA_GNU_args_size: /* bytes of arguments that landing pads drop */
		cur_skip_leb(c);
		return FATHOM_OK;
	case DW_CFA_AARCH64_negate_ra_state:
	case DW_CFA_AARCH64_negate_ra_state_with_pc:
		return negate_ra_state(r);
	default:
		break;
	}
	n = cur_uleb(c); /* the others are rules of register n */
	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(r, n, FATHOM_RULE_AT_OFFSET, read_factored(r));
		return FATHOM_OK;
	case DW_CFA_offset_extended_sf:
		set_offset(r, n, FATHOM_RULE_AT_OFFSET, read_factored_signed(r));
		return FATHOM_OK;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(r, n, FATHOM_RULE_AT_OFFSET, factored(r, -cur_uleb(c)));
		return FATHOM_OK;
	case DW_CFA_val_offset:
		set_offset(r, n, FATHOM_RULE_OFFSET, read_factored(r));
		return FATHOM_OK;
	case DW_CFA_val_offset_sf:
		set_offset(r, n, FATHOM_RULE_OFFSET, read_factored_signed(r));
		return FATHOM_OK;
	case DW_CFA_undefined:
		set_kind(r, n, FATHOM_RULE_UNDEFINED);
		return FATHOM_OK;
	case DW_CFA_same_value:
		set_kind(r, n, FATHOM_RULE_SAME);
		return FATHOM_OK;
	case DW_CFA_register:
		set_register(r, n, cur_uleb(c));
		return FATHOM_OK;
	case DW_CFA_expression:
		set_rule(r, n, read_expression(r, FATHOM_RULE_AT_EXPRESSION));
		return FATHOM_OK;
	case DW_CFA_val_expression:
		set_rule(r, n, read_expression(r, FATHOM_RULE_EXPRESSION));
		return FATHOM_OK;
	default:
		return FATHOM_E_UNSUPPORTED;
	}
}

/* Runs the next instruction. One that is cut off is damage, whatever its zeros would mean. */
static fathom_err run(struct fathom_row_reader *r)
{
	const uint8_t op = cur_u8(&r->c);
	const uint8_t low = op & 0x3f;
	fathom_err err = FATHOM_OK;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		err = advance(r, low);
		break;
	case DW_CFA_offset:
		set_offset(r, low, FATHOM_RULE_AT_OFFSET, read_factored(r));
		break;
	case DW_CFA_restore:
		err = restore(r, low);
		break;
	default:
		err = run_extended(r, op);
	}
	return cur_ok(&r->c) ? err : FATHOM_E_CORRUPT;
}

static fathom_err run_cie(struct fathom_row_reader *r)
{
	const struct fathom_cie *cie = r->fde->cie;

	/* Where instructions are is known only if the augmentation is, or states its size. */
	if ((cie->is_unknown && !cie->has_data) || cie->return_register >= r->arch->n)
		return FATHOM_E_UNSUPPORTED;
	if (r->fde->is_damaged)
		return FATHOM_E_CORRUPT;
	r->now.return_register = (uint8_t)cie->return_register;
	r->c = cur_init(cie->instructions, cie->cfi.swap);
	while (cur_left(&r->c))
		FATHOM_TRY(run(r));
	return push_state(r);
}

fathom_err fathom_row_reader_init(struct fathom_row_reader *r, const struct fathom_fde *fde,
				  const struct fathom_unwind_arch *arch)
{
	r->fde = fde;
	r->arch = arch;
	r->location = fde->low;
	r->now.cfa = (struct fathom_rule){ .kind = FATHOM_RULE_UNSPECIFIED };
	r->now.stated = 0;
	r->now.is_ra_signed = false;
	r->now.is_signal_frame = fde->cie->is_signal_frame;
	r->n_states = 0;
	r->n_pool = 0;
	r->err = run_cie(r);
	r->c = cur_init(fde->instructions, fde->cie->cfi.swap);
	return r->err;
}

fathom_err fathom_row_next(struct fathom_row_reader *r)
{
	if (r->err)
		return r->err;
	if (r->location >= r->fde->high)
		return FATHOM_END;
	r->now.low = r->location;
	while (cur_left(&r->c)) {
		r->err = run(r);
		if (r->err)
			return r->err;
		if (r->location != r->now.low) {
			r->now.high = r->location;
			return FATHOM_OK;
		}
	}
	r->now.high = r->location = r->fde->high;
	return FATHOM_OK;
}

fathom_err fathom_row_find(struct fathom_row_reader *r, uint64_t svma)
{
	fathom_err err;

	if (svma < r->location)
		return FATHOM_END;
	do
		err = fathom_row_next(r);
	while (!err && svma >= r->now.high);
	return err;
}
