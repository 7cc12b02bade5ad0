/* SPDX-License-Identifier: MIT */
/* Annotations: instructions and source lines of functions of a profile, with their weights. */
#include <stdlib.h>
#include <string.h>

#include "host/annotate/annotating.h"
#include "host/base/option_struct.h"
#include "host/profile/report_tree.h"
#include "safe/base/error.h"

/* Functions that are annotated unless the options say how many. */
#define USUAL_LIMIT 100

/* A function as it is ranked. */
struct ranked {
	struct fathom_annotate_function *function;
	const struct fathom_report_row *row;
};

static int compare_ranked(const void *pa, const void *pb)
{
	const struct ranked *a = pa;
	const struct ranked *b = pb;
	int order = u64_compare(b->function->weight.self, a->function->weight.self);

	order = order ? order : u64_compare(b->function->weight.total, a->function->weight.total);
	return order ? order : fathom_report_row_compare(a->row, b->row);
}

/* Ranks the functions that have a weight, and makes room for those that are kept. */
static fathom_err rank_functions(struct fathom_annotating *a, struct fathom_errinfo *reterr)
{
	struct fathom_annotation *to = a->annotation;
	const size_t limit = a->options->limit ? a->options->limit : USUAL_LIMIT;
	const uint64_t least = fathom_report_least_weight(a->rows.options, to->sums.weight);
	struct ranked *all = malloc((a->functions.n + 1) * sizeof *all);
	size_t n = 0;

	if (!all)
		return fathom_fail_memory(reterr);
	for (size_t i = 0; i < a->functions.n; i++) {
		struct fathom_annotate_function *f = &a->functions.items[i];

		if (f->weight.total_samples && f->weight.self >= least)
			all[n++] = (struct ranked){ f, &a->rows.items[f->row] };
	}
	if (n > 1)
		qsort(all, n, sizeof *all, compare_ranked);
	to->n = n < limit ? n : limit;
	to->left_out = n - to->n;
	for (size_t i = 0; i < to->n; i++)
		all[i].function->rank = (uint32_t)i;
	free(all);
	to->functions = calloc(to->n + 1, sizeof *to->functions);
	return to->functions ? FATHOM_OK : fathom_fail_memory(reterr);
}

/* Makes @f what the annotation returns. */
static void finish_function(struct fathom_annotating *a, struct fathom_annotate_function *f)
{
	struct fathom_annotated_function *to = &a->annotation->functions[f->rank];
	const struct fathom_report_row *row = &a->rows.items[f->row];

	to->name = fathom_annotate_copy(a, row->name);
	to->linkage_name = fathom_annotate_copy(a, row->linkage_name);
	to->module = fathom_annotate_copy(a, row->module);
	to->why = f->codes.n ? NULL : f->why;
	to->weight = f->weight;
	to->elsewhere = f->elsewhere;
	to->no_line = f->no_line;
	fathom_annotate_finish(a, f, to);
}

/* Gives files to the lines of @f that are of a build without samples: it was not read. */
static void find_files(struct fathom_annotating *a, uint32_t f)
{
	const struct fathom_annotate_function *function = &a->functions.items[f];

	for (size_t i = 0; i < function->lines.n; i++) {
		const struct fathom_annotate_line *l = &a->lines.items[function->lines.items[i]];

		if (!l->source)
			fathom_annotate_texts(a, f, l->module, NULL);
	}
}

static fathom_err make(struct fathom_annotating *a, struct fathom_errinfo *reterr)
{
	const struct fathom_source_options sources = { .size = sizeof sources,
						       .dirs = a->options->source_dirs };

	FATHOM_TRY(fathom_report_rows_init(&a->rows, reterr));
	FATHOM_TRY(fathom_report_leaves_init(&a->leaves, &a->rows, reterr));
	a->annotation->sums = a->leaves.sums;
	FATHOM_TRY(fathom_annotate_weigh(a, reterr));
	FATHOM_TRY(rank_functions(a, reterr));
	FATHOM_TRY(fathom_source_files_create(a->profile->session, &sources, &a->sources, reterr));
	FATHOM_TRY(fathom_annotate_read(a, reterr));
	for (uint32_t i = 0; i < a->functions.n; i++)
		if (a->functions.items[i].rank != NONE)
			find_files(a, i);
	FATHOM_TRY(fathom_annotate_weigh_places(a, reterr));
	for (size_t i = 0; i < a->functions.n; i++)
		if (a->functions.items[i].rank != NONE)
			finish_function(a, &a->functions.items[i]);
	return a->no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

static void deinit(struct fathom_annotating *a)
{
	for (size_t i = 0; i < a->functions.n; i++) {
		fathom_array_free(&a->functions.items[i].lines);
		fathom_array_free(&a->functions.items[i].codes);
		fathom_array_free(&a->functions.items[i].instructions);
	}
	fathom_annotate_weighing_free(a->weighing);
	fathom_array_free(&a->functions);
	fathom_array_free(&a->places);
	fathom_array_free(&a->spots);
	fathom_array_free(&a->lines);
	fathom_array_free(&a->files);
	fathom_name_table_deinit(&a->names);
	fathom_key_map_deinit(&a->by_row);
	fathom_key_map_deinit(&a->by_place);
	fathom_key_map_deinit(&a->by_who);
	fathom_key_map_deinit(&a->by_line);
	fathom_key_map_deinit(&a->by_file);
	fathom_source_files_free(a->sources);
	fathom_report_leaves_deinit(&a->leaves);
	fathom_report_rows_deinit(&a->rows);
}

/* Reads the options, and their filters. */
static fathom_err read_options(const struct fathom_annotation_options *options,
			       struct fathom_annotation_options *o,
			       struct fathom_report_options *filters, struct fathom_errinfo *reterr)
{
	const uint32_t known = FATHOM_ANNOTATE_INTEL | FATHOM_ANNOTATE_NO_DEMANGLE |
			       FATHOM_ANNOTATE_NO_INSTRUCTIONS | FATHOM_ANNOTATE_NO_SOURCE;

	if (options && !FATHOM_OPTIONS_READ(options, o, known))
		return fathom_fail_options(reterr);
	if (o->filters && !FATHOM_STRUCT_READ(o->filters, filters))
		return fathom_fail_options(reterr);
	if (filters->key || filters->shape || filters->least_share > 1000000 || filters->of)
		return fathom_fail_options(reterr);
	filters->of = o->query;
	return FATHOM_OK;
}

fathom_err fathom_annotation_create(const struct fathom_profile *profile,
				    const struct fathom_annotation_options *options,
				    struct fathom_annotation **ret_annotation,
				    struct fathom_errinfo *reterr)
{
	struct fathom_annotation_options o = { .size = sizeof o };
	struct fathom_report_options filters = { .size = sizeof filters };
	struct fathom_annotating a = { .profile = profile,
				       .options = &o,
				       .rows = { .profile = profile, .options = &filters } };
	struct fathom_call call;
	fathom_err err;

	FATHOM_TRY(read_options(options, &o, &filters, reterr));
	FATHOM_TRY(fathom_report_check_time(profile, filters.time, reterr));
	a.annotation = calloc(1, sizeof *a.annotation);
	if (!a.annotation)
		return fathom_fail_memory(reterr);
	fathom_call_begin(&call, profile->session);
	err = fathom_call_end(&call, make(&a, reterr), reterr);
	deinit(&a);
	if (err)
		fathom_annotation_free(a.annotation);
	else
		*ret_annotation = a.annotation;
	return err;
}

void fathom_annotation_free(struct fathom_annotation *annotation)
{
	if (!annotation)
		return;
	for (size_t i = 0; annotation->functions && i < annotation->n; i++) {
		free((void *)(uintptr_t)annotation->functions[i].codes);
		free((void *)(uintptr_t)annotation->functions[i].instructions);
	}
	free(annotation->functions);
	fathom_arena_deinit(&annotation->arena);
	free(annotation);
}

const struct fathom_annotated_function *fathom_annotation_functions(
	const struct fathom_annotation *annotation, size_t *ret_n)
{
	*ret_n = annotation->n;
	return annotation->functions;
}

size_t fathom_annotation_left_out(const struct fathom_annotation *annotation)
{
	return annotation->left_out;
}

const struct fathom_report_sums *fathom_annotation_get_sums(
	const struct fathom_annotation *annotation)
{
	return &annotation->sums;
}
