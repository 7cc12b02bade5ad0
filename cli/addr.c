/* SPDX-License-Identifier: MIT */
/* fathom addr: names addresses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/heap.h"
#include "cli/input.h"
#include "cli/out.h"
#include "cli/print.h"
#include "cli/stream.h"

enum cache_mode { CACHE_AUTO, CACHE_OFF, CACHE_BUILD };

enum {
	OPT_DECIMAL = OPT_VERB,
	OPT_RETURN_ADDRESSES,
	OPT_NAMES_ONLY,
	OPT_NO_DEMANGLE,
	OPT_CACHE,
};

static const struct verb_option options[] = {
	{ 'j', "section", "NAME", "addresses are offsets in this section" },
	{ OPT_DECIMAL, "decimal", NULL, "numbers without 0x are decimal" },
	{ OPT_RETURN_ADDRESSES, "return-addresses", NULL,
	  "they are return addresses: look up the call" },
	{ OPT_NAMES_ONLY, "names-only", NULL, "no files, lines or inlined callers" },
	{ OPT_NO_DEMANGLE, "no-demangle", NULL, "print names as they are linked" },
	{ OPT_CACHE, "cache", "=auto|off|build", "what to do with the index cache (default auto)" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom addr [OPTION]... TARGET [ADDRESS]...\n"
	"Print the function, file, line and inlined callers of each ADDRESS of TARGET:\n"
	"the path of an ELF file, core or snapshot, the number of a process, or the word\n"
	"kernel. Without ADDRESS, read them from standard input, one a line.\n"
	"\n"
	"An ADDRESS is a hexadecimal number, with or without 0x, SYMBOL or\n"
	"SYMBOL+OFFSET. A word of at most 7 characters that starts with a letter is the\n"
	"symbol of that name, if there is one.\n";

static const struct verb_options addr_options = {
	.verb = "addr",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR |
		  OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_THREADS | OPTIONS_COLOR |
		  OPTIONS_SOURCE,
	.end = "Exit status: 0 all answered; 1 some not, each says why; 2 usage, or TARGET\n"
	       "cannot be read.\n",
};

/*
 * Bytes per cache line; fields that different threads write stand in different lines (false
 * sharing).
 */
#define CACHE_LINE 64

struct addr {
	struct common common;
	struct fathom_symbolize_options symbolize;
	struct input_rules rules;
	struct fathom_target_info info;
	/*
	 * Two threads write these, each to its own cache line; fields that both read are in a
	 * third.
	 */
	_Alignas(CACHE_LINE) struct out out;
	_Alignas(CACHE_LINE) struct out kept; /* of the second printer; allocated on first use */
	_Alignas(CACHE_LINE) enum cache_mode cache;
	size_t together; /* answers that both printers format before their output is written */
	size_t next_note;
	unsigned complaints; /* missing names for which suggestions were searched */
	bool unanswered;
	bool many;    /* enough addresses to prepare the heap */
	bool framed;  /* an empty line ends each answer */
	bool any_bad; /* some input is not an address, so addresses has fewer items than inputs */
	struct input *inputs;
	uint64_t *addresses;
	uint8_t *kinds; /* of addresses; NULL: all are exact */
	size_t n;
	size_t cap;
	bool are_returns; /* addresses are return addresses */
	struct source_printer source;
};

static enum cache_mode parse_cache(const char *text)
{
	if (strcmp(text, "auto") == 0)
		return CACHE_AUTO;
	if (strcmp(text, "off") == 0)
		return CACHE_OFF;
	if (strcmp(text, "build") == 0)
		return CACHE_BUILD;
	complain("--cache", "is auto, off or build", NULL);
	exit(EXIT_USAGE);
}

static void parse_options(struct addr *v, int argc, char **argv)
{
	struct option_reader reader;
	int opt;

	option_reader_init(&reader, &addr_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1) {
		switch (opt) {
		case 'j':
			v->rules.section = optarg;
			break;
		case OPT_DECIMAL:
			v->rules.decimal = true;
			break;
		case OPT_RETURN_ADDRESSES:
			v->are_returns = true;
			break;
		case OPT_NAMES_ONLY:
			v->symbolize.flags |= FATHOM_NAMES_ONLY;
			break;
		case OPT_NO_DEMANGLE:
			v->symbolize.flags |= FATHOM_NO_DEMANGLE;
			break;
		case OPT_CACHE:
			v->cache = parse_cache(optarg);
			if (v->cache == CACHE_OFF)
				v->common.options.flags |= FATHOM_NO_CACHE;
			break;
		}
	}
	common_take_arguments(&v->common, "addr", argc - optind, argv + optind);
	common_check_source(&v->common, v->symbolize.flags & FATHOM_NAMES_ONLY,
			    NAMES_ONLY_HAS_NO_SOURCE);
}

/* Makes room for v->n inputs. */
static void reserve_inputs(struct addr *v)
{
	if (v->n <= v->cap)
		return;
	v->cap = v->n > 2 * v->cap ? v->n : 2 * v->cap;
	v->inputs = must(realloc(v->inputs, v->cap * sizeof *v->inputs));
	v->addresses = must(realloc(v->addresses, v->cap * sizeof *v->addresses));
}

/* Least text that is worth a thread. */
#define ALONE_BYTES 65536

/* Lines being parsed; the first is input first. */
struct parsing {
	const struct addr *v;
	const char *text;
	size_t size;
	size_t first;
	bool bad;   /* some line is not an address */
	bool named; /* some line is a name, not yet looked up */
};

static void parse_input(struct parsing *p, size_t i, const char *text, size_t size)
{
	struct input *in = &p->v->inputs[i];

	input_parse(&p->v->rules, text, size, in);
	p->v->addresses[i] = in->address;
	p->bad |= in->reason != FATHOM_REASON_NONE;
	p->named |= in->kind != INPUT_READY;
}

static void *parse_lines(void *arg)
{
	struct parsing *p = arg;
	const char *end = p->text + p->size;
	size_t i = p->first;

	for (const char *line = p->text; line < end; i++) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		stop = stop ? stop : end;
		parse_input(p, i, line, (size_t)(stop - line));
		line = stop + 1;
	}
	return NULL;
}

/*
 * Looks up the names among the inputs. A reader of framed JSON Lines expects one answer per line;
 * all others get every address of a name.
 */
static void resolve_names(struct addr *v)
{
	if (v->framed && v->common.json) {
		input_resolve(&v->rules, v->inputs, v->n);
	} else {
		v->inputs = input_resolve_all(&v->rules, v->inputs, v->n, &v->n);
		v->cap = v->n;
		v->addresses = must(realloc(v->addresses, (v->n + 1) * sizeof *v->addresses));
	}
	for (size_t i = 0; i < v->n; i++) {
		v->addresses[i] = v->inputs[i].address;
		v->any_bad |= v->inputs[i].reason != FATHOM_REASON_NONE;
	}
}

/* Returns the size of the first thread's share of @text, in whole lines. */
static size_t first_share(const char *text, size_t size)
{
	const char *stop =
		size > ALONE_BYTES ? memchr(text + size / 2, '\n', size - size / 2) : NULL;

	return stop ? (size_t)(stop - text) + 1 : size;
}

/* Adds the lines of @text, which must outlive them, as inputs. */
static void parse_text(struct addr *v, const char *text, size_t size)
{
	const size_t share = first_share(text, size);
	struct parsing here = { .v = v, .text = text, .size = share };
	struct parsing there = { .v = v, .text = text + share, .size = size - share };

	there.first = input_count_lines(here.text, here.size);
	v->n = there.first + input_count_lines(there.text, there.size);
	reserve_inputs(v);
	if (there.size)
		common_run_both(&v->common, parse_lines, &here, &there);
	else
		(void)parse_lines(&here);
	v->any_bad = here.bad || there.bad;
	if (here.named || there.named)
		resolve_names(v);
}

/* Prints the answers to inputs [first, end), starting with answer next. */
struct printing {
	_Alignas(CACHE_LINE) const struct addr *v;
	struct source_printer *source; /* NULL: no lines of source */
	const struct fathom_answers *answers;
	struct out *out;
	size_t first;
	size_t end;
	size_t next;
	bool unanswered;
	unsigned copied; /* missing names whose inlined copies were searched */
};

/* Prefetch distances, in answers, of the frame and of its texts. */
enum { AHEAD_FRAME = 8, AHEAD_TEXTS = 4 };

/* Returns the answer @ahead of the next, or the last. */
static const struct fathom_answer *answer_ahead(const struct printing *p, size_t ahead)
{
	const size_t n = fathom_answers_count(p->answers);

	return fathom_answers_get(p->answers, p->next + ahead < n ? p->next + ahead : n - 1);
}

/*
 * Prefetches frames and texts, which are scattered in memory: answers have the order of the inputs.
 */
static void fetch_ahead(const struct printing *p)
{
	const struct fathom_answer *a;

	if (p->next >= fathom_answers_count(p->answers))
		return;
	a = answer_ahead(p, AHEAD_FRAME);
	__builtin_prefetch(a->frame ? (const void *)a->frame : a->symbol);
	a = answer_ahead(p, AHEAD_TEXTS);
	if (a->frame) {
		__builtin_prefetch(a->frame->function);
		__builtin_prefetch(a->frame->file);
	}
}

static void print_object(struct printing *p, const struct input *in, const struct fathom_answer *a)
{
	print_json(p->out, in, &p->v->info, a, p->source);
	if (!p->v->framed)
		input_copies_json(&p->v->rules, in, p->out, &p->copied);
	out_str(p->out, "}\n");
}

static void *print_answers(void *arg)
{
	struct printing *p = arg;
	const struct addr *v = p->v;

	for (size_t i = p->first; i < p->end && !p->out->failed; i++) {
		const struct input *in = &v->inputs[i];
		const struct fathom_answer *a =
			in->reason ? NULL : fathom_answers_get(p->answers, p->next++);

		fetch_ahead(p);
		p->unanswered |= !a || !a->symbol;
		if (v->common.json)
			print_object(p, in, a);
		else
			print_text(p->out, in, a, p->source);
		if (v->framed && !v->common.json && !in->more)
			out_char(p->out, '\n');
	}
	return NULL;
}

/* Least number of answers that are worth a thread. */
#define ALONE_ANSWERS 2048

/* Answers that two threads format at a time; the second then collects about KEPT_BYTES. */
#define PRINT_TOGETHER 16384
#define KEPT_BYTES     ((size_t)2 << 20)

/* Prints the answers to inputs [first, end); returns the number of the answer after them. */
static size_t print_some(struct addr *v, const struct fathom_answers *answers, size_t first,
			 size_t end, size_t next)
{
	/* One thread reads the source files. */
	const bool is_alone = source_is_wanted(&v->source) || end - first <= ALONE_ANSWERS;
	const size_t middle = is_alone ? end : first + (end - first) / 2;
	struct printing here = { v, &v->source, answers, &v->out, first, middle, next, false, 0 };
	struct printing there = { .v = v, .answers = answers, .first = middle, .end = end };

	there.next = next;
	for (size_t i = first; i < middle; i++)
		there.next += v->inputs[i].reason == 0;
	if (middle == end) {
		(void)print_answers(&here);
	} else {
		if (!v->kept.buf)
			out_init_kept(&v->kept);
		v->kept.is_coloured = v->out.is_coloured;
		there.out = &v->kept;
		common_run_both(&v->common, print_answers, &here, &there);
		v->together = KEPT_BYTES * (end - first) / (v->kept.n + 1) + ALONE_ANSWERS;
		out_join(&v->out, &v->kept);
	}
	v->unanswered |= here.unanswered | there.unanswered;
	return there.next;
}

/* Returns the kinds of @n addresses for fathom_symbolize(). */
static const uint8_t *kinds_of(struct addr *v, size_t n)
{
	if (!v->are_returns)
		return NULL;
	v->kinds = must(realloc(v->kinds, n + 1));
	memset(v->kinds, FATHOM_PC_RETURN, n);
	return v->kinds;
}

/* Answers inputs [first, end), in their order. */
static void answer_some(struct addr *v, size_t first, size_t end)
{
	uint64_t *addresses = v->addresses + (v->any_bad ? 0 : first);
	struct fathom_answers *answers;
	struct fathom_errinfo info;
	size_t n = v->any_bad ? 0 : end - first;
	size_t next = 0;

	for (size_t i = first; v->any_bad && i < end; i++)
		if (!v->inputs[i].reason)
			addresses[n++] = v->inputs[i].address;
	if (fathom_symbolize(v->rules.target, &v->symbolize, addresses, kinds_of(v, n), n, &answers,
			     &info) ||
	    fathom_target_check(v->rules.target, &info)) {
		out_flush(&v->out);
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	while (first < end) {
		const size_t left = end - first;
		const size_t some = left < v->together ? left : v->together;

		next = print_some(v, answers, first, first + some, next);
		first += some;
	}
	fathom_answers_free(answers);
}

/*
 * Names per batch: a small part of the memory budget. Each batch demangles its names anew.
 */
#define NAMES_TOGETHER ((size_t)1 << 18)
#define NAMES_SHARE    128

/* Answers the inputs in their order and flushes. */
static void answer_inputs(struct addr *v)
{
	const uint64_t share = v->common.options.memory_budget / NAMES_SHARE;
	const size_t names = share && share < NAMES_TOGETHER ? (size_t)share : NAMES_TOGETHER;
	const size_t most = v->symbolize.flags & FATHOM_NAMES_ONLY ? names : v->n;
	size_t first = 0;

	do {
		const size_t left = v->n - first;
		const size_t some = left < most ? left : most;

		answer_some(v, first, first + some);
		first += some;
	} while (first < v->n);
	out_flush(&v->out);
	v->n = 0;
	common_print_notes(v->rules.target, &v->next_note);
}

/* Marks the only batch: keeps nothing decoded, unless the index cache stores it. */
static void ask_once(struct addr *v)
{
	if (v->common.options.flags & FATHOM_NO_CACHE)
		v->symbolize.flags |= FATHOM_ONE_SHOT;
}

static void answer_stream(struct addr *v)
{
	struct input_stream stream;
	const char *text;
	size_t size;

	v->framed = true;
	/* Large batches speed up lines, but not names. */
	input_stream_init(&stream, STDIN_FILENO,
			  v->symbolize.flags & FATHOM_NAMES_ONLY
				  ? STREAM_BATCH
				  : input_stream_share(v->common.options.memory_budget));
	while (!v->out.failed && input_stream_fill(&stream)) {
		if (input_stream_is_whole_file(&stream))
			ask_once(v);
		input_stream_lines(&stream, &text, &size);
		if (!v->many && size >= ALONE_BYTES) {
			v->many = true;
			heap_expect_much();
		}
		parse_text(v, text, size);
		answer_inputs(v);
	}
	input_stream_deinit(&stream);
}

/* A run that decoded for longer than this stores its index for the next. */
#define STORE_ABOVE_MS  100
#define STORE_WITHIN_MS 1000

static void store_index(const struct addr *v)
{
	struct fathom_errinfo info;
	const bool all = v->cache == CACHE_BUILD;

	if (v->cache == CACHE_OFF || (v->common.options.flags & FATHOM_NO_CACHE) ||
	    (!all && fathom_cache_cost_ms(v->rules.target) <= STORE_ABOVE_MS))
		return;
	/* An index that nobody asked for may fail silently: nothing is lost without it. */
	if (fathom_cache_store(v->rules.target, all, all ? 0 : STORE_WITHIN_MS, NULL, &info) && all)
		complain_store(&info);
}

static void answer_arguments(struct addr *v, int n, char **arguments)
{
	struct parsing p = { .v = v };

	v->n = (size_t)n;
	reserve_inputs(v);
	for (size_t i = 0; i < v->n; i++)
		parse_input(&p, i, arguments[i], strlen(arguments[i]));
	v->any_bad = p.bad;
	if (p.named)
		resolve_names(v);
	ask_once(v);
	answer_inputs(v);
	for (int i = 0; i < n; i++)
		input_complain(&v->rules, &v->inputs[i], &v->complaints);
}

static int answer_all(void *verb, struct fathom_target *target)
{
	struct addr *v = verb;

	v->rules.target = target;
	fathom_target_get_info(target, &v->info);
	input_rules_check(&v->rules, &v->info);
	common_out_init(&v->common, &v->out);
	source_init(&v->source, &v->common, target, "    ");
	common_print_notes(v->rules.target, &v->next_note);
	if (v->common.n_arguments)
		answer_arguments(v, v->common.n_arguments, v->common.arguments);
	else
		answer_stream(v);
	out_deinit(&v->out);
	out_deinit(&v->kept);
	source_deinit(&v->source);
	store_index(v);
	free(v->inputs);
	free(v->addresses);
	free(v->kinds);
	return common_status(&v->out, v->unanswered);
}

int verb_addr(int argc, char **argv)
{
	struct addr v = { .symbolize = { .size = sizeof v.symbolize }, .together = PRINT_TOGETHER };

	common_init(&v.common);
	v.common.shows_progress = true;
	parse_options(&v, argc, argv);
	return common_run(&v.common, answer_all, &v);
}
