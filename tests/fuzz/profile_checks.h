/* SPDX-License-Identifier: MIT */
/* Properties of profiles, whatever their files hold. */
#ifndef FATHOM_FUZZ_PROFILE_CHECKS_H
#define FATHOM_FUZZ_PROFILE_CHECKS_H

#include "fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/profile.h"

/* The sums of samples. */
struct sums {
	const struct fathom_profile *profile;
	uint64_t n;
	uint64_t weight;
	uint64_t n_stacks;
};

static int add(void *data, const struct fathom_profile_sample *s)
{
	struct sums *sums = data;
	size_t n_threads;
	size_t n_nodes;

	(void)fathom_profile_threads(sums->profile, &n_threads);
	(void)fathom_profile_nodes(sums->profile, &n_nodes);
	if (s->thread >= n_threads || s->node >= n_nodes)
		abort();
	/* The sums of waits are apart. */
	if (s->part == FATHOM_PROFILE_WAITING || s->part == FATHOM_PROFILE_RUNNABLE)
		return 0;
	sums->n++;
	sums->weight += s->weight;
	sums->n_stacks += s->node != 0;
	return 0;
}

static void check_samples(const struct fathom_profile *p)
{
	const struct fathom_profile_info *info = fathom_profile_get_info(p);
	struct sums sums = { .profile = p };

	if (fathom_profile_each_sample(p, add, &sums, NULL))
		abort();
	if (sums.n != info->n_samples || sums.weight != info->weight ||
	    sums.n_stacks != info->n_stacks || info->n_whole > info->n_stacks)
		abort();
}

/* Everything refers to what there is. */
static void check_definitions(const struct fathom_profile *p)
{
	size_t n;
	size_t n_modules;
	size_t n_locations;
	const struct fathom_profile_thread *threads = fathom_profile_threads(p, &n);
	const struct fathom_profile_module *modules;
	const struct fathom_profile_location *locations;
	const struct fathom_profile_node *nodes;

	for (size_t i = 0; i < n; i++)
		fuzz_use(strlen(threads[i].name) + strlen(threads[i].process) +
			 strlen(threads[i].cgroup));
	modules = fathom_profile_modules(p, &n_modules);
	for (size_t i = 0; i < n_modules; i++) {
		fuzz_use(strlen(modules[i].path));
		if (!modules[i].build_id != !modules[i].build_id_size)
			abort();
	}
	locations = fathom_profile_locations(p, &n_locations);
	for (size_t i = 0; i < n_locations; i++) {
		const struct fathom_profile_location *l = &locations[i];

		if ((l->module != UINT32_MAX && l->module >= n_modules) || !l->answer)
			abort();
		if (!l->answer->symbol && !l->answer->reason)
			abort();
	}
	nodes = fathom_profile_nodes(p, &n);
	for (size_t i = 1; i < n; i++)
		if (nodes[i].caller >= i || nodes[i].location >= n_locations)
			abort();
}

#define KEYS (FATHOM_REPORT_BY_CGROUP + 1)

/* Makes a report by each key, of both times, and each tree. */
static void check_reports(const struct fathom_profile *p)
{
	const struct fathom_profile_info *info = fathom_profile_get_info(p);

	for (uint32_t i = 0; i < KEYS * 4; i++) {
		const struct fathom_report_options o = {
			.size = sizeof o, .key = i / 4, .time = i / 2 % 2, .shape = i % 2
		};
		const uint64_t weight = o.time == FATHOM_REPORT_WAITING
						? info->waiting_ns + info->runnable_ns
						: info->weight;
		const struct fathom_report_row *rows;
		const struct fathom_report_node *nodes;
		struct fathom_report *r = NULL;
		uint64_t sum = 0;
		size_t n;
		const fathom_err err = fathom_report_create(p, &o, &r, NULL);

		if (err == FATHOM_E_LIMIT)
			continue;
		if (err)
			abort();
		rows = fathom_report_rows(r, &n);
		for (size_t k = 0; k < n; k++) {
			fuzz_use(strlen(rows[k].name));
			if (rows[k].self > rows[k].total || !rows[k].total_samples)
				abort();
			sum += rows[k].self;
		}
		nodes = fathom_report_nodes(r, &n);
		if (sum != weight || nodes[0].total != sum ||
		    fathom_report_get_sums(r)->shown != sum)
			abort();
		fathom_report_free(r);
	}
}

/* What an export has written so far. */
struct exported {
	bool is_text;
	bool is_json;
	bool in_string;
	bool is_escaped;
	uint64_t size;
	uint64_t depth;
};

/* Checks brackets and strings of JSON. */
static void check_json(struct exported *e, char c)
{
	if (e->in_string) {
		if ((unsigned char)c < 0x20)
			abort();
		if (!e->is_escaped && c == '"')
			e->in_string = false;
		e->is_escaped = !e->is_escaped && c == '\\';
	} else if (c == '"') {
		e->in_string = true;
	} else if (c == '{' || c == '[') {
		e->depth++;
	} else if ((c == '}' || c == ']') && !e->depth--) {
		abort();
	}
}

/* fathom_profile_write_fn: texts have no control character, and escapes instead. */
static int take_exported(void *data, const void *bytes, size_t n)
{
	struct exported *e = data;
	const char *s = bytes;

	e->size += n;
	for (size_t i = 0; i < n && e->is_text; i++) {
		if (((unsigned char)s[i] < 0x20 && s[i] != '\n') || s[i] == 0x7f)
			abort();
		if (e->is_json)
			check_json(e, s[i]);
	}
	return 1;
}

/* Exports in all formats, of each time. */
static void check_exports(const struct fathom_profile *p)
{
	for (uint32_t i = 0; i < 3 * FATHOM_PROFILE_SVG_BARS; i++) {
		const enum fathom_profile_format format = (enum fathom_profile_format)(1 + i / 3);
		const struct fathom_report_options o = { .size = sizeof o, .time = i % 3 };
		const bool is_binary =
			format == FATHOM_PROFILE_PPROF || format == FATHOM_PROFILE_PERFETTO;
		struct exported e = { .is_text = !is_binary,
				      .is_json = format == FATHOM_PROFILE_SPEEDSCOPE ||
						 format == FATHOM_PROFILE_FIREFOX };
		const fathom_err err =
			fathom_profile_export(p, format, &o, take_exported, &e, NULL);

		if (err && err != FATHOM_E_LIMIT && err != FATHOM_E_UNSUPPORTED)
			abort();
		if (!err &&
		    ((!e.size && format != FATHOM_PROFILE_COLLAPSED) || e.depth || e.in_string))
			abort();
	}
}

/* Checks the lines of @f. */
static void check_lines(const struct fathom_annotated_function *f)
{
	uint64_t sum = f->no_line.self + f->no_line.inlined;

	for (size_t i = 0; i < f->n_lines; i++) {
		fuzz_use(strlen(f->lines[i].file->path));
		if (!f->lines[i].function)
			sum += f->lines[i].weight.self + f->lines[i].weight.inlined;
	}
	if (sum != f->weight.self + f->weight.inlined)
		abort();
}

/* Annotates all functions, without any file, and compares them with a report. */
static void check_annotation(const struct fathom_profile *p)
{
	const struct fathom_report_options filters = { .size = sizeof filters,
						       .time = FATHOM_REPORT_WAITING };

	for (size_t i = 0; i < 2; i++) {
		const struct fathom_annotation_options o = {
			.size = sizeof o,
			.flags = FATHOM_ANNOTATE_NO_INSTRUCTIONS | FATHOM_ANNOTATE_NO_SOURCE,
			.limit = UINT32_MAX,
			.filters = i ? &filters : NULL
		};
		struct fathom_annotation *a = NULL;
		struct fathom_report *r = NULL;
		const struct fathom_annotated_function *functions;
		const struct fathom_report_row *rows;
		size_t n;
		size_t n_rows;
		size_t k = 0;

		if (fathom_annotation_create(p, &o, &a, NULL) ||
		    fathom_report_create(p, o.filters, &r, NULL))
			abort();
		functions = fathom_annotation_functions(a, &n);
		rows = fathom_report_rows(r, &n_rows);
		for (size_t row = 0; row < n_rows; row++) {
			if (rows[row].kind != FATHOM_REPORT_ROW_CODE)
				continue;
			if (k >= n || strcmp(functions[k].name, rows[row].name) != 0 ||
			    functions[k].weight.self != rows[row].self ||
			    functions[k].weight.total != rows[row].total)
				abort();
			check_lines(&functions[k++]);
		}
		if (k != n)
			abort();
		fathom_report_free(r);
		fathom_annotation_free(a);
	}
}

/* All that a profile says of itself agrees. */
/* Stacks as they are shown refer to what there is, and are exported whole. */
static inline void check_shown(struct fathom_profile *p, enum fathom_profile_frames frames)
{
	const fathom_err err = fathom_profile_show_frames(p, frames, NULL);

	if (err && err != FATHOM_E_LIMIT)
		abort();
	check_definitions(p);
	check_exports(p);
}

static void check_profile(struct fathom_profile *p)
{
	check_definitions(p);
	check_samples(p);
	check_reports(p);
	check_exports(p);
	check_annotation(p);
}

#endif
