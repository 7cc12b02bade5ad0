/* SPDX-License-Identifier: MIT */
/* fathom find: finds the addresses of names, patterns and lines. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/find_print.h"
#include "cli/inlined.h"
#include "cli/out.h"
#include "cli/stream.h"

enum {
	OPT_EXPORTED = OPT_VERB,
	OPT_LIMIT,
	OPT_FIRST,
	OPT_THREAD,
};

static const struct verb_option options[] = {
	{ 'r', "read", "TYPE", "read the value there: str, u32[4], ptr->str" },
	{ 'i', "inlined", NULL, "every inlined copy of functions" },
	{ 'E', "regex", NULL, "each QUERY is a regular expression as it stands" },
	{ 'F', "literal", NULL, "each QUERY is a name as it stands" },
	{ OPT_EXPORTED, "exported", NULL, "only what the dynamic linker can find" },
	{ OPT_LIMIT, "limit", "N", "at most N answers to a QUERY; default 1,000,000" },
	{ OPT_FIRST, "first", NULL, "the first answer only, as --limit 1" },
	{ OPT_THREAD, "thread", "TID", "of thread-local symbols that thread's copy only" },
	{ 'w', "wait", "SECONDS", "ask again until all is found, for so long" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom find [OPTION]... TARGET [QUERY]...\n"
	"Print the addresses that each QUERY has in TARGET: the path of an ELF file,\n"
	"core or snapshot, the number of a process, or the word kernel. Without QUERY,\n"
	"read them from standard input, one a line.\n"
	"\n"
	"A QUERY is [LIBRARY:]NAME[@VERSION], where NAME may be a pattern or a demangled\n"
	"name, [LIBRARY:]/EXPRESSION/, or [LIBRARY:]FILE:LINE. See fathom-find(1).\n";

static const struct verb_options find_options = {
	.verb = "find",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY |
		  OPTIONS_THREADS | OPTIONS_COLOR,
	.end = "Exit status: 0 all found; 1 some not, each says why; 2 usage, or TARGET cannot\n"
	       "be read.\n",
};

/* Most names of a command line whose inlined copies are searched, where no symbol has them. */
#define MOST_COPIED 64

struct find {
	struct common common;
	struct fathom_find_options options;
	struct fathom_target *target;
	const char *read; /* type of the values; NULL: none are read */
	/* Values of consecutive matches, from first_value on. */
	struct find_value values[FIND_VALUES];
	size_t first_value;
	size_t n_values;
	uint64_t wait_ms;
	struct fathom_matches *copies; /* inlined ones, of names that no symbol has; or NULL */
	uint32_t copied[MOST_COPIED];  /* for each query of copies: its number in the batch */
	struct out out;
	size_t next_note;
	bool unanswered;
	bool framed; /* an empty line ends each answer */
};

static void parse_options(struct find *v, int argc, char **argv)
{
	struct option_reader reader;
	int opt;

	option_reader_init(&reader, &find_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1) {
		switch (opt) {
		case 'r':
			v->read = optarg;
			break;
		case 'i':
			v->options.flags |= FATHOM_FIND_INLINED;
			break;
		case 'E':
			v->options.flags |= FATHOM_FIND_REGEX;
			break;
		case 'F':
			v->options.flags |= FATHOM_FIND_LITERAL;
			break;
		case OPT_EXPORTED:
			v->options.flags |= FATHOM_FIND_EXPORTED;
			break;
		case OPT_LIMIT:
			v->options.limit = parse_count("--limit", optarg, 1000000000);
			break;
		case OPT_FIRST:
			v->options.limit = 1;
			break;
		case OPT_THREAD:
			v->options.tid = (int32_t)parse_count("--thread", optarg, INT32_MAX);
			break;
		case 'w':
			v->wait_ms = 1000 * (uint64_t)parse_count("--wait", optarg, 86400);
			break;
		}
	}
	common_take_arguments(&v->common, "find", argc - optind, argv + optind);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Returns whether each query has a match. */
static bool is_complete(const struct fathom_matches *matches)
{
	for (size_t i = 0; i < fathom_matches_count(matches); i++)
		if (fathom_matches_get(matches, i)->rank == FATHOM_NO_RANK)
			return false;
	return true;
}

/* Pauses: briefly at first, then for a fiftieth of the time waited so far. */
static void pause_waiting(uint64_t waited_ms)
{
	const uint64_t ms = waited_ms / 50 < 2 ? 2 : waited_ms / 50 > 100 ? 100 : waited_ms / 50;
	const struct timespec t = { .tv_nsec = (long)ms * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* Searches; with --wait, again until every query has a match. Exits on failure. */
static struct fathom_matches *ask(struct find *v, char **queries, size_t n)
{
	const uint64_t start = now_ms();
	struct fathom_matches *matches;
	struct fathom_errinfo info;

	for (;;) {
		const uint64_t waited = now_ms() - start;

		if (fathom_find(v->target, &v->options, (const char *const *)queries, n, &matches,
				&info) ||
		    fathom_target_check(v->target, &info)) {
			out_flush(&v->out);
			complain_error(&info);
			exit(EXIT_USAGE);
		}
		if (is_complete(matches) || waited >= v->wait_ms)
			return matches;
		fathom_matches_free(matches);
		pause_waiting(waited);
	}
}

/* Returns the value of match @i; callers take matches in order. */
static struct find_value *value_of(struct find *v, const struct fathom_matches *matches, size_t i)
{
	const size_t left = fathom_matches_count(matches) - i;

	if (i - v->first_value >= v->n_values) {
		v->first_value = i;
		v->n_values = left < FIND_VALUES ? left : FIND_VALUES;
		find_values_read(v->values, v->target, matches, i, v->n_values, v->read);
	}
	return &v->values[i - v->first_value];
}

/*
 * Returns the number + 1 of the first inlined copy among v->copies of query @number, which no
 * symbol has; 0 if there is none.
 */
static size_t find_copies_of(const struct find *v, uint32_t number)
{
	const size_t count = v->copies ? fathom_matches_count(v->copies) : 0;

	for (size_t i = 0; i < count; i++) {
		const struct fathom_match *m = fathom_matches_get(v->copies, i);

		if (m->rank != FATHOM_NO_RANK && v->copied[m->query] == number)
			return i + 1;
	}
	return 0;
}

/* Prints the matches of @query, the first being match @first; returns their number. */
static size_t print_query(struct find *v, const struct fathom_matches *matches, size_t first,
			  const char *query)
{
	const size_t count = fathom_matches_count(matches);
	const uint32_t number = fathom_matches_get(matches, first)->query;
	bool answered = false;
	size_t n = 0;

	for (; first + n < count; n++) {
		const struct fathom_match *m = fathom_matches_get(matches, first + n);
		struct find_value value = { 0 };

		if (m->query != number)
			break;
		if (v->read)
			value = *value_of(v, matches, first + n);
		answered |= m->rank != FATHOM_NO_RANK && !m->reason && !value.reason;
		if (v->common.json)
			find_print_json(&v->out, query, m, &value);
		else
			find_print_text(&v->out, query, m, &value);
		find_value_deinit(&value);
	}
	v->unanswered |= !answered;
	return n;
}

/* Returns whether @query is a plain symbol name. */
static bool is_name(const struct find *v, const char *query)
{
	const uint32_t other = FATHOM_FIND_REGEX | FATHOM_FIND_INLINED | FATHOM_FIND_EXPORTED;
	const char *colon = strchr(query, ':');

	if (v->options.flags & other)
		return false;
	return v->options.flags & FATHOM_FIND_LITERAL ||
	       (!strpbrk(query, "*?[/@") && (!colon || colon[1] == ':'));
}

/* Returns whether @m says that no symbol has the name of its query. */
static bool is_missing(const struct find *v, const struct fathom_match *m, char **queries)
{
	return m->rank == FATHOM_NO_RANK && m->reason == FATHOM_REASON_NO_SUCH_SYMBOL &&
	       is_name(v, queries[m->query]);
}

/* Suggests names for the arguments that were not found. */
static void complain_missing(struct find *v, const struct fathom_matches *matches, char **queries)
{
	unsigned count = 0;

	for (size_t i = 0; i < fathom_matches_count(matches); i++) {
		const struct fathom_match *m = fathom_matches_get(matches, i);

		if (is_missing(v, m, queries) && !find_copies_of(v, m->query))
			complain_symbol(v->target, queries[m->query], &count);
	}
}

/* Finds the inlined copies of those arguments that no symbol has: of the first few. */
static void find_copies(struct find *v, const struct fathom_matches *matches, char **queries)
{
	const char *names[MOST_COPIED];
	size_t n = 0;

	for (size_t i = 0; i < fathom_matches_count(matches) && n < MOST_COPIED && !v->read; i++) {
		const struct fathom_match *m = fathom_matches_get(matches, i);

		if (!is_missing(v, m, queries))
			continue;
		v->copied[n] = m->query;
		names[n++] = queries[m->query];
	}
	v->copies = n ? inlined_find(v->target, v->options.flags, names, n) : NULL;
}

static void answer(struct find *v, char **queries, size_t n)
{
	struct fathom_matches *matches = ask(v, queries, n);
	size_t first = 0;

	v->n_values = 0;
	if (!v->framed)
		find_copies(v, matches, queries);
	for (size_t i = 0; i < n; i++) {
		const size_t copy = find_copies_of(v, (uint32_t)i);

		if (copy)
			(void)print_query(v, v->copies, copy - 1, queries[i]);
		/* Of a name without a symbol there is one match. */
		first += copy ? 1 : print_query(v, matches, first, queries[i]);
		if (v->framed && !v->common.json)
			out_char(&v->out, '\n');
	}
	out_flush(&v->out);
	if (!v->framed)
		complain_missing(v, matches, queries);
	fathom_matches_free(v->copies);
	v->copies = NULL;
	fathom_matches_free(matches);
	common_print_notes(v->target, &v->next_note);
}

/* Answers all complete lines of the stream with one search. */
static void answer_lines(struct find *v, struct input_stream *stream)
{
	char **queries = NULL;
	size_t cap = 0;
	size_t n = 0;
	const char *line;
	size_t size;

	while (input_stream_line(stream, &line, &size)) {
		if (n == cap) {
			cap = cap ? 2 * cap : 64;
			queries = must(realloc(queries, cap * sizeof *queries));
		}
		queries[n++] = must(strndup(line, size));
	}
	if (n)
		answer(v, queries, n);
	for (size_t i = 0; i < n; i++)
		free(queries[i]);
	free(queries);
}

static void answer_stream(struct find *v)
{
	struct input_stream stream;

	v->framed = true;
	input_stream_init(&stream, STDIN_FILENO, STREAM_BATCH);
	while (!v->out.failed && input_stream_fill(&stream))
		answer_lines(v, &stream);
	input_stream_deinit(&stream);
}

static int answer_all(void *verb, struct fathom_target *target)
{
	struct find *v = verb;

	v->target = target;
	common_out_init(&v->common, &v->out);
	common_print_notes(v->target, &v->next_note);
	if (v->common.n_arguments)
		answer(v, v->common.arguments, (size_t)v->common.n_arguments);
	else
		answer_stream(v);
	out_deinit(&v->out);
	return common_status(&v->out, v->unanswered);
}

int verb_find(int argc, char **argv)
{
	struct find v = { .options = { .size = sizeof v.options } };

	common_init(&v.common);
	v.common.shows_progress = true;
	parse_options(&v, argc, argv);
	if (v.read)
		find_value_check(v.read);
	return common_run(&v.common, answer_all, &v);
}
