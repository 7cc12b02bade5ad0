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
	uint64_t least_ns;
	uint64_t most_ns;
};

enum column { SHARE, TOTAL, LEAST, MOST, MEAN, CALLS, ERRORS, NAME, N_COLUMNS };

/* Bytes of what stands in a cell. */
#define CELL 48

struct strace_summary {
	int (*compare)(const void *a, const void *b);
	bool by_wall_clock;
	struct row *rows;
	size_t n;
	uint8_t columns[N_COLUMNS]; /* enum column, in the order in which they are shown */
	size_t n_columns;
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

static int by_least(const void *a, const void *b)
{
	return by_number(((const struct row *)a)->least_ns, ((const struct row *)b)->least_ns);
}

static int by_most(const void *a, const void *b)
{
	return by_number(((const struct row *)a)->most_ns, ((const struct row *)b)->most_ns);
}

/* Words of -S and -U. The first of a column is strace's own name for it. */
static const struct {
	const char *word;
	int (*compare)(const void *a, const void *b);
	uint8_t column; /* N_COLUMNS: none */
} words[] = {
	{ "time-percent", by_time, SHARE }, { "time", by_time, SHARE },
	{ "total-time", by_time, TOTAL },   { "time-total", by_time, TOTAL },
	{ "min-time", by_least, LEAST },    { "shortest", by_least, LEAST },
	{ "time-min", by_least, LEAST },    { "max-time", by_most, MOST },
	{ "longest", by_most, MOST },       { "time-max", by_most, MOST },
	{ "avg-time", by_mean, MEAN },      { "time-avg", by_mean, MEAN },
	{ "calls", by_calls, CALLS },       { "count", by_calls, CALLS },
	{ "errors", by_errors, ERRORS },    { "error", by_errors, ERRORS },
	{ "name", by_name, NAME },          { "syscall", by_name, NAME },
	{ "syscall-name", by_name, NAME },  { "nothing", by_nothing, N_COLUMNS },
	{ "none", by_nothing, N_COLUMNS },
};

#define N_WORDS (sizeof words / sizeof *words)

static const struct {
	const char *head;
	int width;
} columns[N_COLUMNS] = {
	[SHARE] = { "% time", 6 },  [TOTAL] = { "seconds", 11 },   [LEAST] = { "shortest", 8 },
	[MOST] = { "longest", 8 },  [MEAN] = { "usecs/call", 11 }, [CALLS] = { "calls", 9 },
	[ERRORS] = { "errors", 9 }, [NAME] = { "syscall", 16 },
};

static _Noreturn void fail(const char *option, const char *why, const char *word)
{
	complain(option, why, word);
	exit(1);
}

static bool has_column(const struct strace_summary *s, uint8_t column)
{
	return memchr(s->columns, column, s->n_columns) != NULL;
}

static void add_column(struct strace_summary *s, const char *word)
{
	size_t i = 0;

	while (i < N_WORDS && (strcmp(word, words[i].word) != 0 || words[i].column == N_COLUMNS))
		i++;
	if (i == N_WORDS)
		fail("-U", "has no such column", word);
	if (has_column(s, words[i].column))
		fail("-U", "has a column twice", word);
	s->columns[s->n_columns++] = words[i].column;
}

static void take_columns(struct strace_summary *s, const char *text)
{
	char *copy = must(strdup(text));
	char *rest = copy;
	const char *word;

	while ((word = strsep(&rest, ",")))
		add_column(s, word);
	if (!has_column(s, NAME))
		s->columns[s->n_columns++] = NAME;
	free(copy);
}

struct strace_summary *strace_summary_create(const struct strace_options *o)
{
	struct strace_summary *s = must(calloc(1, sizeof *s));

	s->by_wall_clock = o->by_wall_clock;
	s->compare = o->order ? NULL : by_time;
	for (size_t i = 0; o->order && i < N_WORDS; i++)
		if (!strcmp(o->order, words[i].word))
			s->compare = words[i].compare;
	if (!s->compare)
		fail("-S", "does not sort by that", o->order);
	take_columns(s, o->columns ? o->columns
				   : "time-percent,total-time,avg-time,calls,errors,name");
	return s;
}

void strace_summary_take(struct strace_summary *s, const struct fathom_trace_event *e)
{
	struct row *row = NULL;
	uint64_t ns;

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
	ns = s->by_wall_clock ? e->duration_ns : e->syscall->system_ns;
	if (!row->calls || ns < row->least_ns)
		row->least_ns = ns;
	if (ns > row->most_ns)
		row->most_ns = ns;
	row->calls++;
	row->errors += e->syscall->error != NULL;
	row->ns += ns;
}

static void write_seconds(char text[CELL], uint64_t ns)
{
	(void)snprintf(text, CELL, "%llu.%06u", (unsigned long long)(ns / 1000000000),
		       (unsigned)(ns / 1000 % 1000000));
}

/* Writes what @row has in @column, if the calls of all took @all_ns. */
static void write_cell(char text[CELL], const struct row *row, uint8_t column, uint64_t all_ns)
{
	*text = '\0';
	switch ((enum column)column) {
	case SHARE:
		(void)snprintf(text, CELL, "%.2f",
			       all_ns ? 100.0 * (double)row->ns / (double)all_ns : 0);
		break;
	case TOTAL:
		write_seconds(text, row->ns);
		break;
	case LEAST:
		write_seconds(text, row->least_ns);
		break;
	case MOST:
		write_seconds(text, row->most_ns);
		break;
	case MEAN:
		(void)snprintf(text, CELL, "%llu",
			       (unsigned long long)(row->calls ? row->ns / 1000 / row->calls : 0));
		break;
	case CALLS:
		(void)snprintf(text, CELL, "%llu", (unsigned long long)row->calls);
		break;
	case ERRORS:
		if (row->errors)
			(void)snprintf(text, CELL, "%llu", (unsigned long long)row->errors);
		break;
	default:
		(void)snprintf(text, CELL, "%s", row->name);
	}
}

/* Prints a cell of column @i; names are on the left. */
static void print_cell(FILE *to, const struct strace_summary *s, size_t i, int width,
		       const char *text)
{
	const bool is_last = i + 1 == s->n_columns;

	if (s->columns[i] == NAME)
		width = is_last ? 0 : -width;
	(void)fprintf(to, "%*s%s", width, text, is_last ? "\n" : " ");
}

static void print_rule(FILE *to, const struct strace_summary *s, const int *widths)
{
	for (size_t i = 0; i < s->n_columns; i++) {
		for (int k = 0; k < widths[i]; k++)
			(void)fputc('-', to);
		(void)fputc(i + 1 < s->n_columns ? ' ' : '\n', to);
	}
}

static void print_row(FILE *to, const struct strace_summary *s, const int *widths,
		      const struct row *row, uint64_t all_ns)
{
	char text[CELL];

	for (size_t i = 0; i < s->n_columns; i++) {
		write_cell(text, row, s->columns[i], all_ns);
		print_cell(to, s, i, widths[i], text);
	}
}

/* Makes columns as wide as what stands in them in @row. */
static void widen(const struct strace_summary *s, int *widths, const struct row *row)
{
	for (size_t i = 0; i < s->n_columns; i++) {
		char text[CELL];
		int width;

		write_cell(text, row, s->columns[i], row->ns);
		width = (int)strlen(text) + (s->columns[i] == NAME);
		widths[i] = width > widths[i] ? width : widths[i];
	}
}

static struct row sum_up(const struct strace_summary *s)
{
	struct row sum = { .name = "total", .least_ns = s->n ? s->rows[0].least_ns : 0 };

	for (size_t i = 0; i < s->n; i++) {
		const struct row *row = &s->rows[i];

		sum.calls += row->calls;
		sum.errors += row->errors;
		sum.ns += row->ns;
		sum.least_ns = row->least_ns < sum.least_ns ? row->least_ns : sum.least_ns;
		sum.most_ns = row->most_ns > sum.most_ns ? row->most_ns : sum.most_ns;
	}
	return sum;
}

static void print(FILE *to, struct strace_summary *s)
{
	const struct row sum = sum_up(s);
	int widths[N_COLUMNS] = { 0 };
	char text[CELL];

	for (size_t i = 0; i < s->n_columns; i++)
		widths[i] = columns[s->columns[i]].width;
	for (size_t i = 0; i < s->n; i++)
		widen(s, widths, &s->rows[i]);
	widen(s, widths, &sum);
	qsort(s->rows, s->n, sizeof *s->rows, s->compare);
	for (size_t i = 0; i < s->n_columns; i++)
		print_cell(to, s, i, widths[i], columns[s->columns[i]].head);
	print_rule(to, s, widths);
	for (size_t i = 0; i < s->n; i++)
		print_row(to, s, widths, &s->rows[i], sum.ns);
	print_rule(to, s, widths);
	for (size_t i = 0; i < s->n_columns; i++) {
		write_cell(text, &sum, s->columns[i], sum.ns);
		print_cell(to, s, i, widths[i], s->columns[i] == SHARE ? "100.00" : text);
	}
}

bool strace_summary_finish(struct strace_summary *s, int fd)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = must(open_memstream(&text, &n));
	bool is_written;

	if (s->n)
		print(to, s);
	(void)fclose(to);
	is_written = launch_write(fd, text, n);
	free(text);
	free(s->rows);
	free(s);
	return is_written;
}
