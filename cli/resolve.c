/* SPDX-License-Identifier: MIT */
/*
 * fathom resolve: rows of build-ids and addresses in, one row out for each, in order. Engines run
 * it as a worker: ClickHouse, Dask, pipes.
 */
#include <stdatomic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <fathom/fathom.h>

#include "cli/common.h"
#include "cli/heap.h"
#include "cli/out.h"
#include "cli/resolve_columns.h"
#include "cli/resolve_counters.h"
#include "cli/resolve_input.h"
#include "cli/resolve_rows.h"

/* Rows that are answered together: more are not faster, and take memory. */
#define MOST_ROWS  ((size_t)1 << 17)
#define LEAST_ROWS ((size_t)1 << 10)

/* Bytes that a row of a batch takes at most, as a rule: with its answer and what is written. */
#define ROW_BYTES 1024

/* Bytes that the answers to the rows of one build take at least. */
#define BUILD_BYTES ((uint64_t)64 << 10)

/* Bytes that a pipe takes at once when it takes any (PIPE_BUF). */
#define PIPE_BYTES 4096

/* Rows from which on a thread reads ahead. */
#define MANY_ROWS 64

/* Rows that one thread writes alone. */
#define ALONE_ROWS 2048

/* Rows that two threads write at a time at first; the second then collects about KEPT_BYTES. */
#define WRITE_TOGETHER 16384
#define KEPT_BYTES     ((size_t)2 << 20)

/* Digits of the number of rows of a block. */
#define MAX_DIGITS 18

#define DEFAULT_BUDGET ((uint64_t)1 << 30)

enum {
	OPT_INPUT_COLUMNS = OPT_VERB,
	OPT_COLUMNS,
	OPT_FORMAT,
	OPT_OUTPUT_FORMAT,
	OPT_CHUNKS,
	OPT_RETURNS,
	OPT_FILE_OFFSETS,
	OPT_JOIN,
	OPT_NULLS,
	OPT_NAMES_ONLY,
	OPT_NO_DEMANGLE,
	OPT_MODULE_DIR,
	OPT_DEADLINE,
	OPT_FORGET,
	OPT_STATS,
	OPT_STORE,
	OPT_STORE_PUT,
	OPT_STORE_TIMEOUT,
};

static const struct verb_option options[] = {
	{ OPT_INPUT_COLUMNS, "input-columns", "LIST", "of tsv and binary (build_id,offset)" },
	{ OPT_COLUMNS, "columns", "LIST", "what is written (keys, names, line, reason)" },
	{ OPT_FORMAT, "format", "FORM", "of rows: tsv, json or binary (default tsv)" },
	{ OPT_OUTPUT_FORMAT, "output-format", "FORM", "of what is written, if it differs" },
	{ OPT_CHUNKS, "chunks", "in|both", "a line with its number of rows before each block" },
	{ OPT_RETURNS, "return-addresses", NULL, "offsets are return addresses (else exact)" },
	{ OPT_FILE_OFFSETS, "file-offsets", NULL, "offsets are offsets in the file" },
	{ OPT_JOIN, "join", "TEXT", "write lists as one text, TEXT between items" },
	{ OPT_NULLS, "nulls", NULL, "write \\N in tsv for what is not known" },
	{ OPT_NAMES_ONLY, "names-only", NULL, "no files, lines and inlined calls" },
	{ OPT_NO_DEMANGLE, "no-demangle", NULL, "print linkage names" },
	{ OPT_MODULE_DIR, "module-dir", "DIR",
	  "look for modules by file name in DIR (repeatable)" },
	{ OPT_STORE, "store", "STORE", "indexes: directory, URL, '!COMMAND' (repeatable)" },
	{ OPT_STORE_PUT, "store-put", NULL, "put what no STORE has into the first" },
	{ OPT_STORE_TIMEOUT, "store-timeout", "S", "for what a block asks of stores (10)" },
	{ OPT_DEADLINE, "deadline", "S", "after so long the rest of a block is 'timeout'" },
	{ OPT_FORGET, "forget", "S", "look again for missing files after S (60)" },
	{ OPT_STATS, "stats", NULL, "at the end print counts as JSON (stderr)" },
	{ 0, NULL, NULL, NULL },
};

static const char usage[] =
	"Usage: fathom resolve [OPTION]... < ROWS\n"
	"Read rows of build-ids and offsets, write one row for each, in order: function,\n"
	"file, line, inlined calls. Offsets are addresses as stated in the ELF file, in\n"
	"decimal, or in hexadecimal after 0x.\n"
	"\n"
	"Columns of the input: build_id offset module kind count. Of the output these,\n"
	"and function linkage_name file line column inlines functions files lines\n"
	"address path source reason.\n";

static const struct verb_options resolve_options = {
	.verb = "resolve",
	.usage = usage,
	.options = options,
	.common = OPTIONS_JSON | OPTIONS_NO_CACHE | OPTIONS_CACHE_DIR | OPTIONS_DEBUG |
		  OPTIONS_MEMORY | OPTIONS_THREADS,
	.end = "SIGUSR1 prints the counts, SIGTERM ends after the block.\n"
	       "Exit status: 0 every row has a row; 2 usage, or the input ends within a block.\n",
};

/* A build of a batch, and its place in a hash table. */
struct build_entry {
	struct fathom_build build; /* points to the bytes below, and to the row's text */
	uint8_t bytes[FATHOM_BUILD_ID_MAX];
	uint64_t hash;
};

struct resolve {
	struct common common;
	struct row_reader reader;
	struct row_writer writer;
	bool is_format_given;
	bool has_output_format;
	const char **module_dirs; /* NULL-terminated */
	size_t n_module_dirs;
	const char **stores; /* likewise */
	size_t n_stores;
	uint32_t store_ms;
	uint32_t flags;           /* enum fathom_resolver_flag */
	uint32_t symbolize_flags; /* enum fathom_symbolize_flag */
	bool chunks_in;
	bool chunks_out;
	bool prints_stats;
	bool is_many;         /* the heap was prepared for it */
	uint64_t deadline_ns; /* of a block; 0: none */
	uint64_t ends_ns;     /* when this block's deadline is; 0: none */
	uint32_t forget_ms;
	struct fathom_resolver *resolver;
	struct row_input input;
	struct row_counters counters;
	struct out out;
	struct out kept;          /* by a second thread */
	struct row_writer second; /* of that thread */
	size_t together;          /* rows that both threads write at a time */
	uint64_t block_left;      /* rows of the block that were not read */
	bool is_cut;              /* the input has ended within a block */
	/* The batch. */
	struct row *rows;
	size_t n;
	size_t most;        /* rows of a batch */
	size_t most_builds; /* that are answered at once */
	struct build_entry *builds;
	size_t n_builds;
	size_t cap_builds;
	uint32_t *slots; /* a number of a build, plus 1 */
	size_t n_slots;
	struct fathom_build *build_column;
	uint32_t *row_builds;
	uint64_t *numbers;
	uint8_t *kinds;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Options. */

_Noreturn static void complain_choice(const char *option, const char *text, const char *choices)
{
	char *why = NULL;

	if (asprintf(&why, "'%s' is none of %s", text, choices) >= 0)
		complain(option, why, NULL);
	exit(EXIT_USAGE);
}

static enum row_form parse_form(const char *option, const char *text)
{
	static const char *const words[] = { "tsv", "json", "binary" };

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i], text) == 0)
			return (enum row_form)i;
	complain_choice(option, text, "tsv, json and binary");
}

static void parse_input_columns(struct row_reader *r, const char *names)
{
	bool is_given[ROW_KEYS] = { false };

	r->n_columns = 0;
	for (;;) {
		const size_t size = strcspn(names, ",");
		const enum row_key key = row_key_find(names, size);

		if (key == ROW_KEYS || is_given[key])
			complain_choice("--input-columns", names,
					"build_id, offset, module, kind and count, each once");
		is_given[key] = true;
		r->columns[r->n_columns++] = (uint8_t)key;
		if (!names[size])
			break;
		names += size + 1;
	}
	if (!is_given[ROW_OFFSET] || !(is_given[ROW_BUILD_ID] || is_given[ROW_MODULE])) {
		complain("--input-columns", "lacks offset, or build_id and module", NULL);
		exit(EXIT_USAGE);
	}
}

static void parse_chunks(struct resolve *v, const char *text)
{
	v->chunks_out = strcmp(text, "both") == 0;
	v->chunks_in = v->chunks_out || strcmp(text, "in") == 0;
	if (!v->chunks_in)
		complain_choice("--chunks", text, "in and both");
}

static void take_option(struct resolve *v, int opt)
{
	switch (opt) {
	case OPT_INPUT_COLUMNS:
		parse_input_columns(&v->reader, optarg);
		break;
	case OPT_COLUMNS:
		row_writer_choose(&v->writer, optarg);
		break;
	case OPT_FORMAT:
		v->reader.form = parse_form("--format", optarg);
		break;
	case OPT_OUTPUT_FORMAT:
		v->writer.form = parse_form("--output-format", optarg);
		v->has_output_format = true;
		break;
	case OPT_CHUNKS:
		parse_chunks(v, optarg);
		break;
	case OPT_RETURNS:
		v->reader.default_kind = FATHOM_PC_RETURN;
		break;
	case OPT_FILE_OFFSETS:
		v->flags |= FATHOM_RESOLVER_FILE_OFFSETS;
		break;
	case OPT_JOIN:
		v->writer.separator = optarg;
		break;
	case OPT_NULLS:
		v->writer.has_nulls = true;
		break;
	case OPT_NAMES_ONLY:
		v->symbolize_flags |= FATHOM_NAMES_ONLY;
		break;
	case OPT_NO_DEMANGLE:
		v->symbolize_flags |= FATHOM_NO_DEMANGLE;
		break;
	case OPT_MODULE_DIR:
		common_add_text(&v->module_dirs, &v->n_module_dirs, optarg);
		break;
	case OPT_STORE:
		common_add_text(&v->stores, &v->n_stores, optarg);
		break;
	case OPT_STORE_PUT:
		v->flags |= FATHOM_RESOLVER_STORE_PUT;
		break;
	case OPT_STORE_TIMEOUT:
		v->store_ms = (uint32_t)(parse_seconds("--store-timeout", optarg) * 1e3);
		break;
	case OPT_DEADLINE:
		v->deadline_ns = (uint64_t)(parse_seconds("--deadline", optarg) * 1e9);
		break;
	case OPT_FORGET:
		v->forget_ms = (uint32_t)(parse_seconds("--forget", optarg) * 1e3);
		break;
	default:
		v->prints_stats = true;
	}
}

static void parse_options(struct resolve *v, int argc, char **argv)
{
	struct option_reader reader;
	int opt;

	parse_input_columns(&v->reader, "build_id,offset");
	row_writer_choose(&v->writer,
			  "build_id,offset,function,linkage_name,file,line,inlines,source,reason");
	option_reader_init(&reader, &resolve_options);
	while ((opt = option_reader_next(&reader, &v->common, argc, argv)) != -1)
		take_option(v, opt);
	if (optind < argc) {
		complain(argv[optind], "is one argument too many",
			 "rows are read from standard input");
		exit(EXIT_USAGE);
	}
	if (v->flags & FATHOM_RESOLVER_STORE_PUT && !v->n_stores) {
		complain("--store-put", "needs a --store", NULL);
		exit(EXIT_USAGE);
	}
	if (!v->has_output_format)
		v->writer.form = v->common.json ? ROW_JSON : v->reader.form;
	v->writer.is_binary_input = v->reader.form == ROW_BINARY;
}

/* Rows of a batch. */

/* Begins a block. Its deadline counts from now. */
static void begin_block(struct resolve *v)
{
	row_count(&v->counters.blocks, 1);
	v->ends_ns = v->deadline_ns ? now_ns() + v->deadline_ns : 0;
}

/* Complains that the line at @text is no number of rows, and exits. */
static _Noreturn void complain_header(struct resolve *v, const char *text, size_t size)
{
	const size_t shown = size < 40 ? size : 40;
	char *why = NULL;

	out_flush(&v->out);
	if (asprintf(&why, "'%.*s' is no number of rows, which --chunks has before a block",
		     (int)shown, text) >= 0)
		complain("standard input", why, "check what the engine sends");
	exit(EXIT_USAGE);
}

/* Reads the line before a block; returns false if it is not there yet. */
static bool read_header(struct resolve *v)
{
	struct row_input *in = &v->input;
	const char *text = in->buf + in->used;
	const size_t left = in->n - in->used;
	const char *end = left ? memchr(text, '\n', left) : NULL;
	const size_t size = end ? (size_t)(end - text) : left;
	uint64_t rows = 0;

	if (!end && size <= MAX_DIGITS)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (text[i] < '0' || text[i] > '9' || i == MAX_DIGITS)
			complain_header(v, text, size);
		rows = 10 * rows + (uint64_t)(text[i] - '0');
	}
	if (!size)
		complain_header(v, text, size);
	in->used += size + 1;
	v->block_left = rows;
	begin_block(v);
	if (v->chunks_out) {
		out_dec(&v->out, rows);
		out_char(&v->out, '\n');
	}
	return true;
}

/* Reads the next row of buf; returns false if there is no whole one. */
static bool read_row(struct resolve *v)
{
	struct row_input *in = &v->input;
	const bool is_end = in->is_ended && !in->is_cut;
	struct row_step step;

	do {
		step = row_read(&v->reader, in->buf + in->used, in->n - in->used, is_end,
				&v->rows[v->n]);
		in->used += step.size;
	} while (step.size && !step.has_row);
	v->n += step.has_row;
	return step.has_row;
}

/* Makes rows of what was read, at most a batch, or the rest of a block. */
static void read_rows(struct resolve *v)
{
	struct row_input *in = &v->input;
	const uint64_t begun = now_ns();

	in->is_exhausted = false;
	while (v->n < v->most && !v->reader.is_lost) {
		if (v->chunks_in && !v->block_left) {
			if (v->n)
				break;
			if (atomic_load(&v->counters.is_stopped)) {
				in->is_ended = true;
				in->is_cut = true;
				break;
			}
			if (!read_header(v)) {
				in->is_exhausted = true;
				break;
			}
			continue;
		}
		if (!read_row(v)) {
			in->is_exhausted = true;
			break;
		}
		v->block_left -= v->chunks_in;
	}
	if (v->n && !v->chunks_in)
		begin_block(v);
	row_count(&v->counters.read_ns, now_ns() - begun);
}

/*
 * Reads the next batch; returns false if there is none. Headers of empty blocks may have been
 * written.
 */
static bool read_batch(struct resolve *v)
{
	struct row_input *in = &v->input;

	v->n = 0;
	for (;;) {
		row_input_gather(in, v->block_left != 0);
		read_rows(v);
		if (v->n)
			return true;
		out_flush(&v->out);
		if (in->is_ended || v->reader.is_lost || v->out.failed)
			return false;
	}
}

/* Builds of a batch. */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *at = data;
	uint64_t word;

	for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
		memcpy(&word, at, sizeof word);
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	while (size--)
		hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

static bool is_same_build(const struct build_entry *a, const struct build_entry *b)
{
	return a->hash == b->hash && a->build.build_id_size == b->build.build_id_size &&
	       a->build.module_size == b->build.module_size &&
	       memcmp(a->bytes, b->bytes, a->build.build_id_size) == 0 &&
	       (!a->build.module_size ||
		memcmp(a->build.module, b->build.module, a->build.module_size) == 0);
}

static void enter_build(struct resolve *v, uint32_t number)
{
	size_t at = v->builds[number].hash & (v->n_slots - 1);

	while (v->slots[at])
		at = (at + 1) & (v->n_slots - 1);
	v->slots[at] = number + 1;
}

/* Makes room for one more build. */
static void grow_builds(struct resolve *v)
{
	if (v->n_builds == v->cap_builds) {
		v->cap_builds = v->cap_builds ? 2 * v->cap_builds : 64;
		v->builds = must(realloc(v->builds, v->cap_builds * sizeof *v->builds));
	}
	if (2 * (v->n_builds + 1) <= v->n_slots)
		return;
	free(v->slots);
	v->n_slots = v->n_slots ? 2 * v->n_slots : 256;
	v->slots = must(calloc(v->n_slots, sizeof *v->slots));
	for (size_t i = 0; i < v->n_builds; i++)
		enter_build(v, (uint32_t)i);
}

/* Returns the number of the build of @row in the batch. */
static uint32_t build_of(struct resolve *v, const struct row *row)
{
	const struct row_text module = row->keys[ROW_MODULE];
	struct build_entry e = { .build = { .module = module.size ? module.data : NULL,
					    .module_size = module.size } };
	size_t at;

	e.build.build_id_size = row_build_id(row, e.bytes);
	/* Rows cannot know this address, so they cannot choose builds of one hash. */
	e.hash = hash_bytes((uintptr_t)v, e.bytes, e.build.build_id_size);
	e.hash = hash_bytes(e.hash, module.data, module.size);
	grow_builds(v);
	for (at = e.hash & (v->n_slots - 1); v->slots[at]; at = (at + 1) & (v->n_slots - 1))
		if (is_same_build(&v->builds[v->slots[at] - 1], &e))
			return v->slots[at] - 1;
	v->builds[v->n_builds] = e;
	v->slots[at] = (uint32_t)++v->n_builds;
	return (uint32_t)(v->n_builds - 1);
}

/*
 * Makes columns of the rows from *@at on that are good, of as many builds as may be answered at
 * once; returns their number, and in *@at the row after them.
 */
static size_t make_columns(struct resolve *v, size_t *at)
{
	size_t n = 0;
	size_t i;

	v->n_builds = 0;
	if (v->n_slots)
		memset(v->slots, 0, v->n_slots * sizeof *v->slots);
	for (i = *at; i < v->n && v->n_builds < v->most_builds; i++) {
		const struct row *row = &v->rows[i];

		if (row->error)
			continue;
		v->row_builds[n] = build_of(v, row);
		v->numbers[n] = row->offset;
		v->kinds[n] = row->kind;
		n++;
	}
	*at = i;
	v->build_column =
		must(realloc(v->build_column, (v->n_builds + 1) * sizeof *v->build_column));
	for (i = 0; i < v->n_builds; i++) {
		v->build_column[i] = v->builds[i].build;
		v->build_column[i].build_id = v->builds[i].bytes;
	}
	return n;
}

/* Answers. */

/* fathom_options.progress, with a deadline. */
static int on_progress(void *data, const struct fathom_progress *p)
{
	const struct resolve *v = data;

	(void)p;
	return v->ends_ns && now_ns() >= v->ends_ns ? FATHOM_CANCEL : FATHOM_GO_ON;
}

static struct fathom_row_answers *ask(struct resolve *v, size_t n)
{
	const struct fathom_rows rows = { .size = sizeof rows,
					  .n = n,
					  .builds = v->build_column,
					  .n_builds = v->n_builds,
					  .row_builds = v->row_builds,
					  .numbers = v->numbers,
					  .kinds = v->kinds };
	struct fathom_row_answers *answers;
	struct fathom_errinfo info;

	if (fathom_resolver_answer(v->resolver, &rows, &answers, &info)) {
		out_flush(&v->out);
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	return answers;
}

/* Counts a row by its answer. */
static void count_row(struct resolve *v, const struct row *row, const struct fathom_answer *a)
{
	const unsigned reason = row->error ? FATHOM_REASON_NO_BASE + 1u + row->error : a->reason;

	if (a->symbol || a->frame)
		row_count(&v->counters.answered, 1);
	else if (reason < COUNTED_REASONS)
		row_count(&v->counters.unresolved[reason], 1);
}

/* Rows that are written by one thread. */
struct writing {
	struct resolve *v;
	struct row_writer *writer;
	const struct fathom_answer *const *answers; /* of the rows that are good, from first on */
	size_t first;
	size_t end;
};

static void *write_some(void *data)
{
	static const struct fathom_answer none = { .module_address = FATHOM_NO_ADDRESS };
	struct writing *w = data;

	for (size_t i = w->first; i < w->end && !w->writer->out->failed; i++) {
		const struct row *row = &w->v->rows[i];
		const struct fathom_answer *a = row->error ? &none : *w->answers++;
		const char *reason = row->error ? row_error_name((enum row_error)row->error)
						: fathom_reason_name((enum fathom_reason)a->reason);

		row_write(w->writer, row, a, reason);
		count_row(w->v, row, a);
	}
	return NULL;
}

/* Returns how many of the rows [@first, @end) are good. */
static size_t count_good(const struct resolve *v, size_t first, size_t end)
{
	size_t n = 0;

	for (size_t i = first; i < end; i++)
		n += !v->rows[i].error;
	return n;
}

/* Writes the rows [@first, @end); the second half is collected by another thread. */
static void write_both(struct resolve *v, const struct fathom_answer *const *answers, size_t first,
		       size_t end)
{
	const size_t middle = first + (end - first) / 2;
	struct writing here = { v, &v->writer, answers, first, middle };
	struct writing there = { v, &v->second, answers + count_good(v, first, middle), middle,
				 end };

	common_run_both(&v->common, write_some, &here, &there);
	v->together = KEPT_BYTES * (end - first) / (v->kept.n + 1) + ALONE_ROWS;
	out_join(&v->out, &v->kept);
}

/* Writes the rows [@first, @end) of the batch. */
static void write_rows(struct resolve *v, const struct fathom_answer *const *answers, size_t first,
		       size_t end)
{
	if (end - first < ALONE_ROWS || v->common.options.threads == 1) {
		(void)write_some(&(struct writing){ v, &v->writer, answers, first, end });
		return;
	}
	while (first < end && !v->out.failed) {
		const size_t left = end - first;
		const size_t next = first + (left < v->together ? left : v->together);

		write_both(v, answers, first, next);
		answers += count_good(v, first, next);
		first = next;
	}
}

/* Returns whether standard output takes some bytes at once. */
static bool is_output_ready(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) > 0;
}

/*
 * Writes the rest, or all of a small batch. An engine that does not read may wait until its own
 * rows are read: from here on a thread does that, unless the bytes go out at once.
 */
static void write_out(struct resolve *v)
{
	struct out *o = &v->out;

	if (o->n > PIPE_BYTES || !is_output_ready())
		row_input_read_ahead(&v->input);
	o->keep = false;
	out_flush(o);
	atomic_store_explicit(&v->counters.bytes_out, o->n_written, memory_order_relaxed);
}

/* Answers and writes the rows of the batch from @first on; returns the row after them. */
static size_t answer_rows(struct resolve *v, size_t first)
{
	size_t end = first;
	const size_t n = make_columns(v, &end);
	struct fathom_row_answers *answers = ask(v, n);
	const uint64_t begun = now_ns();

	write_rows(v, fathom_row_answers_array(answers), first, end);
	row_count(&v->counters.write_ns, now_ns() - begun);
	fathom_row_answers_free(answers);
	return end;
}

static void answer_batch(struct resolve *v)
{
	const bool is_large = v->n >= MANY_ROWS;
	size_t first = 0;
	uint64_t begun;

	if (is_large)
		row_input_read_ahead(&v->input);
	if (is_large && !v->is_many && v->most == MOST_ROWS)
		heap_expect_much();
	v->is_many |= is_large;
	v->out.keep = !is_large;
	while (first < v->n && !v->out.failed)
		first = answer_rows(v, first);
	begun = now_ns();
	write_out(v);
	row_count(&v->counters.write_ns, now_ns() - begun);
	row_count(&v->counters.rows, v->n);
}

/* The run. */

static void allocate(struct resolve *v)
{
	const uint64_t budget =
		v->common.options.memory_budget ? v->common.options.memory_budget : DEFAULT_BUDGET;
	const uint64_t fits = budget / 8 / ROW_BYTES;

	v->most = fits < LEAST_ROWS ? LEAST_ROWS : fits > MOST_ROWS ? MOST_ROWS : (size_t)fits;
	v->most_builds = (size_t)(budget / 4 / BUILD_BYTES) + 1;
	v->rows = must(malloc(v->most * sizeof *v->rows));
	v->row_builds = must(malloc(v->most * sizeof *v->row_builds));
	v->numbers = must(malloc(v->most * sizeof *v->numbers));
	v->kinds = must(malloc(v->most));
	row_input_init(&v->input, STDIN_FILENO, budget / 2, v->counters.stop_fd,
		       &v->counters.is_stopped);
}

static void release(struct resolve *v)
{
	row_input_deinit(&v->input);
	free(v->rows);
	free(v->row_builds);
	free(v->numbers);
	free(v->kinds);
	free(v->builds);
	free(v->build_column);
	free(v->slots);
	free(v->module_dirs);
	free(v->stores);
}

static void resolve_stream(struct resolve *v)
{
	out_init(&v->out);
	out_init_kept(&v->kept);
	v->second = v->writer;
	v->together = WRITE_TOGETHER;
	row_writer_init(&v->writer, &v->out);
	row_writer_init(&v->second, &v->kept);
	while (!v->out.failed && read_batch(v))
		answer_batch(v);
	v->is_cut = v->block_left || v->reader.is_lost ||
		    (v->chunks_in && v->input.is_ended && v->input.n != v->input.used &&
		     !v->input.is_cut);
	row_writer_deinit(&v->writer);
	row_writer_deinit(&v->second);
	out_deinit(&v->kept);
	out_deinit(&v->out);
}

/* Says why rows are missing in the output; returns the status. */
static int status_of(const struct resolve *v)
{
	if (v->reader.is_lost)
		complain("standard input",
			 "a text is longer than 1 MiB: no row after it can be found",
			 "check --format and --input-columns");
	else if (v->is_cut && !v->out.failed)
		complain("standard input", "ends within a block", "check what the engine sends");
	return v->is_cut ? EXIT_USAGE : common_status(&v->out, false);
}

/* Returns the milliseconds that stores have for a block: no more than the block itself. */
static uint32_t store_ms(const struct resolve *v)
{
	const uint64_t deadline = v->deadline_ns / 1000000u + 1;

	if (!v->deadline_ns)
		return v->store_ms;
	return v->store_ms && v->store_ms < deadline ? v->store_ms : (uint32_t)deadline;
}

static struct fathom *create(struct resolve *v)
{
	const struct fathom_resolver_options o = {
		.size = sizeof o,
		.flags = v->flags,
		.symbolize_flags = v->symbolize_flags,
		.where = &v->common.where,
		.module_dirs = v->module_dirs,
		.missing_ms = v->forget_ms,
		.store_timeout_ms = store_ms(v),
		.stores = v->stores,
	};
	struct fathom_errinfo info;
	struct fathom *session;

	if (v->deadline_ns) {
		v->common.options.progress = on_progress;
		v->common.options.progress_data = v;
	}
	session = common_session(&v->common);
	if (fathom_resolver_create(session, &o, &v->resolver, &info)) {
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	return session;
}

int verb_resolve(int argc, char **argv)
{
	struct resolve *v = must(calloc(1, sizeof *v));
	struct fathom *session;
	int status;

	common_init(&v->common);
	parse_options(v, argc, argv);
	row_counters_init(&v->counters);
	session = create(v);
	allocate(v);
	v->counters.input = &v->input;
	v->counters.resolver = v->resolver;
	v->counters.session = session;
	row_counters_start(&v->counters);
	resolve_stream(v);
	row_counters_stop(&v->counters);
	if (v->prints_stats)
		row_counters_print(&v->counters);
	status = status_of(v);
	fathom_resolver_destroy(v->resolver);
	fault_destroy(session);
	common_deinit(&v->common);
	release(v);
	free(v);
	return status;
}
