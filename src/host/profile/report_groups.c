/* SPDX-License-Identifier: MIT */
/*
 * Groups of a report: rows of threads, processes, cgroups or reasons, each with the functions of
 * its samples.
 */
#include <stdlib.h>

#include "host/profile/report_rows.h"

/* Returns the row of thread @t, or of its process. */
static uint32_t row_of_thread(struct fathom_report_rows *r, const struct fathom_profile_thread *t)
{
	const bool is_thread = r->options->key == FATHOM_REPORT_BY_THREAD;
	const struct fathom_report_row row = {
		.name = fathom_report_keep_text(r, is_thread ? t->name : t->process),
		.pid = t->pid,
		.tid = is_thread ? t->tid : 0,
		.kind = is_thread ? FATHOM_REPORT_ROW_THREAD : FATHOM_REPORT_ROW_PROCESS,
		.cgroup = fathom_report_keep_text(r, t->cgroup)
	};
	const uint64_t numbers = (uint64_t)(uint32_t)row.pid << 32 | (uint32_t)row.tid;
	uint32_t spare;
	uint32_t *identity = fathom_report_number_at(r, &r->by_number, numbers, &spare);
	uint32_t *number;

	if (*identity == FATHOM_KEY_NEW)
		*identity = (uint32_t)r->by_number.n;
	number = fathom_report_number_at(
		r, &r->by_thread,
		(uint64_t)*identity << 32 | fathom_report_number_text(r, row.name), &spare);
	if (*number == FATHOM_KEY_NEW) {
		*number = fathom_report_add_row(r, &row);
		if (!row.name && !r->no_memory)
			r->items[*number].name = fathom_report_keep_text(r, "??");
	}
	return *number;
}

/* Returns the row of @kind that is called @name. */
static uint32_t row_named(struct fathom_report_rows *r, const char *name, uint8_t kind)
{
	uint32_t spare;
	uint32_t *number = fathom_report_number_at(r, &r->by_group,
						   fathom_report_number_text(r, name), &spare);
	const struct fathom_report_row row = { .name = fathom_report_keep_text(r, name),
					       .kind = kind };

	if (*number == FATHOM_KEY_NEW)
		*number = fathom_report_add_row(r, &row);
	return *number;
}

/* Returns the row of the cgroup of thread @t. */
static uint32_t row_of_cgroup(struct fathom_report_rows *r, const struct fathom_profile_thread *t)
{
	const uint32_t row = row_named(r, *t->cgroup ? t->cgroup : "[cgroup not known]",
				       FATHOM_REPORT_ROW_CGROUP);

	if (!r->no_memory)
		r->items[row].cgroup = fathom_report_keep_text(r, t->cgroup);
	return row;
}

static bool add_threads(struct fathom_report_rows *r)
{
	const struct fathom_profile *p = r->profile;

	r->groups = malloc((p->n_threads + 1) * sizeof *r->groups);
	for (size_t i = 0; r->groups && i < p->n_threads && !r->no_memory; i++)
		r->groups[i] = r->options->key == FATHOM_REPORT_BY_CGROUP
				       ? row_of_cgroup(r, &p->threads[i])
				       : row_of_thread(r, &p->threads[i]);
	return r->groups && !r->no_memory;
}

/* Adds a row for each reason that the profile has: the names of locations in modules of waits. */
static bool add_reasons(struct fathom_report_rows *r)
{
	const struct fathom_profile *p = r->profile;

	r->running = row_named(r, "[on a processor]", FATHOM_REPORT_ROW_REASON);
	r->ready = row_named(r, "[waits for a processor]", FATHOM_REPORT_ROW_REASON);
	r->no_reason = row_named(r, "[reason not known]", FATHOM_REPORT_ROW_REASON);
	r->reasons = malloc((p->n_locations + 1) * sizeof *r->reasons);
	for (size_t i = 0; r->reasons && i < p->n_locations && !r->no_memory; i++) {
		const struct fathom_profile_location *l = &p->locations[i];
		const bool is_reason = l->module != UINT32_MAX && l->answer->symbol &&
				       p->modules[l->module].kind == FATHOM_PROFILE_MODULE_WAITS;

		r->reasons[i] = is_reason
					? row_named(r, l->answer->symbol, FATHOM_REPORT_ROW_REASON)
					: FATHOM_NONE;
	}
	return r->reasons && !r->no_memory;
}

bool fathom_report_add_groups(struct fathom_report_rows *r)
{
	switch (r->options->key) {
	case FATHOM_REPORT_BY_THREAD:
	case FATHOM_REPORT_BY_PROCESS:
	case FATHOM_REPORT_BY_CGROUP:
		return add_threads(r);
	case FATHOM_REPORT_BY_REASON:
		return add_reasons(r);
	default:
		return true;
	}
}

uint32_t fathom_report_group_of(const struct fathom_report_rows *r,
				const struct fathom_profile_sample *s, uint8_t part)
{
	uint32_t reason;

	if (r->groups)
		return r->groups[s->thread];
	if (!r->reasons)
		return FATHOM_NONE;
	if (!fathom_profile_is_wait(part))
		return r->running;
	reason = s->node ? r->reasons[r->profile->nodes[s->node].location] : FATHOM_NONE;
	return reason != FATHOM_NONE             ? reason
	       : part == FATHOM_PROFILE_RUNNABLE ? r->ready
						 : r->no_reason;
}
