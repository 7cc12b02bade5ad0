/* SPDX-License-Identifier: MIT */
#include "cli/compat/strace/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/launch.h"

/* A system call. */
struct row {
	char name[40];
	uint64_t calls;
	uint64_t errors;
	uint64_t ns;
};

struct strace_summary {
	int (*compare)(const void *a, const void *b);
	bool by_wall_clock;
	struct row *rows;
	size_t n;
};

static int by_number(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->name, ((const struct row *)b)->name);
}

static int by_time(const void *a, const void *b)
{
	return by_number(((const struct row *)a)->ns, ((const struct row *)b)->ns);
}

static int by_calls(const void *a, const void *b)
{
	return by_number(((const struct row *)a)->calls, ((const struct row *)b)->calls);
}

static int by_errors(const void *a, const void *b)
{
	return by_number(((const struct row *)a)->errors, ((const struct row *)b)->errors);
}

static int by_nothing(const void *a, const void *b)
{
	(void)a;
	(void)b;
	return 0;
}

static int by_mean(const void *a, const void *b)
{
	const struct row *x = a;
	const struct row *y = b;

	return by_number(x->ns / (x->calls ? x->calls : 1), y->ns / (y->calls ? y->calls : 1));
}

static const struct {
	const char *word;
	int (*compare)(const void *a, const void *b);
} orders[] = {
	{ "time", by_time },     { "time-total", by_time }, { "total-time", by_time },
	{ "avg-time", by_mean }, { "calls", by_calls },     { "count", by_calls },
	{ "errors", by_errors }, { "error", by_errors },    { "name", by_name },
	{ "syscall", by_name },  { "nothing", by_nothing }, { "none", by_nothing },
};

struct strace_summary *strace_summary_create(const struct strace_options *o)
{
	struct strace_summary *s = must(calloc(1, sizeof *s));

	s->by_wall_clock = o->by_wall_clock;
	s->compare = o->order ? NULL : by_time;
	for (size_t i = 0; o->order && i < sizeof orders / sizeof *orders; i++)
		if (!strcmp(o->order, orders[i].word))
			s->compare = orders[i].compare;
	if (!s->compare) {
		complain("-S", "does not sort by that", o->order);
		exit(1);
	}
	return s;
}

void strace_summary_take(struct strace_summary *s, const struct fathom_trace_event *e)
{
	struct row *row = NULL;

	if (e->type != FATHOM_TRACE_SYSCALL || e->syscall->outcome != FATHOM_SYSCALL_HAS_ENDED)
		return;
	for (size_t i = 0; i < s->n && !row; i++)
		if (!strcmp(s->rows[i].name, e->syscall->name))
			row = &s->rows[i];
	if (!row) {
		s->rows = must(realloc(s->rows, (s->n + 1) * sizeof *s->rows));
		row = &s->rows[s->n++];
		*row = (struct row){ .calls = 0 };
		(void)snprintf(row->name, sizeof row->name, "%s", e->syscall->name);
	}
	row->calls++;
	row->errors += e->syscall->error != NULL;
	row->ns += s->by_wall_clock ? e->duration_ns : e->syscall->system_ns;
}

static void print_row(FILE *to, const struct row *row, uint64_t all_ns, const char *name)
{
	const double share = all_ns ? 100.0 * (double)row->ns / (double)all_ns : 0;
	const uint64_t us = row->ns / 1000;

	(void)fprintf(to, "%6.2f %4u.%06u %11llu %9llu ", share, (unsigned)(us / 1000000),
		      (unsigned)(us % 1000000),
		      (unsigned long long)(row->calls ? us / row->calls : 0),
		      (unsigned long long)row->calls);
	if (row->errors)
		(void)fprintf(to, "%9llu ", (unsigned long long)row->errors);
	else
		(void)fprintf(to, "%9s ", "");
	(void)fprintf(to, "%s\n", name);
}

bool strace_summary_finish(struct strace_summary *s, int fd)
{
	static const char rule[] =
		"------ ----------- ----------- --------- --------- ----------------\n";
	struct row sum = { .calls = 0 };
	char *text = NULL;
	size_t n = 0;
	FILE *to = must(open_memstream(&text, &n));
	bool is_written;

	for (size_t i = 0; i < s->n; i++) {
		sum.calls += s->rows[i].calls;
		sum.errors += s->rows[i].errors;
		sum.ns += s->rows[i].ns;
	}
	qsort(s->rows, s->n, sizeof *s->rows, s->compare);
	(void)fprintf(to, "%% time     seconds  usecs/call     calls    errors syscall\n%s", rule);
	for (size_t i = 0; i < s->n; i++)
		print_row(to, &s->rows[i], sum.ns, s->rows[i].name);
	(void)fputs(rule, to);
	if (sum.ns)
		(void)fputs("100.00", to);
	else
		(void)fputs("  0.00", to);
	(void)fprintf(to, " %4u.%06u %11llu %9llu ", (unsigned)(sum.ns / 1000000000),
		      (unsigned)(sum.ns / 1000 % 1000000),
		      (unsigned long long)(sum.calls ? sum.ns / 1000 / sum.calls : 0),
		      (unsigned long long)sum.calls);
	if (sum.errors)
		(void)fprintf(to, "%9llu ", (unsigned long long)sum.errors);
	else
		(void)fprintf(to, "%9s ", "");
	(void)fputs("total\n", to);
	(void)fclose(to);
	is_written = launch_write(fd, text, n);
	free(text);
	free(s->rows);
	free(s);
	return is_written;
}
