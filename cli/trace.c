/* SPDX-License-Identifier: MIT */
/*
 * fathom trace: lists the places where function entries and returns can be recorded; after "--",
 * runs a program and logs what it calls (trace_run.c); reads and compares what was logged.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/launch.h"
#include "cli/out.h"
#include "cli/trace_diff.h"
#include "cli/trace_print.h"
#include "cli/trace_dispatched.h"
#include "cli/trace_run.h"

enum {
	OPT_SITES = OPT_VERB,
	OPT_READ,
	OPT_DIFF,
	OPT_FOR,
	OPT_TRACE, /* the first of those that fathom_trace_option_get() returns */
};

/* The verb's own options, before the options of a trace. */
static struct verb_option options[MAX_OPTIONS] = {
	{ 'p', NULL, "PID", "trace this process (repeatable)" },
	{ 'e', NULL, "FILE", "with --sites: TARGET is this file" },
	{ OPT_FOR, "for", "TIME", "leave what is traced after TIME seconds, or 5ms" },
	{ OPT_SITES, "sites", NULL, "of a TARGET, list where can be recorded" },
	{ OPT_READ, "read", "FILE", "tell of what -o has written, on stdout" },
	{ OPT_DIFF, "diff", NULL, "of two FILEs that -o has written, where they part" },
};

/* Adds the options of a trace. */
static void add_trace_options(void)
{
	struct verb_option *to = options;
	const struct fathom_trace_option *o;

	while (to->value)
		to++;
	for (size_t i = 0; (o = fathom_trace_option_get(i)); i++)
		if (o->flags & FATHOM_TRACE_OPTION_COMMAND)
			*to++ = (struct verb_option){ o->letter ? o->letter : OPT_TRACE + (int)i,
						      o->name, o->argument, o->help };
}

static const char usage[] =
	"Usage: fathom trace [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
	"       fathom trace -p PID... [OPTION]...\n"
	"       fathom trace --read FILE [OPTION]...\n"
	"       fathom trace --diff [OPTION]... FILE FILE\n"
	"       fathom trace --sites [OPTION]... TARGET [QUERY]...\n"
	"Run PROGRAM and log each call of a function, also in its libraries, threads\n"
	"and child processes: thread, nanoseconds since the start, bytes of stack, and\n"
	"name, indented. Functions are recorded that were compiled with\n"
	"-fpatchable-function-entry=18,16, or another option that leaves a site at\n"
	"entries: see fathom-trace(1); of a program without sites, calls of libraries.\n"
	"With -p, trace a process that runs, until it ends, or until Ctrl-C: then it is\n"
	"left as it was.\n"
	"\n"
	"With --sites, list the sites in TARGET, the path of an ELF file, core or\n"
	"snapshot, or the number of a process; with QUERY, as for fathom find, those of\n"
	"these functions only.\n";

static const struct verb_options trace_options = {
	.verb = "trace",
	.usage = usage,
	.options = options,
	.common = OPTIONS_JSON | OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_THREADS,
	.end = "Exit status: that of PROGRAM; 127 it is not found; 126 it cannot be run; 125\n"
	       "any other failure of fathom. With --sites: 0 all have sites; 1 some have none.\n"
	       "With --read: 0; 1 nothing was selected. With --diff: 0 the same calls; 1 they\n"
	       "part. 2 TARGET or FILE cannot be read, or usage.\n",
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
	struct trace_wants wants; /* of a PROGRAM or a trace file */
	char **program;           /* and its arguments; NULL: none */
	const char *read;         /* trace file; NULL: none */
	int32_t *pids;            /* processes to attach to */
	size_t n_pids;
	const char *pid;  /* the last of them, as it was given; NULL: none */
	const char *file; /* after -e; NULL: none */
	bool diffs;
	bool lists;
};

/* Takes a process to attach to. */
static void take_pid(struct trace *v, const char *text)
{
	v->pid = text;
	v->pids = must(realloc(v->pids, (v->n_pids + 1) * sizeof *v->pids));
	v->pids[v->n_pids++] = (int32_t)parse_count("-p", text, INT32_MAX);
}

/* Returns the option of a trace whose value getopt_long() has returned. */
static const struct fathom_trace_option *trace_option(int opt)
{
	const struct fathom_trace_option *o;

	for (size_t i = 0; (o = fathom_trace_option_get(i)); i++)
		if (opt == (o->letter ? o->letter : OPT_TRACE + (int)i))
			break;
	return o;
}

/* Takes an option of a trace; exits if its argument is wrong. */
static void take_trace_option(struct trace_wants *w, const struct fathom_trace_option *o)
{
	const fathom_err err = fathom_trace_option_take(o, optarg, &w->settings);
	char name[32];

	w->given = must(realloc(w->given, (w->n_given + 1) * sizeof *w->given));
	w->given[w->n_given++] = (struct trace_given){ o, optarg };
	if (!err)
		return;
	(void)snprintf(name, sizeof name, "--%s", o->name ? o->name : "");
	if (err == FATHOM_E_MEMORY)
		complain(name, "out of memory", NULL);
	else if (o->limit)
		(void)parse_count(name, optarg, o->limit);
	else
		complain(name, o->refusal, strcmp(o->name, "at") != 0 ? NULL : optarg);
	exit(EXIT_USAGE);
}

/* Takes an option; returns whether it goes with --sites. */
static bool take_option(struct trace *v, int opt)
{
	const struct fathom_trace_option *o;

	switch (opt) {
	case OPT_SITES:
		v->lists = true;
		return true;
	case 'p':
		take_pid(v, optarg);
		return true;
	case 'e':
		v->file = optarg;
		return true;
	case OPT_READ:
		v->read = optarg;
		return false;
	case OPT_DIFF:
		v->diffs = true;
		return false;
	case OPT_FOR:
		v->wants.seconds = parse_seconds("--for", optarg);
		return false;
	default:
		o = trace_option(opt);
		take_trace_option(&v->wants, o);
		return o->name && !strcmp(o->name, "calls");
	}
}

/* Refuses options that do not go together. */
static void check_options(const struct trace *v, bool has_program, bool has_others)
{
	const struct trace_wants *w = &v->wants;
	const int n_ways =
		v->lists + (v->read != NULL) + v->diffs + has_program + (v->n_pids && !v->lists);

	if (v->lists && (has_program || has_others)) {
		complain("--sites", "is for a TARGET, without a PROGRAM and its options",
			 "leave it out");
		exit(EXIT_USAGE);
	}
	if (!n_ways)
		complain_lacking("trace", "neither a PROGRAM, -p PID, --read FILE nor "
					  "--sites is given");
	if (n_ways > 1) {
		complain("fathom trace", "takes one of a PROGRAM, -p, --read and --diff", NULL);
		exit(EXIT_USAGE);
	}
	if (w->settings.flags & FATHOM_TRACE_SETTINGS_COUNTS && w->settings.format) {
		complain("-c", "counts, and another option wants a file or a tree",
			 "--read can do it afterwards");
		exit(EXIT_USAGE);
	}
}

/* Takes the argument of -p or -e as the target of --sites. */
static void take_target(struct trace *v)
{
	if (v->n_pids + (v->file != NULL) > 1)
		complain_lacking("trace", "-p and -e name more than one TARGET");
	if (!v->file && !v->pid)
		return;
	v->common.target = v->file ? v->file : v->pid;
	v->common.target_kind = v->file ? TARGET_FILE : TARGET_PID;
}

/* Takes the options among the first @n of @argv. */
static void read_options(struct trace *v, struct option_reader *reader, int n, char **argv,
			 bool *has_others)
{
	int opt;

	while ((opt = option_reader_next(reader, &v->common, n, argv)) != -1)
		*has_others |= !take_option(v, opt);
}

static void parse_options(struct trace *v, int argc, char **argv)
{
	const int end = launch_find(argc, argv);
	struct option_reader reader;
	bool has_others = false;
	int first;

	add_trace_options();
	option_reader_init(&reader, &trace_options);
	/* Words after a PROGRAM are the program's. */
	first = option_reader_first(&reader, end, argv);
	read_options(v, &reader, first, argv, &has_others);
	if (end == argc && first < argc && !v->lists && !v->read && !v->diffs && !v->n_pids)
		v->program = argv + first;
	else
		read_options(v, &reader, end, argv, &has_others);
	check_options(v, v->program || end < argc, has_others);
	if (v->common.json)
		v->wants.settings.flags |= FATHOM_TRACE_SETTINGS_JSON;
	if (v->wants.syscalls.method)
		v->wants.options.syscalls = &v->wants.syscalls;
	if (v->lists)
		take_target(v);
	if (v->lists)
		common_take_arguments(&v->common, "trace", argc - optind, argv + optind);
	else if (!v->program && end < argc)
		v->program = launch_take("trace", optind, end, argc, argv);
	else if (!v->program && argc - optind != (v->diffs ? 2 : 0))
		complain_lacking("trace",
				 v->diffs  ? "--diff takes two FILEs"
				 : v->read ? "--read takes one FILE and no more"
					   : "-p takes one PID, and no PROGRAM goes with it");
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
 * Collects the addresses of the matches of one query, from match *@i on, which it moves after the
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
	v->summary.has_slots = v->wants.options.flags & FATHOM_TRACE_CALLS;
	for (size_t i = 0; i < fathom_sites_slot_count(v->sites); i++) {
		const struct fathom_call_slot *s = fathom_sites_slot_get(v->sites, i);

		if (v->common.json)
			trace_print_slot_json(&v->out, v->sites, s);
		else
			trace_print_slot(&v->out, v->sites, s);
	}
	v->unanswered = !v->summary.count && !fathom_sites_slot_count(v->sites);
}

static int answer(void *verb, struct fathom_target *target)
{
	struct fathom_sites_options o = { .size = sizeof o, .flags = FATHOM_SITES_NAMES };
	struct trace *v = verb;
	struct fathom_errinfo info;
	size_t next_note = 0;

	v->target = target;
	out_init(&v->out);
	if (v->wants.options.flags & FATHOM_TRACE_CALLS && !v->common.n_arguments)
		o.flags |= FATHOM_SITES_CALLS;
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
	struct trace v = { .n_pids = 0 };

	common_init(&v.common);
	trace_wants_init(&v.wants);
	parse_options(&v, argc, argv);
	if (v.program && v.wants.syscalls.method == FATHOM_SYSCALL_BY_DISPATCH)
		return trace_run_dispatched(&v.wants, v.program);
	if (v.program)
		return trace_run(&v.common, &v.wants, v.program);
	if (!v.lists && v.n_pids)
		return trace_attach(&v.common, &v.wants, v.pids, v.n_pids);
	if (v.read)
		return trace_read(&v.common, &v.wants, v.read);
	if (v.diffs)
		return trace_diff(&v.common, &v.wants, argv[optind], argv[optind + 1]);
	return common_run(&v.common, answer, &v);
}
