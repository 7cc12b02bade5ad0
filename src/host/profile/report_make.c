/* SPDX-License-Identifier: MIT */
/*
 * Reports. One pass over the samples adds up what each distinct stack weighs; all that follows
 * works on these. Rows are summed up along the tree of what calls what, whichever tree is shown.
 */
#include <stdlib.h>
#include <string.h>

#include "host/base/option_struct.h"
#include "host/profile/report_tree.h"
#include "safe/base/error.h"

struct fathom_report {
	struct fathom_report_rows rows;
	size_t n_listed; /* rows that are by the key; the others come after them */
	struct {
		FATHOM_ARRAY_OF(struct fathom_report_node);
	} nodes;
	struct fathom_report_sums sums;
	double squares; /* sum of the squares of the weights of all samples */
};

/* A report that is made. */
struct making {
	struct fathom_report *report;
	const struct fathom_report_options *options;
	struct fathom_report_leaves leaves;
};

/* Sums rows up while a tree is visited. */
struct totals {
	const struct fathom_report_tree *tree;
	struct fathom_report_row *rows;
	uint32_t *open; /* of each row: branches that the visit is in */
};

static bool enter_row(void *data, uint32_t branch)
{
	struct totals *t = data;
	const struct fathom_report_branch *b = &t->tree->items[branch];
	struct fathom_report_row *row = &t->rows[b->row];

	row->self += b->self;
	row->self_samples += b->self_samples;
	if (!t->open[b->row]++) {
		row->total += b->total;
		row->total_samples += b->total_samples;
	}
	return true;
}

static void leave_row(void *data, uint32_t branch)
{
	struct totals *t = data;

	t->open[t->tree->items[branch].row]--;
}

/* Sums up the rows along @tree. */
static fathom_err sum_rows(struct fathom_report *report, const struct fathom_report_tree *tree,
			   const struct fathom_report_links *links, struct fathom_errinfo *reterr)
{
	struct totals t = { .tree = tree,
			    .rows = report->rows.items,
			    .open = calloc(report->rows.n, sizeof *t.open) };

	if (!t.open)
		return fathom_fail_memory(reterr);
	fathom_report_visit(tree, links, enter_row, leave_row, &t);
	free(t.open);
	for (size_t i = 0; i < report->rows.n; i++) {
		struct fathom_report_row *row = &t.rows[i];

		if (fathom_report_is_group(row->kind)) {
			row->self = row->total;
			row->self_samples = row->total_samples;
		}
	}
	report->sums.shown = tree->items[0].total;
	return FATHOM_OK;
}

/* Writes the nodes of a report while a tree is visited. */
struct writing {
	struct fathom_report *report;
	const struct fathom_report_tree *tree;
	uint64_t least;
	uint32_t node; /* that the visit is in */
	bool no_memory;
};

static bool is_light(const struct writing *w, uint32_t branch)
{
	return w->tree->items[branch].total < w->least;
}

static bool enter_node(void *data, uint32_t branch)
{
	struct writing *w = data;
	const struct fathom_report_branch *b = &w->tree->items[branch];
	struct fathom_report_node *parent = &w->report->nodes.items[w->node];
	struct fathom_report_node n;

	if (!b->total_samples || w->no_memory)
		return false;
	if (is_light(w, branch)) {
		parent->left_out += b->total;
		parent->n_left_out++;
		return false;
	}
	n = (struct fathom_report_node){ .row = w->report->rows.items + b->row,
					 .parent = w->node,
					 .depth = parent->depth + 1,
					 .self = b->self,
					 .total = b->total };
	if (!fathom_array_push(&w->report->nodes, n)) {
		w->no_memory = true;
		return false;
	}
	w->node = (uint32_t)w->report->nodes.n - 1;
	return true;
}

static void leave_node(void *data, uint32_t branch)
{
	struct writing *w = data;

	if (w->tree->items[branch].total_samples && !is_light(w, branch) && !w->no_memory)
		w->node = w->report->nodes.items[w->node].parent;
}

static fathom_err write_nodes(struct fathom_report *report, const struct fathom_report_tree *tree,
			      struct fathom_report_links *links, uint64_t least,
			      struct fathom_errinfo *reterr)
{
	struct writing w = { .report = report, .tree = tree, .least = least };
	const struct fathom_report_node root = { .self = tree->items[0].self,
						 .total = tree->items[0].total };

	FATHOM_TRY(fathom_report_links_sort(tree, links, reterr));
	w.no_memory = !fathom_array_push(&report->nodes, root);
	if (!w.no_memory)
		fathom_report_visit(tree, links, enter_node, leave_node, &w);
	return w.no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

/* Returns whether @row is listed, and not only part of the tree. */
static bool is_listed(const struct fathom_report *report, const struct fathom_report_row *row)
{
	return row->total_samples &&
	       fathom_report_is_group(row->kind) == fathom_report_has_groups(&report->rows);
}

/* A row with its number, to be sorted. */
struct ranked {
	const struct fathom_report_row *row;
	bool is_listed;
};

static int compare_ranked(const void *pa, const void *pb)
{
	const struct ranked *a = pa;
	const struct ranked *b = pb;
	int order = b->is_listed - a->is_listed;

	order = order ? order : u64_compare(b->row->self, a->row->self);
	order = order ? order : u64_compare(b->row->total, a->row->total);
	return order ? order : fathom_report_row_compare(a->row, b->row);
}

/* Sorts the rows, and has the nodes point to them. */
static fathom_err sort_rows(struct fathom_report *report, struct fathom_errinfo *reterr)
{
	const size_t n = report->rows.n;
	const struct fathom_report_row *old = report->rows.items;
	struct ranked *ranked = malloc(n * sizeof *ranked);
	struct fathom_report_row *rows = malloc(n * sizeof *rows);
	uint32_t *places = malloc(n * sizeof *places);

	if (!ranked || !rows || !places) {
		free(ranked);
		free(rows);
		free(places);
		return fathom_fail_memory(reterr);
	}
	for (size_t i = 0; i < n; i++) {
		ranked[i] = (struct ranked){ &old[i], is_listed(report, &old[i]) };
		report->n_listed += ranked[i].is_listed;
	}
	qsort(ranked, n, sizeof *ranked, compare_ranked);
	for (size_t i = 0; i < n; i++) {
		rows[i] = *ranked[i].row;
		places[ranked[i].row - old] = (uint32_t)i;
	}
	for (size_t i = 1; i < report->nodes.n; i++)
		report->nodes.items[i].row = &rows[places[report->nodes.items[i].row - old]];
	free(report->rows.items);
	report->rows.items = rows;
	report->rows.cap = n;
	free(ranked);
	free(places);
	return FATHOM_OK;
}

/* Makes the tree that is shown, and its nodes. */
static fathom_err show_tree(struct making *m, struct fathom_errinfo *reterr)
{
	const uint32_t shape = m->options->shape;
	const uint64_t least = fathom_report_least_weight(m->options, m->report->sums.weight);
	const bool is_of = shape == FATHOM_REPORT_CALLERS || shape == FATHOM_REPORT_CALLEES;
	struct fathom_report_tree tree = { .rows = &m->report->rows };
	struct fathom_report_links links = { NULL, NULL };
	fathom_err err;

	if (shape == FATHOM_REPORT_BOTTOM_UP || shape == FATHOM_REPORT_CALLERS)
		err = fathom_report_tree_up(&tree, m->leaves.items, m->leaves.n, is_of, least,
					    reterr);
	else
		err = fathom_report_tree_down(&tree, m->leaves.items, m->leaves.n, is_of, reterr);
	if (!err)
		err = fathom_report_links_make(&tree, &links, reterr);
	if (!err)
		err = write_nodes(m->report, &tree, &links, least, reterr);
	fathom_report_links_deinit(&links);
	fathom_report_tree_deinit(&tree);
	return err;
}

/* Makes the tree of what calls what for the rows; shows it if it is the one that is asked for. */
static fathom_err make_rows(struct making *m, struct fathom_errinfo *reterr)
{
	struct fathom_report_tree tree = { .rows = &m->report->rows };
	struct fathom_report_links links = { NULL, NULL };
	const uint64_t least = fathom_report_least_weight(m->options, m->report->sums.weight);
	fathom_err err =
		fathom_report_tree_down(&tree, m->leaves.items, m->leaves.n, false, reterr);

	if (!err)
		err = fathom_report_links_make(&tree, &links, reterr);
	if (!err)
		err = sum_rows(m->report, &tree, &links, reterr);
	if (!err && m->options->shape == FATHOM_REPORT_TOP_DOWN)
		err = write_nodes(m->report, &tree, &links, least, reterr);
	fathom_report_links_deinit(&links);
	fathom_report_tree_deinit(&tree);
	return err;
}

static fathom_err make(struct fathom_report *report, const struct fathom_profile *profile,
		       const struct fathom_report_options *options, struct fathom_errinfo *reterr)
{
	struct making m = { .report = report, .options = options };
	fathom_err err;

	report->rows.profile = profile;
	report->rows.options = options;
	err = fathom_report_rows_init(&report->rows, reterr);
	if (!err)
		err = fathom_report_leaves_init(&m.leaves, &report->rows, reterr);
	report->sums = m.leaves.sums;
	report->squares = m.leaves.squares;
	if (!err)
		err = make_rows(&m, reterr);
	if (!err && options->shape != FATHOM_REPORT_TOP_DOWN)
		err = show_tree(&m, reterr);
	if (!err)
		err = sort_rows(report, reterr);
	fathom_report_leaves_deinit(&m.leaves);
	fathom_report_rows_trim(&report->rows);
	report->rows.profile = NULL;
	report->rows.options = NULL;
	return err;
}

static fathom_err check_options(const struct fathom_report_options *o,
				struct fathom_errinfo *reterr)
{
	const bool needs_of =
		o->shape == FATHOM_REPORT_CALLERS || o->shape == FATHOM_REPORT_CALLEES;

	if (o->key > FATHOM_REPORT_BY_WAKER || o->shape > FATHOM_REPORT_CALLEES ||
	    o->least_share > 1000000)
		return fathom_fail_options(reterr);
	if (needs_of != (o->of != NULL))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "callers and callees are of a function, other trees of none");
	return FATHOM_OK;
}

fathom_err fathom_report_create(const struct fathom_profile *profile,
				const struct fathom_report_options *options,
				struct fathom_report **ret_report, struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = { .size = sizeof o };
	struct fathom_report *report;
	struct fathom_call call;
	fathom_err err;

	if (options && !FATHOM_STRUCT_READ(options, &o))
		return fathom_fail_options(reterr);
	FATHOM_TRY(check_options(&o, reterr));
	FATHOM_TRY(fathom_report_check_time(profile, o.time, reterr));
	report = calloc(1, sizeof *report);
	if (!report)
		return fathom_fail_memory(reterr);
	fathom_call_begin(&call, profile->session);
	err = fathom_call_end(&call, make(report, profile, &o, reterr), reterr);
	if (err)
		fathom_report_free(report);
	else
		*ret_report = report;
	return err;
}

void fathom_report_free(struct fathom_report *report)
{
	if (!report)
		return;
	fathom_report_rows_deinit(&report->rows);
	fathom_array_free(&report->nodes);
	free(report);
}

const struct fathom_report_row *fathom_report_rows(const struct fathom_report *report,
						   size_t *ret_n)
{
	*ret_n = report->n_listed;
	return report->rows.items;
}

const struct fathom_report_node *fathom_report_nodes(const struct fathom_report *report,
						     size_t *ret_n)
{
	*ret_n = report->nodes.n;
	return report->nodes.items;
}

const struct fathom_report_sums *fathom_report_get_sums(const struct fathom_report *report)
{
	return &report->sums;
}

double fathom_report_squares(const struct fathom_report *report)
{
	return report->squares;
}
