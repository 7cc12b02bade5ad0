/* SPDX-License-Identifier: MIT */
/* fathom stack --rules: how the callers of the code of a file are found. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/input.h"
#include "cli/json.h"
#include "cli/stack.h"

/* One row: its code and its rule. */
struct rule_row {
	uint64_t low;
	uint64_t high;
	const struct fathom_unwind_rule *rule;
};

/* Returns the svma at which row @i begins. */
static uint64_t row_start(const struct fathom_unwind_table *t, uint32_t i)
{
	uint32_t page = 0;
	uint32_t end = t->n_pages - 1;

	while (page < end) {
		const uint32_t middle = page + (end - page) / 2;

		if (t->pages[middle + 1] > i)
			end = middle;
		else
			page = middle + 1;
	}
	return t->base + ((uint64_t)page << 16) + t->low[i];
}

/* Gets row @i; returns false if it has no rule, as the last, which ends nowhere. */
static bool get_row(const struct fathom_unwind_table *t, uint32_t i, struct rule_row *ret)
{
	const struct fathom_unwind_rule *rule = &t->rules[t->rule[i]];

	if (i + 1 == t->n_rows || rule->kind == FATHOM_UNWIND_NONE)
		return false;
	*ret = (struct rule_row){ row_start(t, i), row_start(t, i + 1), rule };
	return true;
}

/* Finds the row that @svma is in; returns false if no rule is known for it. */
static bool find_row(const struct fathom_unwind_table *t, uint64_t svma, struct rule_row *ret)
{
	uint32_t begin = 0;
	uint32_t end = t->n_rows; /* rows from here on begin above @svma */

	while (begin < end) {
		const uint32_t middle = begin + (end - begin) / 2;

		if (row_start(t, middle) <= svma)
			begin = middle + 1;
		else
			end = middle;
	}
	return end && get_row(t, end - 1, ret);
}

/* Writes how the CFA is found into @text. */
static void format_cfa(const struct fathom_unwind_table *t, const struct fathom_unwind_rule *r,
		       char *text, size_t cap)
{
	const char *name = fathom_register_name(t->machine, r->number);

	switch (r->kind) {
	case FATHOM_UNWIND_SP:
	case FATHOM_UNWIND_FP:
	case FATHOM_UNWIND_REGISTER:
		(void)snprintf(text, cap, "%s%+d", name ? name : "?", r->cfa_offset);
		break;
	case FATHOM_UNWIND_AT_FP:
		(void)snprintf(text, cap, "*(fp%+d)", r->cfa_offset);
		break;
	case FATHOM_UNWIND_PLT:
		(void)snprintf(text, cap, "rsp%+d, from byte %u of 16 on %+d", r->cfa_offset,
			       r->number, r->cfa_offset + 8);
		break;
	case FATHOM_UNWIND_SIGNAL:
		(void)snprintf(text, cap, "signal");
		break;
	case FATHOM_UNWIND_END:
		(void)snprintf(text, cap, "end");
		break;
	case FATHOM_UNWIND_NONE:
		(void)snprintf(text, cap, "none");
		break;
	default:
		(void)snprintf(text, cap, "other");
	}
}

/* Returns whether the rule says where the return address and the frame pointer are. */
static bool has_places(const struct fathom_unwind_rule *r)
{
	return (r->kind >= FATHOM_UNWIND_SP && r->kind <= FATHOM_UNWIND_PLT);
}

static void format_fp(const struct fathom_unwind_rule *r, int word, char *text, size_t cap)
{
	if (r->flags & FATHOM_UNWIND_FP_LOST)
		(void)snprintf(text, cap, "lost");
	else if (r->flags & FATHOM_UNWIND_FP_SAVED)
		(void)snprintf(text, cap, "%s%+d", r->flags & FATHOM_UNWIND_FP_BY_FP ? "fp" : "c",
			       r->fp_offset * word);
	else
		(void)snprintf(text, cap, "same");
}

static void format_ra(const struct fathom_unwind_rule *r, int word, char *text, size_t cap)
{
	if (r->ra_offset)
		(void)snprintf(text, cap, "c%+d", r->ra_offset * word);
	else
		(void)snprintf(text, cap, "link");
}

/* A row as texts; "" where the rule has nothing to say. */
struct row_texts {
	char cfa[64];
	char fp[16];
	char ra[16];
};

static struct row_texts format_row(const struct fathom_unwind_table *t, const struct rule_row *row)
{
	const int word = t->machine == 3 ? 4 : 8; /* EM_386 */
	struct row_texts texts = { .fp = "" };

	format_cfa(t, row->rule, texts.cfa, sizeof texts.cfa);
	if (has_places(row->rule)) {
		format_fp(row->rule, word, texts.fp, sizeof texts.fp);
		format_ra(row->rule, word, texts.ra, sizeof texts.ra);
	}
	return texts;
}

static void print_row_text(struct out *o, const struct rule_row *row, const struct row_texts *texts)
{
	out_hex(o, row->low);
	out_char(o, ' ');
	out_hex(o, row->high);
	out_str(o, "  ");
	out_str(o, texts->cfa);
	if (texts->fp[0]) {
		out_str(o, "  fp ");
		out_str(o, texts->fp);
		out_str(o, "  ra ");
		out_str(o, texts->ra);
	}
	out_char(o, '\n');
}

/* Prints a row, or why there is none: @reason is NULL if there is one. @input: NULL: all rows. */
static void print_row_json(struct out *o, const char *input, const char *reason,
			   const struct rule_row *row, const struct row_texts *texts)
{
	out_char(o, '{');
	if (input) {
		json_key(o, "input");
		out_json(o, input, strlen(input));
		out_char(o, ',');
	}
	json_address_or_null(o, "low", !reason, row->low);
	out_char(o, ',');
	json_address_or_null(o, "high", !reason, row->high);
	out_char(o, ',');
	json_string(o, "cfa", texts->cfa);
	out_char(o, ',');
	json_string(o, "fp", texts->fp);
	out_char(o, ',');
	json_string(o, "ra", texts->ra);
	if (input) {
		out_char(o, ',');
		json_string(o, "reason", reason);
	}
	out_str(o, "}\n");
}

static void print_row(struct stack *v, const struct fathom_unwind_table *t, const char *input,
		      const struct rule_row *row)
{
	const struct row_texts texts = format_row(t, row);

	if (v->common.json)
		print_row_json(&v->out, input, NULL, row, &texts);
	else
		print_row_text(&v->out, row, &texts);
}

/* Prints that there is no rule for @input. */
static void print_lacking(struct stack *v, const char *input, const char *reason)
{
	const struct rule_row row = { .rule = NULL };
	const struct row_texts texts = { .cfa = "" };

	if (v->common.json) {
		print_row_json(&v->out, input, reason, &row, &texts);
		return;
	}
	out_text(&v->out, input, strlen(input));
	out_str(&v->out, " ?? (");
	out_str(&v->out, reason);
	out_str(&v->out, ")\n");
}

/* Prints the rule of each argument; returns whether one has none. */
static bool print_asked(struct stack *v, const struct fathom_unwind_table *t,
			struct fathom_target *target)
{
	const struct input_rules rules = { .target = target };
	bool lacks = false;

	for (int i = 0; i < v->common.n_arguments; i++) {
		const char *text = v->common.arguments[i];
		struct rule_row row;
		struct input in;

		input_parse(&rules, text, strlen(text), &in);
		input_resolve(&rules, &in, 1);
		if (!in.reason && find_row(t, in.address, &row)) {
			print_row(v, t, text, &row);
			continue;
		}
		lacks = true;
		print_lacking(v, text,
			      in.reason ? fathom_reason_name((enum fathom_reason)in.reason)
					: "no-rule");
	}
	return lacks;
}

static void print_all(struct stack *v, const struct fathom_unwind_table *t)
{
	struct rule_row row;

	for (uint32_t i = 0; i < t->n_rows; i++)
		if (get_row(t, i, &row))
			print_row(v, t, NULL, &row);
}

int stack_print_rules(struct stack *v, struct fathom_target *target)
{
	const struct fathom_unwind_table *table;
	struct fathom_errinfo info;
	bool lacks = false;

	if (fathom_unwind_table_make(target, &table, &info)) {
		complain("--rules", info.what, "give the path of an ELF file");
		return EXIT_USAGE;
	}
	common_check(target);
	out_init(&v->out);
	if (v->common.n_arguments)
		lacks = print_asked(v, table, target);
	else
		print_all(v, table);
	out_flush(&v->out);
	out_deinit(&v->out);
	fathom_unwind_table_free(table);
	return common_status(&v->out, lacks);
}
