/* SPDX-License-Identifier: MIT */
/*
 * Groups of a report: rows of threads, processes, cgroups, reasons or wakers, each with the
 * functions of its samples.
 */
#include <stdlib.h>

#include "host/profile/report_rows.h"

/* Returns the row of @kind that thread @t has, or its process. */
static uint32_t row_of_thread(struct fathom_report_rows *r, const struct fathom_profile_thread *t,
			      uint8_t kind)
{
	const bool is_thread = kind != FATHOM_REPORT_ROW_PROCESS;
	const struct fathom_report_row row = { .name = fathom_report_keep_text(
						       r, is_thread ? t->name : t->process),
					       .pid = t->pid,
					       .tid = is_thread ? t->tid : 0,
					       .kind = kind,
					       .cgroup = fathom_report_keep_text(r, t->cgroup) };
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

/* Makes the rows of @kind of all threads at *@ret. */
static bool add_threads(struct fathom_report_rows *r, uint8_t kind, uint32_t **ret)
{
	const struct fathom_profile *p = r->profile;
	uint32_t *rows = malloc((p->n_threads + 1) * sizeof *rows);

	*ret = rows;
	for (size_t i = 0; rows && i < p->n_threads && !r->no_memory; i++)
		rows[i] = kind == FATHOM_REPORT_ROW_CGROUP ? row_of_cgroup(r, &p->threads[i])
							   : row_of_thread(r, &p->threads[i], kind);
	return rows && !r->no_memory;
}

/* Adds the rows of @kind of samples that are no waits, and of waits for a processor. */
static void add_other(struct fathom_report_rows *r, uint8_t kind)
{
	r->running = row_named(r, "[on a processor]", kind);
	r->ready = row_named(r, "[waits for a processor]", kind);
}

static bool add_wakers(struct fathom_report_rows *r)
{
	add_other(r, FATHOM_REPORT_ROW_WAKER);
	r->interrupt = row_named(r, "[interrupt]", FATHOM_REPORT_ROW_WAKER);
	r->not_known = row_named(r, "[waker not known]", FATHOM_REPORT_ROW_WAKER);
	return add_threads(r, FATHOM_REPORT_ROW_WAKER, &r->wakers);
}

/* Adds a row for each reason that the profile has: the names of locations in modules of waits. */
static bool add_reasons(struct fathom_report_rows *r)
{
	const struct fathom_profile *p = r->profile;

	add_other(r, FATHOM_REPORT_ROW_REASON);
	r->not_known = row_named(r, "[reason not known]", FATHOM_REPORT_ROW_REASON);
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
		return add_threads(r, FATHOM_REPORT_ROW_THREAD, &r->groups);
	case FATHOM_REPORT_BY_PROCESS:
		return add_threads(r, FATHOM_REPORT_ROW_PROCESS, &r->groups);
	case FATHOM_REPORT_BY_CGROUP:
		return add_threads(r, FATHOM_REPORT_ROW_CGROUP, &r->groups);
	case FATHOM_REPORT_BY_REASON:
		return add_reasons(r);
	case FATHOM_REPORT_BY_WAKER:
		return add_wakers(r);
	default:
		return true;
	}
}

/* Returns the row of who has ended the wait that @s is of. */
static uint32_t row_of_waker(const struct fathom_report_rows *r,
			     const struct fathom_profile_sample *s)
{
	if (s->part == FATHOM_PROFILE_RUNNABLE)
		return r->ready;
	return s->waker == FATHOM_PROFILE_INTERRUPT ? r->interrupt
	       : s->waker                           ? r->wakers[s->waker - 1]
						    : r->not_known;
}

uint32_t fathom_report_group_of(const struct fathom_report_rows *r,
				const struct fathom_profile_sample *s, uint8_t part)
{
	uint32_t reason;

	if (r->groups)
		return r->groups[s->thread];
	if (!fathom_report_has_groups(r))
		return FATHOM_NONE;
	if (!fathom_profile_is_wait(part))
		return r->running;
	if (r->wakers)
		return row_of_waker(r, s);
	reason = s->node ? r->reasons[r->profile->nodes[s->node].location] : FATHOM_NONE;
	return reason != FATHOM_NONE             ? reason
	       : part == FATHOM_PROFILE_RUNNABLE ? r->ready
						 : r->not_known;
}
