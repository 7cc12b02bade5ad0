/* SPDX-License-Identifier: MIT */
/* fathom trace: so far, lists the places where function entries and returns can be recorded. */
#include <elf.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/out.h"
#include "cli/trace_print.h"

enum {
	OPT_SITES = OPT_VERB,
};

static const struct verb_option options[] = {
	{ OPT_SITES, "sites", NULL, "list where entries and returns can be recorded" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom trace --sites [OPTION]... TARGET [QUERY]...\n"
	"List the places in TARGET, the path of an ELF file, core or snapshot, or the\n"
	"number of a process, at which function entries and returns can be recorded;\n"
	"with QUERY, as for fathom find, those of these functions only.\n";

static const struct verb_options trace_options = {
	.verb = "trace",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY |
		  OPTIONS_THREADS,
	.end = "Exit status: 0 all have sites; 1 some have none; 2 usage, or TARGET cannot be\n"
	       "read.\n",
};

struct trace {
	struct common common;
	struct fathom_target *target;
	struct fathom_sites *sites;
	uint64_t *starts; /* addresses of the functions that a query selects, sorted */
	size_t n_starts;
	bool by_range; /* a line selects the function around it, else the one that starts there */
	struct out out;
	struct trace_summary summary;
	bool unanswered;
};

static void parse_options(struct trace *v, int argc, char **argv)
{
	struct option_reader reader;
	bool lists = false;
	int opt;

	option_reader_init(&reader, &trace_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1)
		lists |= opt == OPT_SITES;
	if (!lists)
		complain_lacking("trace", "--sites is not given");
	common_take_arguments(&v->common, "trace", argc - optind, argv + optind);
}

static void print(struct trace *v, const char *query, const struct fathom_site *s)
{
	if (v->common.json)
		trace_print_json(&v->out, query, v->sites, s);
	else
		trace_print_text(&v->out, v->sites, s);
	v->summary.n_kind[s->kind]++;
	v->summary.count++;
}

static void print_missing(struct trace *v, const char *query, const char *reason)
{
	v->unanswered = true;
	if (v->common.json)
		trace_print_missing_json(&v->out, query, reason);
	else
		trace_print_missing(&v->out, query, reason);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a;
	const uint64_t y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns whether the query selects the function of @s. */
static bool is_selected(const struct trace *v, const struct fathom_site *s)
{
	const uint64_t size = v->by_range && s->answer->size ? s->answer->size : 1;
	size_t low = 0;
	size_t high = v->n_starts;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (v->starts[mid] < s->function)
			low = mid + 1;
		else
			high = mid;
	}
	return low < v->n_starts && v->starts[low] - s->function < size;
}

/*
 * Collects the addresses of the matches of one query, from match *@i on, which it moves behind the
 * last. Returns why there are none, or NULL.
 */
static const char *select_functions(struct trace *v, const struct fathom_matches *matches,
				    size_t *i)
{
	const uint32_t query = fathom_matches_get(matches, *i)->query;
	const char *reason = NULL;

	v->n_starts = 0;
	for (; *i < fathom_matches_count(matches); ++*i) {
		const struct fathom_match *m = fathom_matches_get(matches, *i);

		if (m->query != query)
			break;
		v->by_range = m->kind == FATHOM_MATCH_LINE;
		if (m->flags & FATHOM_MATCH_ADDRESS)
			v->starts[v->n_starts++] = m->address;
		else
			reason = fathom_reason_name((enum fathom_reason)m->reason);
	}
	qsort(v->starts, v->n_starts, sizeof *v->starts, compare);
	return v->n_starts ? NULL : reason;
}

static void answer_query(struct trace *v, const char *query, const char *reason)
{
	const size_t before = v->summary.count;

	for (size_t i = 0; !reason && i < fathom_sites_count(v->sites); i++) {
		const struct fathom_site *s = fathom_sites_get(v->sites, i);

		if (is_selected(v, s))
			print(v, query, s);
	}
	if (v->summary.count == before)
		print_missing(v, query, reason ? reason : "no-site");
}

/* Exits on failure. */
static void fail(struct trace *v, const struct fathom_errinfo *info)
{
	out_flush(&v->out);
	complain_error(info);
	exit(EXIT_USAGE);
}

static void answer_queries(struct trace *v)
{
	char **queries = v->common.arguments;
	const size_t n = (size_t)v->common.n_arguments;
	struct fathom_matches *matches;
	struct fathom_errinfo info;
	size_t next = 0;

	if (fathom_find(v->target, NULL, (const char *const *)queries, n, &matches, &info))
		fail(v, &info);
	v->starts = must(malloc((fathom_matches_count(matches) + 1) * sizeof *v->starts));
	for (size_t i = 0; i < n; i++) {
		const char *reason = select_functions(v, matches, &next);

		answer_query(v, queries[i], reason);
	}
	free(v->starts);
	fathom_matches_free(matches);
}

static void answer_whole(struct trace *v)
{
	for (size_t i = 0; i < fathom_sites_count(v->sites); i++)
		print(v, NULL, fathom_sites_get(v->sites, i));
	v->unanswered = !v->summary.count;
}

static int answer(void *verb, struct fathom_target *target)
{
	const struct fathom_sites_options o = { .size = sizeof o, .flags = FATHOM_SITES_NAMES };
	struct trace *v = verb;
	struct fathom_errinfo info;
	size_t next_note = 0;

	v->target = target;
	out_init(&v->out);
	if (fathom_trace_sites(target, &o, &v->sites, &info))
		fail(v, &info);
	if (v->common.n_arguments)
		answer_queries(v);
	else
		answer_whole(v);
	common_check(target);
	if (v->common.json)
		trace_print_modules_json(&v->out, v->sites);
	else
		trace_print_summary(&v->out, v->sites, &v->summary);
	out_flush(&v->out);
	common_print_notes(target, &next_note);
	fathom_sites_free(v->sites);
	out_deinit(&v->out);
	return common_status(&v->out, v->unanswered);
}

static int write_log(void *data, const char *text, size_t size)
{
	(void)data;
	while (size) {
		const ssize_t n = write(STDERR_FILENO, text, size);

		if (n < 0 && errno != EINTR)
			return 0;
		text += n < 0 ? 0 : n;
		size -= n < 0 ? 0 : (size_t)n;
	}
	return 1;
}

/* Runs a program, and ends as it does. */
static int run_program(struct common *c, char **argv)
{
	const struct fathom_trace_options o = { .size = sizeof o, .write = write_log };
	struct fathom_trace_result r = { .size = sizeof r };
	struct fathom_errinfo info;

	if (fathom_trace_run(common_session(c), argv, &o, &r, &info)) {
		complain_error(&info);
		return EXIT_USAGE;
	}
	return WIFSIGNALED(r.status) ? 128 + WTERMSIG(r.status) : WEXITSTATUS(r.status);
}

int verb_trace(int argc, char **argv)
{
	struct trace v = { .sites = NULL };

	if (argc > 2 && !strcmp(argv[1], "--")) {
		common_init(&v.common);
		return run_program(&v.common, argv + 2);
	}
	common_init(&v.common);
	parse_options(&v, argc, argv);
	return common_run(&v.common, answer, &v);
}
