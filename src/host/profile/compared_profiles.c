/* SPDX-License-Identifier: MIT */
/*
 * Compares profiles by function. Where there are waits, which are measured and no samples, nothing
 * is tested. On processors, the self weight of a function is the share p of all
 * weight W, of which the samples are an estimate: as exact as n samples of equal weight, with the
 * variance p (1 - p) / n. The interval of a change is that of the normal distribution; whether the
 * change is significant is decided by exact tests, as most functions have few samples.
 */
#include <stdlib.h>
#include <string.h>

#include "host/base/option_struct.h"
#include "host/base/progress.h"
#include "host/profile/compared_modules.h"
#include "host/profile/compared_reasons.h"
#include "host/profile/diff_chance.h"
#include "host/profile/report_tree.h"
#include "host/profile/samples_format.h"
#include "safe/base/error.h"

/* Standard deviations on both sides of the mean that have 95 % of a normal distribution. */
#define DEVIATIONS 1.959963984540054
/* The chance up to which a change is significant. */
#define LEVEL 0.05

/* One of the profiles. */
struct side {
	struct fathom_report *report;
	bool has_rows; /* of the functions that are chosen */
	double weight;
	double n_samples;
	double effective; /* samples of equal weight */
	double divisor;
};

struct fathom_diff {
	struct fathom_diff_sums sums;
	struct side sides[2]; /* whose reports own all texts but these */
	struct fathom_compared_modules modules;
	struct fathom_name_table reasons; /* names of rows of waits */
	bool is_tested;                   /* all weights are those of samples */
	FATHOM_ARRAY_OF(struct fathom_diff_row);
};

/* How functions of both are found to be one. */
struct matching {
	struct fathom_name_table texts;
	struct fathom_key_map by_name; /* rows by name and module */
	bool no_memory;
};

/* Returns the square root of @x, from 0 on, by Newton's method: the library needs no libm. */
static double square_root(double x)
{
	double root = x < 1 ? 1 : x;

	if (!(x > 0))
		return 0;
	for (;;) {
		const double next = (root + x / root) / 2;

		if (next >= root)
			return root;
		root = next;
	}
}

static uint32_t number_text(struct matching *m, const char *s)
{
	const uint32_t number = fathom_name_table_add(&m->texts, s ? s : "");

	m->no_memory |= number == FATHOM_KEY_NEW;
	return number;
}

/* Returns the name of the reason of waits @row without what differs from run to run. */
static const char *reason_of(struct fathom_diff *d, struct matching *m,
			     const struct fathom_report_row *row)
{
	char text[FATHOM_PROFILE_REASON];
	uint32_t number;

	fathom_reason_generalize(row->name, text, sizeof text);
	number = fathom_name_table_add(&d->reasons, text);
	m->no_memory |= number == FATHOM_KEY_NEW;
	return m->no_memory ? row->name : d->reasons.items[number].text;
}

/* Returns the row of the function of @from, a new one if it had none; NULL without memory. */
static struct fathom_diff_row *row_of(struct fathom_diff *d, struct matching *m,
				      const struct fathom_report_row *from)
{
	const struct fathom_compared_module *module =
		fathom_compared_modules_find(&d->modules, from->module);
	const bool is_reason = module && strcmp(from->module, FATHOM_PROFILE_WAITS) == 0;
	const struct fathom_diff_row row = { .name = is_reason ? reason_of(d, m, from) : from->name,
					     .linkage_name = from->linkage_name,
					     .module = module ? module->name : NULL,
					     .kind = from->kind };
	const uint32_t name = number_text(m, row.linkage_name ? row.linkage_name : row.name);
	uint32_t *number;

	if (m->no_memory)
		return NULL;
	number = fathom_key_map_at(&m->by_name,
				   (uint64_t)name << 32 | (module ? module->match + 1 : 0));
	if (number && *number == FATHOM_KEY_NEW && fathom_array_push(d, row))
		*number = (uint32_t)d->n - 1;
	if (number && *number != FATHOM_KEY_NEW)
		return &d->items[*number];
	m->no_memory = true;
	return NULL;
}

/* Adds the functions of both profiles that have a self weight. */
static fathom_err add_rows(struct fathom_diff *d, struct fathom_errinfo *reterr)
{
	struct matching m = { .no_memory = false };

	for (int side = 0; side < 2; side++) {
		size_t n = 0;
		const struct fathom_report_row *rows =
			d->sides[side].has_rows ? fathom_report_rows(d->sides[side].report, &n)
						: NULL;

		for (size_t i = 0; i < n && !m.no_memory; i++) {
			struct fathom_diff_row *row = rows[i].self ? row_of(d, &m, &rows[i]) : NULL;

			if (!row)
				continue;
			row->self[side] += rows[i].self;
			row->self_samples[side] += rows[i].self_samples;
		}
	}
	fathom_name_table_deinit(&m.texts);
	fathom_key_map_deinit(&m.by_name);
	return m.no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

/*
 * Returns how many times as many samples the share of @row takes as if all had the same weight.
 * Both profiles tell, as if they were one: heavy samples that one of them lacks could be in it.
 * Weights are taken in mean weights of a sample of their profile.
 */
static double design_effect_of(const struct fathom_diff *d, const struct fathom_diff_row *row)
{
	double n = 0;
	double n_own = 0;
	double own = 0;     /* weight */
	double squares = 0; /* sum of the squares of weights: of all samples, */
	double squares_own; /* of those of the row, at least */
	double p;

	for (int i = 0; i < 2; i++) {
		const struct side *s = &d->sides[i];

		if (!(s->weight > 0))
			continue;
		n += s->n_samples;
		n_own += (double)row->self_samples[i];
		own += (double)row->self[i] / s->weight * s->n_samples;
		squares += s->n_samples * s->n_samples / s->effective;
	}
	p = n > 0 ? own / n : 0;
	if (!(p > 0 && p < 1))
		return 1;
	squares_own = own * own / n_own;
	if (squares_own > squares)
		squares_own = squares;
	return ((1 - p) * (1 - p) * squares_own + p * p * (squares - squares_own)) /
	       (n * p * (1 - p));
}

static uint64_t rounded(double x)
{
	return (uint64_t)(x + 0.5);
}

/* Sets what @row says, but its verdict: its chance is that of this row alone. */
static void compare(const struct fathom_diff *d, struct fathom_diff_row *row, bool are_shares)
{
	const double effect = design_effect_of(d, row);
	double variance = 0;
	double n[2];
	double exposure[2];
	double k[2];

	for (int i = 0; i < 2; i++) {
		const struct side *s = &d->sides[i];
		const double p = s->weight > 0 ? (double)row->self[i] / s->weight : 0;
		const double unit = s->divisor > 0 ? s->weight / s->divisor : 0;

		n[i] = s->n_samples / effect < s->effective ? s->n_samples / effect : s->effective;
		k[i] = p * n[i];
		exposure[i] = unit > 0 ? n[i] / unit : 0;
		row->values[i] = p * unit;
		variance += n[i] > 0 ? unit * unit * p * (1 - p) / n[i] : 0;
	}
	row->change = row->values[1] - row->values[0];
	row->low = row->high = row->change;
	row->chance = 1;
	row->verdict = FATHOM_DIFF_NOT_TESTED;
	if (!d->is_tested)
		return;
	row->verdict = FATHOM_DIFF_NOT_SIGNIFICANT;
	row->low = row->change - DEVIATIONS * square_root(variance);
	row->high = row->change + DEVIATIONS * square_root(variance);
	row->chance = are_shares ? fathom_chance_of_shares(rounded(k[0]), rounded(n[0]),
							   rounded(k[1]), rounded(n[1]))
				 : fathom_chance_of_rates(rounded(k[0]), exposure[0], rounded(k[1]),
							  exposure[1]);
}

static int compare_numbers(double a, double b)
{
	return a < b ? -1 : a > b;
}

static int by_chance(const void *pa, const void *pb)
{
	const struct fathom_diff_row *a = pa;
	const struct fathom_diff_row *b = pb;

	return compare_numbers(a->chance, b->chance);
}

/*
 * Makes chances those for all rows together, and decides what is significant: Holm, "A Simple
 * Sequentially Rejective Multiple Test Procedure", 1979.
 */
static void decide(struct fathom_diff *d)
{
	double highest = 0;

	if (d->n)
		qsort(d->items, d->n, sizeof *d->items, by_chance);
	for (size_t i = 0; i < d->n; i++) {
		struct fathom_diff_row *row = &d->items[i];
		const double chance = row->chance * (double)(d->n - i);

		highest = chance > highest ? chance : highest;
		row->chance = highest < 1 ? highest : 1;
		if (row->chance > LEVEL || !(row->change < 0 || row->change > 0))
			continue;
		row->verdict = row->change > 0 ? FATHOM_DIFF_SLOWER : FATHOM_DIFF_FASTER;
		d->sums.n_slower += row->change > 0;
		d->sums.n_faster += row->change < 0;
	}
}

/* A row with what it is sorted by. */
struct ranked {
	struct fathom_diff_row row;
	uint64_t size; /* of the change, in parts of the largest value */
};

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int by_size(const void *pa, const void *pb)
{
	const struct ranked *x = pa;
	const struct ranked *y = pb;
	const struct fathom_diff_row *a = &x->row;
	const struct fathom_diff_row *b = &y->row;
	int order = (a->verdict == FATHOM_DIFF_NOT_SIGNIFICANT) -
		    (b->verdict == FATHOM_DIFF_NOT_SIGNIFICANT);

	order = order ? order : u64_compare(y->size, x->size);
	order = order ? order : (a->change < 0) - (b->change < 0);
	order = order ? order : compare_texts(a->name, b->name);
	order = order ? order : compare_texts(a->module, b->module);
	return order ? order : compare_texts(a->linkage_name, b->linkage_name);
}

/* The largest value, in the unit in which sizes of changes are compared. */
#define SIZES 1e12

/* Sorts the rows. Sizes are rounded: of two functions, one has lost what the other has got. */
static fathom_err sort_rows(struct fathom_diff *d, struct fathom_errinfo *reterr)
{
	struct ranked *ranked = malloc((d->n + 1) * sizeof *ranked);
	double largest = 0;

	if (!ranked)
		return fathom_fail_memory(reterr);
	for (size_t i = 0; i < d->n; i++)
		for (int side = 0; side < 2; side++)
			if (d->items[i].values[side] > largest)
				largest = d->items[i].values[side];
	for (size_t i = 0; i < d->n; i++) {
		const double change = d->items[i].change;
		const double size = change < 0 ? -change : change;

		ranked[i] = (struct ranked){ d->items[i],
					     largest > 0 ? rounded(size / largest * SIZES) : 0 };
	}
	if (d->n)
		qsort(ranked, d->n, sizeof *ranked, by_size);
	for (size_t i = 0; i < d->n; i++)
		d->items[i] = ranked[i].row;
	free(ranked);
	return FATHOM_OK;
}

/* Returns the seconds of @p that @o takes. */
static double seconds_of(const struct fathom_profile *p, const struct fathom_report_options *o)
{
	const uint64_t end =
		o->to_ns && o->to_ns < p->info.duration_ns ? o->to_ns : p->info.duration_ns;

	return end > o->from_ns ? (double)(end - o->from_ns) / 1e9 : 0;
}

/* Sets up a side of @d from its report. */
static void init_side(struct fathom_diff *d, int side, const struct fathom_profile *p,
		      const struct fathom_diff_options *o,
		      const struct fathom_report_options *filters)
{
	struct side *s = &d->sides[side];
	const struct fathom_report_sums *sums = fathom_report_get_sums(s->report);
	const double squares = fathom_report_squares(s->report);

	s->weight = (double)sums->weight;
	s->n_samples = (double)sums->n_samples;
	s->effective = squares > 0 ? s->weight * s->weight / squares : 0;
	d->sums.weight[side] = sums->weight;
	d->sums.n_samples[side] = sums->n_samples;
	s->divisor = o->per == FATHOM_DIFF_PER_WALL    ? seconds_of(p, filters)
		     : o->per == FATHOM_DIFF_PER_COUNT ? (double)o->counts[side]
						       : s->weight;
	d->sums.effective[side] = s->effective;
	d->sums.divisors[side] = s->divisor;
}

/*
 * Makes the reports of both. One of them may have none of the functions that are chosen: all its
 * weight is that of others then.
 */
static fathom_err make_reports(struct fathom_diff *d, const struct fathom_profile *const *profiles,
			       const struct fathom_report_options *filters,
			       struct fathom_errinfo *reterr)
{
	struct fathom_report_options all = *filters;
	int lacking = 0;

	all.only = all.under = NULL;
	all.n_only = all.n_under = 0;
	for (int side = 0; side < 2; side++) {
		struct fathom_report **r = &d->sides[side].report;
		fathom_err err = fathom_report_create(profiles[side], filters, r, reterr);

		d->sides[side].has_rows = !err;
		if (err == FATHOM_E_NOT_FOUND && !lacking++)
			err = fathom_report_create(profiles[side], &all, r, reterr);
		if (err)
			return err;
	}
	return FATHOM_OK;
}

static fathom_err make(struct fathom_diff *d, const struct fathom_profile *const *profiles,
		       const struct fathom_diff_options *o,
		       const struct fathom_report_options *filters, struct fathom_errinfo *reterr)
{
	d->is_tested = filters->time == FATHOM_REPORT_CPU;
	FATHOM_TRY(make_reports(d, profiles, filters, reterr));
	if (!fathom_compared_modules_init(&d->modules, profiles))
		return fathom_fail_memory(reterr);
	for (int side = 0; side < 2; side++)
		init_side(d, side, profiles[side], o, filters);
	FATHOM_TRY(add_rows(d, reterr));
	for (size_t i = 0; i < d->n; i++)
		compare(d, &d->items[i], o->per == FATHOM_DIFF_PER_CPU);
	if (d->is_tested)
		decide(d);
	return sort_rows(d, reterr);
}

static fathom_err check_options(const struct fathom_diff_options *o,
				const struct fathom_report_options *filters,
				struct fathom_errinfo *reterr)
{
	if (o->per > FATHOM_DIFF_PER_COUNT || o->reserved1 || filters->key || filters->shape ||
	    filters->least_share || filters->of)
		return fathom_fail_options(reterr);
	if (o->per == FATHOM_DIFF_PER_COUNT && (!o->counts[0] || !o->counts[1]))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0, "a count is 0");
	return FATHOM_OK;
}

fathom_err fathom_diff_create(const struct fathom_profile *a, const struct fathom_profile *b,
			      const struct fathom_diff_options *options,
			      struct fathom_diff **ret_diff, struct fathom_errinfo *reterr)
{
	const struct fathom_profile *const profiles[2] = { a, b };
	struct fathom_diff_options o = { .size = sizeof o };
	struct fathom_report_options filters = { .size = sizeof filters };
	struct fathom_diff *d;
	struct fathom_call call;
	fathom_err err;

	if (options && !FATHOM_STRUCT_READ(options, &o))
		return fathom_fail_options(reterr);
	if (o.filters && !FATHOM_STRUCT_READ(o.filters, &filters))
		return fathom_fail_options(reterr);
	FATHOM_TRY(check_options(&o, &filters, reterr));
	/* Waits are in nanoseconds, whatever the event is. */
	if (filters.time != FATHOM_REPORT_WAITING && strcmp(a->info.unit, b->info.unit) != 0)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "the profiles count different events");
	d = calloc(1, sizeof *d);
	if (!d)
		return fathom_fail_memory(reterr);
	fathom_call_begin(&call, a->session);
	err = fathom_call_end(&call, make(d, profiles, &o, &filters, reterr), reterr);
	if (err)
		fathom_diff_free(d);
	else
		*ret_diff = d;
	return err;
}

void fathom_diff_free(struct fathom_diff *diff)
{
	if (!diff)
		return;
	for (int side = 0; side < 2; side++)
		fathom_report_free(diff->sides[side].report);
	fathom_compared_modules_deinit(&diff->modules);
	fathom_name_table_deinit(&diff->reasons);
	fathom_array_free(diff);
	free(diff);
}

const struct fathom_diff_row *fathom_diff_rows(const struct fathom_diff *diff, size_t *ret_n)
{
	*ret_n = diff->n;
	return diff->items;
}

const struct fathom_diff_sums *fathom_diff_get_sums(const struct fathom_diff *diff)
{
	return &diff->sums;
}
