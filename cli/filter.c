/* SPDX-License-Identifier: MIT */
/* fathom filter: writes a log as it is, and names at the end of each line with addresses. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/filter_tool.h"
#include "cli/json.h"
#include "cli/out.h"
#include "cli/print.h"
#include "cli/stream.h"

/*
 * The text before the names that a line gets: the last one of a line is ours. A line that begins
 * with its last one is ours altogether, with the line break before it.
 */
#define MARK "  -> "

/* After so long without input a report counts as ended. */
#define SILENT_SECONDS 1

/* Lines are not held for longer, though others come. */
#define MOST_SECONDS 5

enum { OPT_ALL = OPT_VERB, OPT_MODULE_DIR, OPT_MAPS, OPT_STYLE, OPT_STORE };

static const struct verb_option options[] = {
	{ OPT_ALL, "all", NULL, "also say which addresses have no name, and why" },
	{ OPT_MODULE_DIR, "module-dir", "DIR",
	  "look for modules by file name in DIR (repeatable)" },
	{ OPT_MAPS, "maps", "FILE", "FILE is a copy of the process's /proc/PID/maps" },
	{ OPT_STORE, "store", "STORE", "indexes: directory, URL, '!COMMAND' (repeatable)" },
	{ OPT_STYLE, "style", "STYLE", "names after lines, or tool: as the format's tool" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom filter [OPTION]... [TARGET] < LOG\n"
	"Write the LOG as it is, with functions, files and lines at the end of each line\n"
	"that has addresses: frames of sanitizers, of backtrace(3), of crashed programs\n"
	"of LLVM, node, Java, Android and systemd, of eu-stack, and the kernel's\n"
	"messages.\n"
	"\n"
	"With a TARGET, a file, process, core or the word kernel, symbols of the kernel\n"
	"and all other numbers with 0x are addresses of it; with --maps, of the files\n"
	"there. With --source, lines that begin with an arrow follow, which have the\n"
	"source.\n";

static const struct verb_options filter_options = {
	.verb = "filter",
	.usage = usage,
	.options = options,
	.common = OPTIONS_TARGET | OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR |
		  OPTIONS_DEBUG | OPTIONS_EXE | OPTIONS_MEMORY | OPTIONS_THREADS | OPTIONS_COLOR |
		  OPTIONS_SOURCE,
	.end = "Exit status: 0 the whole log was written; 2 usage, or TARGET cannot be read.\n",
};

struct filter {
	struct common common;
	struct fathom_log_filter *filter;
	const char **module_dirs; /* NULL-terminated */
	size_t n_module_dirs;
	const char **stores; /* likewise */
	size_t n_stores;
	struct out out;
	struct out added; /* to one line */
	struct source_printer source;
	const char *maps; /* NULL: none */
	struct tool_style tool;
	bool is_tool; /* --style=tool */
	bool all;
};

static bool is_tool_style(const char *style)
{
	if (strcmp(style, "tool") != 0 && strcmp(style, "names") != 0) {
		complain(style, "is no style", "names or tool");
		exit(EXIT_USAGE);
	}
	return *style == 't';
}

static void parse_options(struct filter *v, int argc, char **argv)
{
	struct option_reader reader;
	int opt;

	option_reader_init(&reader, &filter_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1) {
		if (opt == OPT_ALL) {
			v->all = true;
			continue;
		}
		if (opt == OPT_MAPS) {
			v->maps = optarg;
			continue;
		}
		if (opt == OPT_STYLE) {
			v->is_tool = is_tool_style(optarg);
			continue;
		}
		if (opt == OPT_STORE)
			common_add_text(&v->stores, &v->n_stores, optarg);
		else
			common_add_text(&v->module_dirs, &v->n_module_dirs, optarg);
	}
	argc -= optind;
	argv += optind;
	if (argc && !v->common.target) {
		v->common.target = *argv++;
		argc--;
	}
	if (argc) {
		complain(*argv, "is one argument too many", "the log is read from standard input");
		exit(EXIT_USAGE);
	}
	common_check_source(&v->common, v->is_tool,
			    "does not go with --style=tool, which prints lines as other tools do");
}

/* Some lines of the log, and their addresses. */
struct batch {
	const char *text;
	const char *end;
	const char *written; /* up to here */
	const struct fathom_log_addresses *addresses;
};

/* Writes the names of @a, an address, to v->added. */
static void add_names(struct filter *v, const struct fathom_log_address *a)
{
	struct out *o = &v->added;
	const bool is_named = a->answer && a->answer->symbol;

	if (!is_named && !v->all)
		return;
	out_str(o, o->n ? "; " : "");
	if (is_named) {
		print_innermost(o, a->answer);
		print_inlined(o, a->answer, ", ", "", NULL);
		if (a->is_by_path || a->is_guessed)
			out_str(o, a->is_by_path && a->is_guessed ? " (by path, base guessed)"
				   : a->is_by_path                ? " (by path)"
								  : " (base guessed)");
	} else {
		out_str(o, "??");
		print_reason(o, a->reason ? a->reason : FATHOM_REASON_NO_SYMBOLS);
	}
}

/* Returns the first mark in [@from, @to), or NULL: by its bracket, which is rare in text. */
static const char *find_mark(const char *from, const char *to)
{
	const size_t before = strlen(MARK) - 2;

	for (const char *at = from; at < to; at++) {
		at = memchr(at, '>', (size_t)(to - at));
		if (!at)
			return NULL;
		if ((size_t)(at - from) >= before && to - at >= 2 &&
		    memcmp(at - before, MARK, strlen(MARK)) == 0)
			return at - before;
	}
	return NULL;
}

/* Returns the first byte at or after @at that is of no colour's sequence, ESC [ NUMBER m. */
static const char *skip_colours(const char *at, const char *end)
{
	while (at < end && *at == '\x1b') {
		at = memchr(at, 'm', (size_t)(end - at));
		at = at ? at + 1 : end;
	}
	return at;
}

/* Returns whether @mark begins at @at, whatever colours are within it. */
static bool is_mark(const char *mark, const char *at, const char *end)
{
	size_t i = 0;

	while (mark[i] && at < end && *at == mark[i]) {
		at = skip_colours(at + 1, end);
		i++;
	}
	return !mark[i];
}

/* Returns the first mark in [@from, @to), text of ours with colours, or NULL. */
static const char *find_coloured_mark(const char *from, const char *to)
{
	while (from < to && !is_mark(MARK, from, to))
		from++;
	return from < to ? from : NULL;
}

/*
 * Writes [@at, @end), text of ours, after the mark. A mark in it would hide ours, as would one that
 * begins with the end of ours: it gets an escape.
 */
static void write_marked(struct filter *v, const char *at, const char *end)
{
	const char *mark = skip_colours(at, end);

	out_str(&v->out, MARK);
	if (is_mark(MARK + 1, mark, end)) {
		out_bytes(&v->out, at, (size_t)(mark - at));
		out_str(&v->out, "\\x20");
		at = mark + 1;
	}
	while ((mark = v->added.is_coloured ? find_coloured_mark(at, end) : find_mark(at, end)) !=
	       NULL) {
		out_bytes(&v->out, at, (size_t)(mark - at));
		out_str(&v->out, "\\x20");
		at = mark + 1;
	}
	out_bytes(&v->out, at, (size_t)(end - at));
}

/* Writes v->added at the end of a line. */
static void write_added(struct filter *v)
{
	write_marked(v, v->added.buf, v->added.buf + v->added.n);
	v->added.n = 0;
}

/* Writes each line of v->added as one of ours, after a line that ends at @at. */
static void write_added_lines(struct filter *v, const struct batch *b, const char *at)
{
	const char *line_break = at < b->end && *at == '\r' ? "\r\n" : "\n";
	const char *const end = v->added.buf + v->added.n;

	for (const char *line = v->added.buf, *next; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		out_str(&v->out, line_break);
		write_marked(v, line, next);
	}
	v->added.n = 0;
}

/* Returns the frames of @a that have a file. */
static size_t count_places(const struct fathom_log_address *a)
{
	size_t n = 0;

	for (const struct fathom_frame *f = a->answer ? a->answer->frame : NULL; f; f = f->outer)
		n += f->file != NULL;
	return n;
}

/* Writes the lines of source of @n addresses from @i on to v->added; with heads if several have. */
static void add_source(struct filter *v, const struct batch *b, size_t i, size_t n)
{
	size_t n_places = 0;

	for (size_t k = i; k < i + n; k++)
		n_places += count_places(fathom_log_addresses_get(b->addresses, k));
	for (size_t k = i; k < i + n && n_places; k++) {
		const struct fathom_log_address *a = fathom_log_addresses_get(b->addresses, k);
		const struct fathom_frame *f = a->answer ? a->answer->frame : NULL;

		v->source.target = a->target;
		for (; f; f = f->outer) {
			if (f->file && n_places > 1) {
				print_function(&v->added, f);
				out_char(&v->added, '\n');
			}
			source_print(&v->added, &v->source, a->answer->pc, f);
		}
	}
}

/*
 * Writes the lines of [@from, @to), which have no names. One that holds the mark gets an empty one:
 * so what is after the last mark of a line is never the log's.
 */
static void write_lines(struct filter *v, const char *from, const char *to)
{
	const char *mark;

	while ((mark = find_mark(from, to)) != NULL) {
		const char *end = memchr(mark, '\n', (size_t)(to - mark));
		const char *stop = end ? end : to;

		if (end && end > from && end[-1] == '\r')
			stop--;
		out_bytes(&v->out, from, (size_t)(stop - from));
		out_str(&v->out, MARK);
		from = stop;
	}
	out_bytes(&v->out, from, (size_t)(to - from));
}

/* Writes the line of @n addresses from @i on, without its line break, unless it has no names. */
static void print_text_line(struct filter *v, struct batch *b, size_t i, size_t n)
{
	const struct fathom_log_address *first = fathom_log_addresses_get(b->addresses, i);
	const char *const start = b->text + first->line_start;
	const char *const end = b->text + first->line_end;
	const bool is_tool = v->is_tool && tool_style_has(first->format);

	for (size_t k = i; k < i + n && !is_tool; k++)
		add_names(v, fathom_log_addresses_get(b->addresses, k));
	if (!is_tool && !v->added.n)
		return;
	write_lines(v, b->written, start);
	if (is_tool) {
		tool_style_print(&v->tool, &v->out, b->text, b->addresses, i, n);
	} else {
		out_bytes(&v->out, start, (size_t)(end - start));
		write_added(v);
	}
	if (source_is_wanted(&v->source)) {
		add_source(v, b, i, n);
		write_added_lines(v, b, end);
	}
	b->written = end;
}

/* Writes the lines of @b with what its addresses have. */
static void print_text_lines(struct filter *v, struct batch *b)
{
	const size_t n = fathom_log_addresses_count(b->addresses);
	size_t next;

	for (size_t i = 0; i < n && !v->out.failed; i = next) {
		const size_t end = fathom_log_addresses_get(b->addresses, i)->line_end;

		for (next = i + 1; next < n; next++)
			if (fathom_log_addresses_get(b->addresses, next)->line_end != end)
				break;
		print_text_line(v, b, i, next - i);
	}
	write_lines(v, b->written, b->end);
}

/* Writes an object for each of @addresses. */
static void print_objects(struct filter *v, const char *text,
			  const struct fathom_log_addresses *addresses)
{
	const struct fathom_target_info none = { .kind = FATHOM_TARGET_PROCESS };
	struct out *o = &v->out;

	for (size_t i = 0; i < fathom_log_addresses_count(addresses); i++) {
		const struct fathom_log_address *a = fathom_log_addresses_get(addresses, i);
		const struct input in = { .text = text + a->at,
					  .size = (uint32_t)a->size,
					  .reason = a->reason };

		v->source.target = a->target;
		print_json(o, &in, &none, a->answer, &v->source);
		out_str(o, ",\"line\":");
		out_dec(o, a->line);
		out_str(o, ",\"column\":");
		out_dec(o, a->at - a->line_start + 1);
		out_char(o, ',');
		json_string(o, "format", a->format);
		out_char(o, ',');
		json_text(o, "text", text + a->at, a->size);
		out_char(o, ',');
		json_string(o, "kind", fathom_log_kind_name((enum fathom_log_kind)a->kind));
		out_char(o, ',');
		json_string(o, "base", fathom_log_base_name((enum fathom_log_base)a->base));
		out_char(o, ',');
		json_text(o, "log_module", a->module, a->module_size);
		out_char(o, ',');
		json_text(o, "log_symbol", a->symbol, a->symbol_size);
		out_str(o, a->is_by_path ? ",\"by_path\":true" : ",\"by_path\":false");
		out_str(o,
			a->is_guessed ? ",\"base_guessed\":true}\n" : ",\"base_guessed\":false}\n");
	}
}

static void filter_lines(struct filter *v, const char *text, size_t size)
{
	struct fathom_log_addresses *addresses;
	struct fathom_errinfo info;

	if (fathom_log_filter_read(v->filter, text, size, &addresses, &info)) {
		out_flush(&v->out);
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	if (v->common.json)
		print_objects(v, text, addresses);
	else
		print_text_lines(v, &(struct batch){ text, text + size, text, addresses });
	fathom_log_addresses_free(addresses);
}

/* Returns whether lines are held for too long, since *@since; 0: no lines were. */
static bool is_overdue(time_t *since)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (!*since)
		*since = now.tv_sec;
	return now.tv_sec - *since > MOST_SECONDS;
}

static void filter_stream(struct filter *v)
{
	struct input_stream stream;
	time_t held_since = 0;
	const char *text;
	size_t ready;
	size_t size;

	common_out_init(&v->common, &v->out);
	out_init_kept(&v->added);
	v->added.is_coloured = v->out.is_coloured;
	input_stream_init(&stream, STDIN_FILENO, STREAM_BATCH);
	while (!v->out.failed && input_stream_fill(&stream)) {
		input_stream_lines(&stream, &text, &size);
		ready = stream.ended || stream.is_silent || is_overdue(&held_since)
				? size
				: fathom_log_filter_ready(v->filter, text, size);
		if (ready == size)
			held_since = 0;
		filter_lines(v, text, ready);
		out_flush(&v->out);
		input_stream_put_back(&stream, size - ready, SILENT_SECONDS);
	}
	input_stream_deinit(&stream);
	out_deinit(&v->out);
	out_deinit(&v->added);
}

int verb_filter(int argc, char **argv)
{
	struct filter v = { .all = false };
	struct fathom_log_filter_options o = { .size = sizeof o };
	struct fathom_target *target = NULL;
	struct fathom_errinfo info;
	struct fathom *session;
	int status = EXIT_USAGE;

	common_init(&v.common);
	v.common.shows_progress = true;
	parse_options(&v, argc, argv);
	session = common_session(&v.common);
	if (v.common.target)
		target = common_open(&v.common, session, v.common.target_kind, v.common.target);
	o.target = target;
	o.module_dirs = v.module_dirs;
	o.where = &v.common.where;
	o.maps = v.maps;
	o.stores = v.stores;
	if (!v.common.target || target) {
		if (fathom_log_filter_create(session, &o, &v.filter, &info)) {
			complain_error(&info);
		} else {
			source_init(&v.source, &v.common, NULL, "  ");
			filter_stream(&v);
			status = common_status(&v.out, false);
		}
	}
	source_deinit(&v.source);
	fathom_log_filter_destroy(v.filter);
	fathom_target_release(target);
	fault_destroy(session);
	free(v.module_dirs);
	free(v.stores);
	common_deinit(&v.common);
	return status;
}
