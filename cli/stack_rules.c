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

/* Returns the svma at which row @i, of @page, begins. */
static uint64_t row_start(const struct fathom_unwind_table *t, uint32_t page, uint32_t i)
{
	return t->base + ((uint64_t)page << 16) + t->low[i];
}

/* Calls @fn for each row that has a rule, in address order. */
static void for_each_row(const struct fathom_unwind_table *t,
			 void (*fn)(void *data, const struct rule_row *row), void *data)
{
	struct rule_row row = { .rule = NULL };

	for (uint32_t page = 0; page < t->n_pages; page++)
		for (uint32_t i = t->pages[page]; i < t->pages[page + 1]; i++) {
			row.high = row_start(t, page, i);
			if (row.rule && row.rule->kind != FATHOM_UNWIND_NONE)
				fn(data, &row);
			row.low = row.high;
			row.rule = &t->rules[t->rule[i]];
		}
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

/* A run of the verb with --rules. */
struct rules_run {
	struct stack *v;
	const struct fathom_unwind_table *table;
};

static void print_row(void *data, const struct rule_row *row)
{
	const struct rules_run *run = data;
	struct out *o = &run->v->out;
	const int word = run->table->machine == 3 ? 4 : 8; /* EM_386 */
	char cfa[64];
	char fp[16] = "";
	char ra[16] = "";

	format_cfa(run->table, row->rule, cfa, sizeof cfa);
	if (has_places(row->rule)) {
		format_fp(row->rule, word, fp, sizeof fp);
		format_ra(row->rule, word, ra, sizeof ra);
	}
	if (run->v->common.json) {
		out_char(o, '{');
		json_address(o, "low", row->low);
		out_char(o, ',');
		json_address(o, "high", row->high);
		out_char(o, ',');
		json_string(o, "cfa", cfa);
		out_char(o, ',');
		json_string(o, "fp", fp);
		out_char(o, ',');
		json_string(o, "ra", ra);
		out_str(o, "}\n");
		return;
	}
	out_hex(o, row->low);
	out_char(o, ' ');
	out_hex(o, row->high);
	out_str(o, "  ");
	out_str(o, cfa);
	if (fp[0]) {
		out_str(o, "  fp ");
		out_str(o, fp);
		out_str(o, "  ra ");
		out_str(o, ra);
	}
	out_char(o, '\n');
}

/* Looks for the row of one address. */
struct row_search {
	uint64_t svma;
	struct rule_row found; /* rule NULL: none */
};

static void take_row(void *data, const struct rule_row *row)
{
	struct row_search *s = data;

	if (s->svma >= row->low && s->svma < row->high)
		s->found = *row;
}

/* Prints the rule of each argument; returns whether one has none. */
static bool print_asked(struct rules_run *run, struct fathom_target *target)
{
	const struct input_rules rules = { .target = target };
	bool lacks = false;

	for (int i = 0; i < run->v->common.n_arguments; i++) {
		const char *text = run->v->common.arguments[i];
		struct row_search s = { .found = { .rule = NULL } };
		struct input in;

		input_parse(&rules, text, strlen(text), &in);
		input_resolve(&rules, &in, 1);
		s.svma = in.address;
		if (!in.reason)
			for_each_row(run->table, take_row, &s);
		if (s.found.rule) {
			print_row(run, &s.found);
			continue;
		}
		lacks = true;
		out_text(&run->v->out, text, strlen(text));
		out_str(&run->v->out, in.reason ? " ?? (no-such-symbol)\n" : " ?? (no-rule)\n");
	}
	return lacks;
}

int stack_print_rules(struct stack *v, struct fathom_target *target)
{
	struct rules_run run = { .v = v };
	struct fathom_errinfo info;
	bool lacks = false;

	if (fathom_unwind_table_make(target, &run.table, &info)) {
		complain("--rules", info.what, "give the path of an ELF file");
		return EXIT_USAGE;
	}
	common_check(target);
	out_init(&v->out);
	if (v->common.n_arguments)
		lacks = print_asked(&run, target);
	else
		for_each_row(run.table, print_row, &run);
	out_flush(&v->out);
	out_deinit(&v->out);
	fathom_unwind_table_free(run.table);
	return common_status(&v->out, lacks);
}
