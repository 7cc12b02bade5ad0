/* SPDX-License-Identifier: MIT */
#include "safe/unwind/rules.h"

#include "safe/base/sort.h"

/* Operations of the expressions that are recognized (DWARF 5, 2.5.1). */
enum { OP_DEREF = 0x06, OP_LIT0 = 0x30, OP_BREG0 = 0x70 };

/* The largest CFA offset of a rule: it fits 23 bits with its sign. */
#define MAX_CFA_OFFSET (INT32_C(1) << 22)

static const struct fathom_unwind_rule other = { .kind = FATHOM_UNWIND_OTHER };

/* Stores @offset in words; returns false if it does not fit. */
static bool to_words(int64_t offset, uint8_t word, int16_t *ret)
{
	if (offset % word || offset / word > INT16_MAX || offset / word < INT16_MIN)
		return false;
	*ret = (int16_t)(offset / word);
	return true;
}

static bool set_offset(struct fathom_unwind_rule *rule, int64_t offset)
{
	if (offset >= MAX_CFA_OFFSET || offset < -MAX_CFA_OFFSET)
		return false;
	rule->cfa_offset = (int32_t)offset;
	return true;
}

/* Reads a "register + offset" of an expression; returns false if something else comes. */
static bool read_breg(struct fathom_cursor *c, uint8_t number, int64_t *ret)
{
	if (cur_u8(c) != OP_BREG0 + number)
		return false;
	*ret = cur_sleb(c);
	return cur_ok(c);
}

/* Reads "register + offset" alone. */
static bool is_breg(const struct fathom_rule *r, uint8_t number, int64_t *ret)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ r->expression, r->size }, false);

	return read_breg(&c, number, ret) && !cur_left(&c);
}

/* Reads what gcc writes for stacks that it aligns: the CFA is saved at frame pointer + offset. */
static bool is_saved_cfa(const struct fathom_rule *r, uint8_t fp, int64_t *ret)
{
	struct fathom_cursor c = cur_init((struct fathom_bytes){ r->expression, r->size }, false);

	return read_breg(&c, fp, ret) && cur_u8(&c) == OP_DEREF && cur_ok(&c) && !cur_left(&c);
}

/*
 * Reads what linkers write for the PLT of x86-64: rsp + 8 + ((rip & 15) >= THRESHOLD) << 3.
 */
static bool is_plt(const struct fathom_rule *r, struct fathom_unwind_rule *ret)
{
	static const uint8_t masked[] = { OP_BREG0 + 16, 0, OP_LIT0 + 15, 0x1a /* and */ };
	static const uint8_t added[] = { 0x2a /* ge */, OP_LIT0 + 3, 0x24 /* shl */,
					 0x22 /* plus */ };
	struct fathom_cursor c = cur_init((struct fathom_bytes){ r->expression, r->size }, false);
	const uint8_t *p;
	int64_t offset;

	if (!read_breg(&c, 7, &offset) || !set_offset(ret, offset))
		return false;
	p = cur_take(&c, sizeof masked);
	if (!p || memcmp(p, masked, sizeof masked) != 0)
		return false;
	ret->number = (uint8_t)(cur_u8(&c) - OP_LIT0);
	p = cur_take(&c, sizeof added);
	return p && memcmp(p, added, sizeof added) == 0 && !cur_left(&c) && ret->number < 16;
}

/* Sets how the CFA is found; returns false if no rule can say it. */
static bool set_cfa(const struct fathom_row *row, const struct fathom_unwind_arch *arch,
		    struct fathom_unwind_rule *ret)
{
	int64_t offset;

	if (row->cfa.kind == FATHOM_RULE_REGISTER) {
		ret->number = row->cfa.number;
		ret->kind = ret->number == arch->sp   ? FATHOM_UNWIND_SP
			    : ret->number == arch->fp ? FATHOM_UNWIND_FP
						      : FATHOM_UNWIND_REGISTER;
		return set_offset(ret, row->cfa.offset);
	}
	if (row->cfa.kind != FATHOM_RULE_EXPRESSION)
		return false;
	if (is_saved_cfa(&row->cfa, arch->fp, &offset)) {
		ret->kind = FATHOM_UNWIND_AT_FP;
		return set_offset(ret, offset);
	}
	ret->kind = FATHOM_UNWIND_PLT;
	return arch->word == 8 && arch->pc == 16 && is_plt(&row->cfa, ret);
}

static bool set_fp(struct fathom_rule fp, const struct fathom_unwind_arch *arch,
		   struct fathom_unwind_rule *ret)
{
	int64_t offset;

	switch (fp.kind) {
	case FATHOM_RULE_UNSPECIFIED:
	case FATHOM_RULE_SAME:
		return true;
	case FATHOM_RULE_AT_OFFSET:
		ret->flags |= FATHOM_UNWIND_FP_SAVED;
		return to_words(fp.offset, arch->word, &ret->fp_offset);
	case FATHOM_RULE_AT_EXPRESSION:
		ret->flags |= FATHOM_UNWIND_FP_SAVED | FATHOM_UNWIND_FP_BY_FP;
		return is_breg(&fp, arch->fp, &offset) &&
		       to_words(offset, arch->word, &ret->fp_offset);
	case FATHOM_RULE_UNDEFINED:
		ret->flags |= FATHOM_UNWIND_FP_LOST;
		return true;
	default:
		return false;
	}
}

/* Sets where the return address is; returns false if no rule can say it. */
static bool set_ra(const struct fathom_row *row, const struct fathom_unwind_arch *arch,
		   struct fathom_unwind_rule *ret)
{
	const struct fathom_rule ra = fathom_row_rule(row, row->return_register);

	if (ra.kind == FATHOM_RULE_AT_OFFSET && ra.offset)
		return to_words(ra.offset, arch->word, &ret->ra_offset);
	return (ra.kind == FATHOM_RULE_UNSPECIFIED || ra.kind == FATHOM_RULE_SAME) &&
	       row->return_register == arch->link;
}

struct fathom_unwind_rule fathom_rule_of_row(const struct fathom_row *row,
					     const struct fathom_unwind_arch *arch, bool is_signal)
{
	const struct fathom_rule sp = fathom_row_rule(row, arch->sp);
	struct fathom_unwind_rule rule = { 0 };

	if (is_signal)
		return (struct fathom_unwind_rule){ .kind = FATHOM_UNWIND_SIGNAL };
	if (row->cfa.kind == FATHOM_RULE_UNSPECIFIED)
		return rule;
	if (fathom_row_rule(row, row->return_register).kind == FATHOM_RULE_UNDEFINED)
		return (struct fathom_unwind_rule){ .kind = FATHOM_UNWIND_END };
	if (sp.kind != FATHOM_RULE_UNSPECIFIED && (sp.kind != FATHOM_RULE_OFFSET || sp.offset))
		return other;
	if (row->is_ra_signed)
		rule.flags |= FATHOM_UNWIND_RA_SIGNED;
	return set_cfa(row, arch, &rule) && set_fp(fathom_row_rule(row, arch->fp), arch, &rule) &&
			       set_ra(row, arch, &rule)
		       ? rule
		       : other;
}

const struct fathom_unwind_rule *fathom_unwind_table_find(const struct fathom_unwind_table *table,
							  uint64_t svma)
{
	const uint64_t page = (svma - table->base) >> 16;
	const uint16_t low = (uint16_t)svma;
	uint32_t first;
	uint32_t n;

	if (svma < table->base || page >= table->n_pages)
		return &table->rules[0];
	first = table->pages[page];
	n = first + (uint32_t)FATHOM_BISECT(table->pages[page + 1] - first, i,
					    table->low[first + i] <= low);
	return &table->rules[n ? table->rule[n - 1] : 0];
}
