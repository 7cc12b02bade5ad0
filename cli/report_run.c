/* SPDX-License-Identifier: MIT */
/* fathom report: where a profile says that time goes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/frames_option.h"
#include "cli/report_annotate.h"
#include "cli/report_print.h"

enum {
	OPT_BY = OPT_VERB,
	OPT_TOP,
	OPT_MIN,
	OPT_BOTTOM_UP,
	OPT_CALLERS,
	OPT_CALLEES,
	OPT_FROM,
	OPT_TO,
	OPT_ONLY,
	OPT_UNDER,
	OPT_NOT,
	OPT_NAMES_ONLY,
	OPT_NO_DEMANGLE,
	OPT_EXPORT,
	OPT_DIFF,
	OPT_PER,
	OPT_TIME,
	OPT_ANNOTATE,
	OPT_HOT_FIRST,
	OPT_ALL_LINES,
	OPT_INTEL,
	OPT_NO_SOURCE,
	OPT_FRAMES,
};

static const struct verb_option options[] = {
	{ OPT_BY, "by", "KEY", "sum up by functions (default), or other things" },
	{ OPT_TIME, "time", "cpu|waiting|wall", "what to sum up (default cpu, by reason waiting)" },
	{ OPT_TOP, "top", "N", "print so many of them (default 20; 0: all)" },
	{ OPT_MIN, "min", "PERCENT", "leave out branches below it (default 1)" },
	{ OPT_BOTTOM_UP, "bottom-up", NULL, "a tree from functions to their callers" },
	{ OPT_CALLERS, "callers", "QUERY", "a tree of what leads to these functions" },
	{ OPT_CALLEES, "callees", "QUERY", "a tree of what these functions call" },
	{ OPT_ANNOTATE, "annotate", "QUERY", "instructions and source lines of these functions" },
	{ OPT_HOT_FIRST, "hot-first", NULL, "the hottest of their lines first" },
	{ OPT_ALL_LINES, "all-lines", NULL, "also code that is far from all samples" },
	{ OPT_INTEL, "intel", NULL, "instructions in Intel syntax" },
	{ OPT_FROM, "from", "TIME", "from so long after the begin on, as in 1.5s" },
	{ OPT_TO, "to", "TIME", "up to so long after the begin" },
	{ OPT_ONLY, "only", "QUERY", "these functions only (repeatable)" },
	{ OPT_UNDER, "under", "QUERY", "in these and what they call only (repeatable)" },
	{ OPT_NOT, "not", "QUERY", "not these functions (repeatable)" },
	{ OPT_FRAMES, "frames", "KIND", "of scripts: merged, script, native or all" },
	{ OPT_DIFF, "diff", NULL, "compare two profiles by function" },
	{ OPT_PER, "per", "cpu|wall|N[,N]", "divisor of weights (default cpu, of waits wall)" },
	{ OPT_EXPORT, "export", "FORMAT", "write a format of other programs, picture or page" },
	{ 'o', "output", "FILE", "to FILE, not standard output; FILE.html: a page" },
	{ OPT_NO_SOURCE, "no-source", NULL, "a page without source lines and instructions" },
	{ OPT_NAMES_ONLY, "names-only", NULL, "no files, lines or inlined functions" },
	{ OPT_NO_DEMANGLE, "no-demangle", NULL, "print names as they are linked" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom report [OPTION]... FILE\n"
	"       fathom report --diff [OPTION]... A B\n"
	"       fathom report -o PAGE.html [--diff] [OPTION]... FILE...\n"
	"Print where FILE, a profile of 'fathom record', says that time goes: what was\n"
	"recorded, the functions with the most, and the calls that lead to them. FILE\n"
	"may be of other programs, too: perf.data, pprof, .cpuprofile, collapsed stacks.\n"
	"\n"
	"A KEY is function, line, module, thread, process, cgroup, reason: what threads\n"
	"wait for, or waker: who has ended the wait.\n"
	"\n"
	"A FORMAT is collapsed, pprof, speedscope, firefox, perfetto, svg (a flame\n"
	"graph), svg-bars or page (of HTML).\n"
	"\n"
	"A QUERY is a name, a pattern or an /expression/, as of 'fathom find'.\n";

static const struct verb_options report_options = {
	.verb = "report",
	.usage = usage,
	.options = options,
	.common = OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR | OPTIONS_DEBUG |
		  OPTIONS_MEMORY | OPTIONS_THREADS | OPTIONS_COLOR | OPTIONS_SOURCE_DIR,
	.end = "Exit status: 0 done; 1 FILE has no samples, or none of the functions that were\n"
	       "asked for; 2 usage, or FILE cannot be read.\n",
};

/* Flags of --no-source. */
#define NO_SOURCE (FATHOM_ANNOTATE_NO_INSTRUCTIONS | FATHOM_ANNOTATE_NO_SOURCE)

/* Queries of a repeatable option. */
struct queries {
	const char **items;
	size_t n;
};

struct report {
	struct common common;
	struct fathom_profile_resolve_options names;
	struct fathom_report_options options;
	struct queries only;
	struct queries under;
	struct queries except;
	const char *callers; /* NULL: not asked for */
	const char *callees; /* likewise */
	enum frames_option frames;
	bool has_time;
	bool has_top;
	bool has_min;
	int export;         /* enum fathom_profile_format; 0: none */
	const char *output; /* file that is exported to; NULL: standard output */
	const char *second; /* B of --diff */
	bool is_diff;
	bool has_per;
	struct fathom_diff_options diff;
	struct fathom_annotation_options annotation; /* its query is NULL: not asked for */
	struct annotate_print annotate;
	struct report_print print;
	struct out out;
};

static void add_query(struct queries *q, const char *text)
{
	q->items = must(realloc(q->items, (q->n + 1) * sizeof *q->items));
	q->items[q->n++] = text;
}

const char *const report_key_words[REPORT_KEYS] = {
	[FATHOM_REPORT_BY_FUNCTION] = "function", [FATHOM_REPORT_BY_LINE] = "line",
	[FATHOM_REPORT_BY_MODULE] = "module",     [FATHOM_REPORT_BY_THREAD] = "thread",
	[FATHOM_REPORT_BY_PROCESS] = "process",   [FATHOM_REPORT_BY_REASON] = "reason",
	[FATHOM_REPORT_BY_CGROUP] = "cgroup",     [FATHOM_REPORT_BY_WAKER] = "waker",
};

static uint32_t parse_key(const char *text)
{
	for (uint32_t i = 0; i < REPORT_KEYS; i++)
		if (strcmp(text, report_key_words[i]) == 0)
			return i;
	complain("--by", "is function, line, module, thread, process, reason, cgroup or waker",
		 NULL);
	exit(EXIT_USAGE);
}

const char *const report_time_words[3] = {
	[FATHOM_REPORT_CPU] = "cpu",
	[FATHOM_REPORT_WAITING] = "waiting",
	[FATHOM_REPORT_WALL] = "wall",
};

static uint32_t parse_time_word(const char *text)
{
	for (uint32_t i = 0; i < sizeof report_time_words / sizeof *report_time_words; i++)
		if (strcmp(text, report_time_words[i]) == 0)
			return i;
	complain("--time", "is cpu, waiting or wall", NULL);
	exit(EXIT_USAGE);
}

/* Returns the millionths that @text states, a number of percent. */
static uint32_t parse_percent(const char *text)
{
	char *end;
	const double value = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%") != 0) || !(value >= 0 && value <= 100)) {
		complain("--min", "is a number of percent from 0 to 100", NULL);
		exit(EXIT_USAGE);
	}
	return (uint32_t)(value * 10000 + 0.5);
}

static uint64_t parse_time(const char *option, const char *text)
{
	return (uint64_t)(parse_seconds(option, text) * 1e9 + 0.5);
}

static void take_option(struct report *v, int opt)
{
	switch (opt) {
	case OPT_BY:
		v->options.key = parse_key(optarg);
		break;
	case OPT_TIME:
		v->has_time = true;
		v->options.time = parse_time_word(optarg);
		break;
	case OPT_TOP:
		v->has_top = true;
		v->print.top = strcmp(optarg, "0") == 0 ? SIZE_MAX
							: parse_count("--top", optarg, UINT32_MAX);
		break;
	case OPT_MIN:
		v->has_min = true;
		v->options.least_share = parse_percent(optarg);
		break;
	case OPT_BOTTOM_UP:
		v->options.shape = FATHOM_REPORT_BOTTOM_UP;
		break;
	case OPT_CALLERS:
		v->callers = optarg;
		break;
	case OPT_CALLEES:
		v->callees = optarg;
		break;
	case OPT_ANNOTATE:
		v->annotation.query = optarg;
		break;
	case OPT_HOT_FIRST:
		v->annotate.is_hot_first = true;
		break;
	case OPT_ALL_LINES:
		v->annotate.is_whole = true;
		break;
	case OPT_INTEL:
		v->annotation.flags |= FATHOM_ANNOTATE_INTEL;
		break;
	case OPT_NO_SOURCE:
		v->annotation.flags |= NO_SOURCE;
		break;
	case OPT_FROM:
		v->options.from_ns = parse_time("--from", optarg);
		break;
	case OPT_TO:
		v->options.to_ns = parse_time("--to", optarg);
		break;
	case OPT_ONLY:
		add_query(&v->only, optarg);
		break;
	case OPT_FRAMES:
		v->frames = parse_frames(optarg);
		break;
	case OPT_UNDER:
		add_query(&v->under, optarg);
		break;
	case OPT_NOT:
		add_query(&v->except, optarg);
		break;
	case OPT_EXPORT:
		v->export = report_export_parse(optarg);
		break;
	case 'o':
		v->output = optarg;
		break;
	case OPT_DIFF:
		v->is_diff = true;
		break;
	case OPT_PER:
		v->has_per = true;
		report_diff_parse_per(&v->diff, optarg);
		break;
	case OPT_NAMES_ONLY:
		v->names.flags |= FATHOM_NAMES_ONLY;
		break;
	case OPT_NO_DEMANGLE:
		v->names.flags |= FATHOM_NO_DEMANGLE;
		break;
	}
}

/* Rows, and percent of the least branch, that are printed unless options say more. */
#define TOP           20
#define LEAST_PERCENT "1"

/* Ends the command if options of other forms than the text are given with them. */
static void check_forms(const struct report *v)
{
	const bool has_tree = v->options.shape || v->callers || v->callees || v->has_min;

	if (v->is_diff && v->export && v->export != FATHOM_PROFILE_PAGE)
		complain_lacking("report", "--diff goes with no --export but page");
	if ((v->is_diff || v->export) && (v->options.key || has_tree))
		complain_lacking("report",
				 v->is_diff ? "--diff compares functions: without --by, or trees"
					    : "--export is of all: without --by, or trees");
	if (v->export && (v->common.json || v->has_top))
		complain_lacking("report", "--export goes with neither --json nor --top");
	if (v->output && !v->export)
		complain_lacking("report", "-o goes with --export only");
	if (v->has_per && (!v->is_diff || v->export))
		complain_lacking("report", "--per goes with --diff only, and with no page");
}

/* Ends the command if options of --annotate are given without it, or with other forms. */
static void check_annotate(const struct report *v)
{
	const bool is_page = v->export == FATHOM_PROFILE_PAGE;
	const bool has_source =
		v->annotation.flags & FATHOM_ANNOTATE_INTEL || v->common.source_dirs;

	if (v->annotation.flags & NO_SOURCE && !is_page)
		complain_lacking("report", "--no-source goes with a page only");
	if (v->annotation.flags & NO_SOURCE && has_source)
		complain_lacking("report", "--no-source goes with neither --intel nor "
					   "--source-dir");
	if (!v->annotation.query) {
		if (v->annotate.is_hot_first || v->annotate.is_whole)
			complain_lacking("report", "--hot-first and --all-lines go with "
						   "--annotate only");
		if (has_source && !is_page)
			complain_lacking("report", "--intel and --source-dir go with --annotate, "
						   "or a page, only");
		return;
	}
	if (v->is_diff || v->export)
		complain_lacking("report", "--annotate goes with neither --diff nor --export");
	if (v->options.key || v->options.shape || v->callers || v->callees || v->has_min)
		complain_lacking("report", "--annotate is of functions: without --by, or trees");
}

static void parse_options(struct report *v, int argc, char **argv)
{
	struct option_reader reader;
	int opt;

	option_reader_init(&reader, &report_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1)
		take_option(v, opt);
	if (optind >= argc)
		complain_lacking("report", "no FILE is given");
	if (v->is_diff && optind + 2 != argc)
		complain_lacking("report", "--diff compares two FILEs");
	if (!v->is_diff && optind + 1 < argc)
		complain_lacking("report", "more than one FILE is given");
	v->common.target = argv[optind];
	v->second = v->is_diff ? argv[optind + 1] : NULL;
	if (!v->export && v->output && report_export_is_page(v->output))
		v->export = FATHOM_PROFILE_PAGE;
	check_forms(v);
	check_annotate(v);
	if (v->options.shape && (v->callers || v->callees))
		complain_lacking("report", "--bottom-up does not go with --callers or --callees");
	if (v->options.to_ns && v->options.to_ns <= v->options.from_ns)
		complain_lacking("report", "--to is not after --from");
	/* On a processor, there is one reason only, and no waker. */
	if ((v->options.key == FATHOM_REPORT_BY_REASON ||
	     v->options.key == FATHOM_REPORT_BY_WAKER) &&
	    !v->has_time)
		v->options.time = FATHOM_REPORT_WAITING;
	/* Programs read all; people, what matters. */
	if (!v->has_top)
		v->print.top = v->common.json ? SIZE_MAX : TOP;
	if (!v->has_min && !v->common.json && !v->is_diff && !v->export)
		v->options.least_share = parse_percent(LEAST_PERCENT);
	v->options.only = v->only.items;
	v->options.n_only = v->only.n;
	v->options.under = v->under.items;
	v->options.n_under = v->under.n;
	v->options.except = v->except.items;
	v->options.n_except = v->except.n;
	/* All waits are hardly ever worth comparing with: they are mostly idle threads. */
	if (v->options.time && !v->has_per)
		v->diff.per = FATHOM_DIFF_PER_WALL;
	v->print.key = v->options.key;
	v->print.time = v->options.time;
}

/* Complains about the profile @path. */
static void complain_profile(const char *path, const struct fathom_errinfo *info)
{
	if (info->err == FATHOM_E_FORMAT)
		complain(path, info->what, "'fathom record' writes profiles");
	else if (info->err == FATHOM_E_CORRUPT || info->err == FATHOM_E_OS)
		complain_error(info);
	else if (info->err == FATHOM_E_ARGUMENT || info->err == FATHOM_E_UNSUPPORTED)
		complain("report", info->what, NULL);
	else
		complain(path, info->what, common_cause_remedy(info->cause));
}

/* Makes the report of a shape, of the functions @of, or NULL after an error. */
static struct fathom_report *make_report(struct report *v, uint32_t shape, const char *of,
					 int *ret_status)
{
	struct fathom_report_options o = v->options;
	struct fathom_report *r = NULL;
	struct fathom_errinfo info;

	o.shape = shape;
	o.of = of;
	if (!fathom_report_create(v->print.profile, &o, &r, &info))
		return r;
	*ret_status = info.err == FATHOM_E_NOT_FOUND ? EXIT_UNANSWERED : EXIT_USAGE;
	if (of && info.err == FATHOM_E_NOT_FOUND)
		complain(of, "the profile has no function of that name", NULL);
	else
		complain_profile(v->common.target, &info);
	return NULL;
}

/* Prints the tree of @r, whose shape and functions are @shape and @of. */
static void print_tree(struct report *v, const struct fathom_report *r, uint32_t shape,
		       const char *of)
{
	static const char *const titles[] = {
		[FATHOM_REPORT_TOP_DOWN] = "what calls what",
		[FATHOM_REPORT_BOTTOM_UP] = "what was called by what",
		[FATHOM_REPORT_CALLERS] = "what leads to",
		[FATHOM_REPORT_CALLEES] = "what is called by",
	};
	char title[256];

	(void)snprintf(title, sizeof title, of ? "%s %s" : "%s", titles[shape], of);
	if (v->common.json)
		report_json_tree(&v->print, &v->out, r, shape);
	else
		report_text_tree(&v->print, &v->out, r, title);
}

/* Makes the report of the functions @of and prints its tree; returns the exit status. */
static int print_around(struct report *v, uint32_t shape, const char *of)
{
	int status = EXIT_ANSWERED;
	struct fathom_report *r = make_report(v, shape, of, &status);

	if (r)
		print_tree(v, r, shape, of);
	fathom_report_free(r);
	return status;
}

/* Prints all parts; returns the exit status. */
static int print_all(struct report *v)
{
	const bool is_of = v->callers || v->callees;
	int status = EXIT_ANSWERED;
	struct fathom_report *r = make_report(v, v->options.shape, NULL, &status);
	bool is_empty;

	if (!r)
		return status;
	is_empty = !fathom_report_get_sums(r)->n_samples;
	if (v->common.json) {
		report_json_header(&v->print, &v->out, r);
		report_json_rows(&v->print, &v->out, r);
	} else {
		report_text_header(&v->print, &v->out, r);
		report_text_rows(&v->print, &v->out, r);
	}
	if (!is_of)
		print_tree(v, r, v->options.shape, NULL);
	fathom_report_free(r);
	if (v->callers)
		status = print_around(v, FATHOM_REPORT_CALLERS, v->callers);
	if (v->callees && status != EXIT_USAGE) {
		const int other = print_around(v, FATHOM_REPORT_CALLEES, v->callees);

		status = other > status ? other : status;
	}
	out_flush(&v->out);
	return status ? status : common_status(&v->out, is_empty);
}

/* Reads the profile @path and its names; NULL after an error. */
static struct fathom_profile *open_profile(struct report *v, struct fathom *session,
					   const char *path)
{
	static const enum fathom_profile_frames kinds[] = {
		[FRAMES_MERGED] = FATHOM_PROFILE_MERGED_FRAMES,
		[FRAMES_SCRIPT] = FATHOM_PROFILE_SCRIPT_FRAMES,
		[FRAMES_NATIVE] = FATHOM_PROFILE_NATIVE_FRAMES,
		[FRAMES_ALL] = FATHOM_PROFILE_ALL_FRAMES,
	};
	struct fathom_profile *profile = NULL;
	struct fathom_errinfo info;

	if (fathom_profile_open(session, path, &profile, &info)) {
		complain_profile(path, &info);
		return NULL;
	}
	v->names.sysroot = v->common.where.sysroot;
	v->names.debug_dirs = v->common.where.debug_dirs;
	if (!fathom_profile_show_frames(profile, kinds[v->frames], &info) &&
	    !fathom_profile_resolve(profile, &v->names, &info))
		return profile;
	complain_profile(path, &info);
	fathom_profile_free(profile);
	return NULL;
}

/* Compares the profile with the second one, as text or on a page; returns the exit status. */
static int run_diff(struct report *v, struct fathom *session)
{
	struct report_diff d = { .print = &v->print,
				 .paths = { v->common.target, v->second },
				 .profiles = { v->print.profile },
				 .options = v->diff,
				 .json = v->common.json };
	struct fathom_profile *other = open_profile(v, session, v->second);
	int status;

	if (!other)
		return EXIT_USAGE;
	d.profiles[1] = other;
	d.options.filters = &v->options;
	status = v->export ? report_export(&v->print, other, v->export, &v->options, v->output)
			   : report_diff(&d, &v->out);
	fathom_profile_free(other);
	return status;
}

/* Says where files of functions are found, for --annotate and pages. */
static void set_files(struct report *v)
{
	v->annotation.source_dirs = v->common.source_dirs;
	v->annotation.sysroot = v->common.where.sysroot;
	v->annotation.debug_dirs = v->common.where.debug_dirs;
	if (v->names.flags & FATHOM_NO_DEMANGLE)
		v->annotation.flags |= FATHOM_ANNOTATE_NO_DEMANGLE;
}

/* Prints the functions of --annotate; returns the exit status. */
static int run_annotate(struct report *v)
{
	struct report_print *p = &v->print;

	v->annotate.print = p;
	v->options.least_share = 0;
	v->annotation.filters = &v->options;
	return report_annotate(&v->annotate, &v->annotation, v->common.target, v->common.json,
			       &v->out);
}

static int run(struct report *v, struct fathom *session)
{
	struct fathom_profile *profile = open_profile(v, session, v->common.target);
	int status;

	if (!profile)
		return EXIT_USAGE;
	v->print.profile = profile;
	v->print.info = fathom_profile_get_info(profile);
	v->print.unit = v->options.time ? "ns" : v->print.info->unit;
	common_out_init(&v->common, &v->out);
	set_files(v);
	if (v->export == FATHOM_PROFILE_PAGE)
		v->options.annotation = &v->annotation;
	if (v->annotation.query)
		status = run_annotate(v);
	else if (v->is_diff)
		status = run_diff(v, session);
	else if (v->export)
		status = report_export(&v->print, NULL, v->export, &v->options, v->output);
	else
		status = print_all(v);
	out_deinit(&v->out);
	fathom_profile_free(profile);
	return status;
}

int verb_report(int argc, char **argv)
{
	struct report v = { .names = { .size = sizeof v.names },
			    .options = { .size = sizeof v.options },
			    .annotation = { .size = sizeof v.annotation },
			    .diff = { .size = sizeof v.diff } };
	struct fathom *session;
	int status;

	common_init(&v.common);
	v.common.shows_progress = true;
	parse_options(&v, argc, argv);
	session = common_session(&v.common);
	status = run(&v, session);
	fault_destroy(session);
	common_deinit(&v.common);
	free(v.only.items);
	free(v.under.items);
	free(v.except.items);
	return status;
}
