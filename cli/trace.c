/* SPDX-License-Identifier: MIT */
/*
 * fathom trace: lists the places where function entries and returns can be recorded; behind "--",
 * runs a program and logs what it calls (trace_run.c).
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/launch.h"
#include "cli/out.h"
#include "cli/trace_print.h"
#include "cli/trace_run.h"

enum {
	OPT_SITES = OPT_VERB,
	OPT_LOG,
	OPT_ONLY,
	OPT_UNDER,
	OPT_NOT,
	OPT_DEPTH,
	OPT_THREAD,
	OPT_EXITS,
	OPT_CLOCK,
	OPT_LOSSY,
	OPT_NO_CHILDREN,
	OPT_NO_FOLD,
};

static const struct verb_option options[] = {
	{ OPT_SITES, "sites", NULL, "of a TARGET, list where can be recorded" },
	{ OPT_LOG, "log", "FILE", "write to FILE, not to stderr" },
	{ 'c', "count", NULL, "print how often each function was called" },
	{ OPT_ONLY, "only", "QUERY", "these functions only" },
	{ OPT_UNDER, "under", "QUERY", "these functions and all that they call" },
	{ OPT_NOT, "not", "QUERY", "not these functions" },
	{ OPT_DEPTH, "depth", "N", "so many levels of calls only" },
	{ OPT_THREAD, "thread", "TID|NAME", "this thread only, or those of this name" },
	{ OPT_EXITS, "exits", NULL, "returns, too, where they are recorded" },
	{ OPT_CLOCK, "clock", "WORD", "full, sparse or none (full)" },
	{ OPT_LOSSY, "lossy", NULL, "lose events, but never wait for the log" },
	{ OPT_NO_CHILDREN, "no-children", NULL, "not what child processes do" },
	{ OPT_NO_FOLD, "no-fold", NULL, "a line for each call, however often repeated" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom trace [OPTION]... -- PROGRAM [ARGUMENT]...\n"
	"       fathom trace --sites [OPTION]... TARGET [QUERY]...\n"
	"Run PROGRAM and log each call of a function, also in its libraries, threads\n"
	"and child processes: thread, nanoseconds since the start, bytes of stack, and\n"
	"name, indented. Functions are recorded that were compiled with\n"
	"-fpatchable-function-entry=18,16, or another option that leaves a site at\n"
	"entries: see fathom-trace(1).\n"
	"\n"
	"With --sites, list the sites in TARGET, the path of an ELF file, core or\n"
	"snapshot, or the number of a process; with QUERY, as for fathom find, those of\n"
	"these functions only.\n";

static const struct verb_options trace_options = {
	.verb = "trace",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY |
		  OPTIONS_THREADS,
	.end = "Exit status: that of PROGRAM; 127 it is not found; 126 it cannot be run; 125\n"
	       "any other failure of fathom. With --sites: 0 all have sites; 1 some have none;\n"
	       "2 TARGET cannot be read. 2 usage.\n",
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
	struct trace_run run; /* of a PROGRAM */
};

static void take_clock(struct trace_run *run, const char *word)
{
	static const char *const words[] = { "full", "sparse", "none" };

	for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(word, words[i])) {
			run->options.clock = i;
			return;
		}
	complain("--clock", "is not full, sparse or none", NULL);
	exit(EXIT_USAGE);
}

static void take_option(struct trace_run *run, int opt)
{
	switch (opt) {
	case OPT_LOG:
		run->log = optarg;
		break;
	case 'c':
		run->counts = true;
		break;
	case OPT_ONLY:
		trace_run_add(&run->only, optarg);
		break;
	case OPT_UNDER:
		trace_run_add(&run->under, optarg);
		break;
	case OPT_NOT:
		trace_run_add(&run->except, optarg);
		break;
	case OPT_DEPTH:
		run->options.depth = parse_count("--depth", optarg, UINT32_MAX);
		break;
	case OPT_THREAD:
		trace_run_add(&run->threads, optarg);
		break;
	case OPT_EXITS:
		run->options.flags |= FATHOM_TRACE_EXITS;
		break;
	case OPT_CLOCK:
		take_clock(run, optarg);
		break;
	case OPT_LOSSY:
		run->options.flags |= FATHOM_TRACE_LOSSY;
		break;
	case OPT_NO_CHILDREN:
		run->options.flags |= FATHOM_TRACE_NO_CHILDREN;
		break;
	default:
		run->options.flags |= FATHOM_TRACE_NO_FOLD;
	}
}

static void parse_options(struct trace *v, int argc, char **argv)
{
	const int end = launch_find(argc, argv);
	struct option_reader reader;
	bool lists = false;
	bool other = false;
	int opt;

	option_reader_init(&reader, &trace_options);
	while ((opt = option_reader_next(&reader, &v->common, end, argv)) != -1) {
		lists |= opt == OPT_SITES;
		other |= opt != OPT_SITES;
		if (opt != OPT_SITES)
			take_option(&v->run, opt);
	}
	if (lists && (end < argc || other)) {
		complain("--sites", "is for a TARGET, without a PROGRAM and its options",
			 "leave it out");
		exit(EXIT_USAGE);
	}
	if (lists)
		common_take_arguments(&v->common, "trace", argc - optind, argv + optind);
	else if (end == argc)
		complain_lacking("trace", "neither a PROGRAM behind -- nor --sites is given");
	else
		v->run.argv = launch_take("trace", optind, end, argc, argv);
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

int verb_trace(int argc, char **argv)
{
	struct trace v = { .sites = NULL };

	common_init(&v.common);
	parse_options(&v, argc, argv);
	if (v.run.argv)
		return trace_run(&v.common, &v.run);
	return common_run(&v.common, answer, &v);
}
