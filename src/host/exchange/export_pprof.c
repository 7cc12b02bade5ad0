/* SPDX-License-Identifier: MIT */
/*
 * Profiles of pprof: protocol buffers (https://protobuf.dev/programming-guides/encoding/), as
 * proto/profile.proto of https://github.com/google/pprof describes them. nanopb encodes what is in
 * fields; which fields there are is said here.
 *
 * Samples are written first, then the locations that they have, the functions and modules of these,
 * at last all strings. Each location is written at most twice: whole, and from the function of the
 * filter `under` on, where stacks begin. Weights without a place have locations of their own, of
 * functions in brackets, as the rows of a report.
 *
 * Addresses are those that files state: the mapping of each spans all addresses, from which pprof
 * concludes that they are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fathom/stack.h"
#include "host/base/proto_fields.h"
#include "host/events/escape.h"
#include "host/exchange/exporting.h"
#include "host/exchange/gzip_writer.h"
#include "host/profile/report_tree.h"
#include "safe/base/error.h"
#include "safe/base/hex.h"

/* Frames before the caller is asked whether to go on. */
#define PACE (1 << 18)
/* Bytes that are collected before they are compressed. */
#define ENOUGH ((size_t)64 << 10)

/* Profile */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14
};

/* ValueType */
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };

/* Sample */
enum { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };

/* Label */
enum { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3 };

/* Mapping */
enum {
	MAPPING_ID = 1,
	MAPPING_MEMORY_LIMIT = 3,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	MAPPING_HAS_INLINE_FRAMES = 10
};

/* Location */
enum { LOCATION_ID = 1, LOCATION_MAPPING_ID = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };

/* Line */
enum { LINE_FUNCTION_ID = 1, LINE_LINE = 2, LINE_COLUMN = 3 };

/* Function */
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILENAME = 4 };

/* How much of a location's frames is written. */
enum { WHOLE, BEGIN, VARIANTS };

/* Facts about a module, for its mapping. */
enum { IS_USED = 1, HAS_FUNCTIONS = 2, HAS_FILENAMES = 4, HAS_LINES = 8, HAS_INLINED = 16 };

struct numbers {
	FATHOM_ARRAY_OF(uint64_t);
};

struct pprof {
	const struct fathom_profile *profile;
	struct fathom_report_rows rows;
	struct fathom_name_table strings;
	struct fathom_bytes_array clean; /* a string in UTF-8 */
	struct fathom_bytes_array out;   /* what was encoded */
	struct fathom_gzip gzip;
	struct fathom_pace pace;
	struct numbers stack;          /* locations of the sample that is written */
	struct fathom_u32_array nodes; /* of the same */
	uint8_t *locations;            /* bits 1 << variant of those that samples have */
	uint8_t *own;                  /* 1 for rows without a location that samples have */
	uint8_t *functions;            /* 1 for rows that locations have */
	const char **files;            /* of these, or NULL */
	uint8_t *modules;              /* IS_USED and so on */
	bool no_memory;
	bool is_cancelled;
};

/* Appends a number, unless it is 0, which is what readers take a field for that is not there. */
static bool put_number(pb_ostream_t *to, uint32_t field, uint64_t value)
{
	return !value || fathom_proto_number(to, field, value);
}

/* Takes bytes from nanopb. */
static bool collect(pb_ostream_t *to, const pb_byte_t *bytes, size_t n)
{
	struct pprof *p = to->state;

	if (!fathom_array_room(&p->out, n)) {
		p->no_memory = true;
		return false;
	}
	memcpy(p->out.items + p->out.n, bytes, n);
	p->out.n += n;
	return true;
}

static void pass_on(struct pprof *p)
{
	fathom_gzip_put(&p->gzip, p->out.items, p->out.n);
	p->out.n = 0;
}

/* Writes a field of the profile: a message that @body encodes. */
static void write_message(struct pprof *p, uint32_t field, fathom_proto_body *body,
			  const void *message)
{
	pb_ostream_t to = { .callback = collect, .state = p, .max_size = SIZE_MAX };

	p->no_memory |= !fathom_proto_message(&to, field, body, message);
	if (p->out.n > ENOUGH)
		pass_on(p);
}

static void write_number(struct pprof *p, uint32_t field, uint64_t value)
{
	pb_ostream_t to = { .callback = collect, .state = p, .max_size = SIZE_MAX };

	p->no_memory |= !put_number(&to, field, value);
}

/* Returns the number of @s in the table of strings; 0 is "". */
static uint64_t string(struct pprof *p, const char *s)
{
	uint32_t number;

	if (!s || !*s)
		return 0;
	if (!fathom_escape_utf8(&p->clean, s)) {
		p->no_memory = true;
		return 0;
	}
	number = fathom_name_table_add(&p->strings, p->clean.items);
	p->no_memory |= number == FATHOM_KEY_NEW;
	return number == FATHOM_KEY_NEW ? 0 : number;
}

struct value_type {
	uint64_t type; /* strings */
	uint64_t unit;
};

static bool put_value_type(pb_ostream_t *to, const void *message)
{
	const struct value_type *v = message;

	return put_number(to, VALUE_TYPE, v->type) && put_number(to, VALUE_UNIT, v->unit);
}

static void write_comment(struct pprof *p, const char *text)
{
	write_number(p, PROFILE_COMMENT, string(p, text));
}

/* Writes what is missing, as the header of a report says it. */
static void write_comments(struct pprof *p)
{
	const struct fathom_profile_info *info = &p->profile->info;
	char text[64];

	write_comment(p, info->command);
	if (info->lost) {
		(void)snprintf(text, sizeof text, "%" PRIu64 " samples were lost", info->lost);
		write_comment(p, text);
	}
	if (info->throttled) {
		(void)snprintf(text, sizeof text, "throttled %" PRIu64 " times by the kernel",
			       info->throttled);
		write_comment(p, text);
	}
	if (info->is_kernel_hidden)
		write_comment(p, "the kernel's stacks were not permitted");
	if (!info->is_complete)
		write_comment(p, "the profile ends before the recording did");
}

/* Writes what the profile says of itself, and what samples count. */
static void write_header(struct pprof *p)
{
	const struct fathom_profile_info *info = &p->profile->info;
	const uint32_t time = p->rows.options->time;
	const bool is_time = time || strcmp(info->unit, "ns") == 0;
	const struct value_type samples = { string(p, "samples"), string(p, "count") };
	const struct value_type weight = { string(p, time == FATHOM_REPORT_WAITING ? "waiting"
						     : time                        ? "wall"
						     : is_time                     ? "cpu"
						     : *info->event                ? info->event
										   : "weight"),
					   string(p, is_time ? "nanoseconds" : "count") };
	uint64_t period = info->n_samples ? info->weight / info->n_samples : 0;

	if (time == FATHOM_REPORT_WAITING)
		period = 1;
	else if (is_time && info->frequency)
		period = 1000000000 / info->frequency;
	write_message(p, PROFILE_SAMPLE_TYPE, put_value_type, &samples);
	write_message(p, PROFILE_SAMPLE_TYPE, put_value_type, &weight);
	write_number(p, PROFILE_TIME_NANOS, info->started);
	write_number(p, PROFILE_DURATION_NANOS, info->duration_ns);
	write_message(p, PROFILE_PERIOD_TYPE, put_value_type, &weight);
	write_number(p, PROFILE_PERIOD, period);
	write_number(p, PROFILE_DEFAULT_SAMPLE_TYPE, weight.type);
	write_comments(p);
}

struct label {
	uint64_t key; /* strings */
	uint64_t text;
	uint64_t number; /* without a text */
};

struct sample {
	const struct numbers *stack;
	struct numbers values;
	struct label labels[5]; /* without a key: none */
};

static bool put_label(pb_ostream_t *to, const void *message)
{
	const struct label *l = message;

	return put_number(to, LABEL_KEY, l->key) && put_number(to, LABEL_STR, l->text) &&
	       put_number(to, LABEL_NUM, l->number);
}

/* Encodes packed numbers. */
static bool put_numbers(pb_ostream_t *to, const void *message)
{
	const struct numbers *all = message;
	bool is_done = true;

	for (size_t i = 0; i < all->n && is_done; i++)
		is_done = pb_encode_varint(to, all->items[i]);
	return is_done;
}

static bool put_sample(pb_ostream_t *to, const void *message)
{
	const struct sample *s = message;
	bool is_done = fathom_proto_message(to, SAMPLE_LOCATION_ID, put_numbers, s->stack) &&
		       fathom_proto_message(to, SAMPLE_VALUE, put_numbers, &s->values);

	for (size_t i = 0; i < sizeof s->labels / sizeof *s->labels && is_done; i++)
		is_done = !s->labels[i].key ||
			  fathom_proto_message(to, SAMPLE_LABEL, put_label, &s->labels[i]);
	return is_done;
}

/* Returns how many frames of location @i its variant has, from the innermost one. */
static uint32_t count_frames(const struct pprof *p, uint32_t i, unsigned variant)
{
	uint32_t n;
	const struct fathom_report_frame *frames = fathom_report_chain(&p->rows, i, &n);

	while (variant == BEGIN && n && !(frames[n - 1].chosen & FATHOM_REPORT_UNDER))
		n--;
	return n;
}

static bool has_wanted(const struct pprof *p, uint32_t i, unsigned variant)
{
	const uint32_t n = count_frames(p, i, variant);
	uint32_t all;
	const struct fathom_report_frame *frames = fathom_report_chain(&p->rows, i, &all);

	for (uint32_t k = 0; k < n; k++)
		if (frames[k].chosen & FATHOM_REPORT_WANTED)
			return true;
	return false;
}

/* Returns the id of a variant of location @i. */
static uint64_t location_id(uint32_t i, unsigned variant)
{
	return (uint64_t)VARIANTS * i + variant + 1;
}

/* Returns the id of the location of @row, which has no other. */
static uint64_t own_id(const struct pprof *p, uint32_t row)
{
	return (uint64_t)VARIANTS * p->profile->n_locations + row + 1;
}

static void push_location(struct pprof *p, uint32_t i, unsigned variant)
{
	if (!has_wanted(p, i, variant))
		return;
	p->locations[i] |= (uint8_t)(1u << variant);
	p->no_memory |= !fathom_array_push(&p->stack, location_id(i, variant));
}

static void push_own(struct pprof *p, uint32_t row)
{
	p->own[row] = 1;
	p->no_memory |= !fathom_array_push(&p->stack, own_id(p, row));
}

/*
 * Collects the nodes of the stack of @leaf, the innermost first; of those that are chosen by
 * `under`, the outermost one is the last. Returns false if there is none of them.
 */
static bool collect_nodes(struct pprof *p, const struct fathom_report_leaf *leaf)
{
	const struct fathom_profile_node *nodes = p->profile->nodes;
	size_t end = 0;

	p->nodes.n = 0;
	for (uint32_t i = leaf->node; i && !p->no_memory; i = nodes[i].caller) {
		p->no_memory |= !fathom_array_push(&p->nodes, i);
		if (p->rows.has_under && count_frames(p, nodes[i].location, BEGIN))
			end = p->nodes.n;
		if (!fathom_keeps_pace(&p->pace))
			p->is_cancelled = true;
		if (p->is_cancelled)
			return false;
	}
	if (p->rows.has_under)
		p->nodes.n = end;
	return !p->rows.has_under || end;
}

/* Makes the stack of @leaf; returns false if all of it is left out. */
static bool make_stack(struct pprof *p, const struct fathom_report_leaf *leaf)
{
	const struct fathom_report_rows *r = &p->rows;

	p->stack.n = 0;
	if (!collect_nodes(p, leaf))
		return false;
	if (leaf->part == FATHOM_PROFILE_UNSAMPLED && r->has_own)
		push_own(p, r->unsampled);
	else if (leaf->part == FATHOM_PROFILE_KERNEL_HIDDEN && r->has_own)
		push_own(p, r->hidden);
	for (size_t i = 0; i < p->nodes.n && !p->no_memory; i++)
		push_location(p, p->profile->nodes[p->nodes.items[i]].location,
			      r->has_under && i + 1 == p->nodes.n ? BEGIN : WHOLE);
	if (leaf->stop != FATHOM_STOP_ENTRY && !r->has_under && r->has_own)
		push_own(p, r->incomplete[leaf->stop]);
	return p->stack.n && !p->no_memory;
}

static void write_sample(struct pprof *p, const struct fathom_report_leaf *leaf)
{
	const struct fathom_report_row *thread = &p->rows.items[leaf->group];
	uint64_t values[2] = { leaf->n, leaf->weight };
	const struct sample s = {
		.stack = &p->stack,
		.values = { values, 2, 2 },
		.labels = { { string(p, "thread"), string(p, thread->name), 0 },
			    { string(p, "tid"), 0, (uint64_t)(int64_t)thread->tid },
			    { string(p, "pid"), 0, (uint64_t)(int64_t)thread->pid },
			    { string(p, "part"),
			      string(p, fathom_profile_part_name(
						(enum fathom_profile_part)leaf->part)),
			      0 },
			    { thread->cgroup ? string(p, "cgroup") : 0,
			      thread->cgroup ? string(p, thread->cgroup) : 0, 0 } }
	};

	write_message(p, PROFILE_SAMPLE, put_sample, &s);
}

struct line {
	uint64_t function; /* id */
	uint64_t line;
	uint64_t column;
};

struct location {
	uint64_t id;
	uint64_t mapping;
	uint64_t address;
	FATHOM_ARRAY_OF(struct line); /* the innermost first */
};

static bool put_line(pb_ostream_t *to, const void *message)
{
	const struct line *l = message;

	return put_number(to, LINE_FUNCTION_ID, l->function) &&
	       put_number(to, LINE_LINE, l->line) && put_number(to, LINE_COLUMN, l->column);
}

static bool put_location(pb_ostream_t *to, const void *message)
{
	const struct location *l = message;
	bool is_done = put_number(to, LOCATION_ID, l->id) &&
		       put_number(to, LOCATION_MAPPING_ID, l->mapping) &&
		       put_number(to, LOCATION_ADDRESS, l->address);

	for (size_t i = 0; i < l->n && is_done; i++)
		is_done = fathom_proto_message(to, LOCATION_LINE, put_line, &l->items[i]);
	return is_done;
}

/* Appends the line of @frame, which @f describes if it is known, to @l. */
static void add_line(struct pprof *p, struct location *l, const struct fathom_report_frame *frame,
		     const struct fathom_frame *f, uint8_t *module)
{
	const struct line line = { .function = (uint64_t)frame->row + 1,
				   .line = f ? f->line : 0,
				   .column = f ? f->column : 0 };

	p->no_memory |= !fathom_array_push(l, line);
	p->functions[frame->row] = 1;
	if (f && f->file && !p->files[frame->row])
		p->files[frame->row] = f->file;
	*module |= HAS_FUNCTIONS | (f && f->file ? HAS_FILENAMES : 0) |
		   (f && f->line ? HAS_LINES : 0) | (f && f->outer ? HAS_INLINED : 0);
}

/* Returns whether nothing names @a: pprof may know more, or shows the address. */
static bool is_nameless(const struct fathom_answer *a)
{
	return !a->symbol && (!a->frame || (!a->frame->function && !a->frame->outer));
}

/* Writes a variant of location @i, if samples have it. */
static void write_location(struct pprof *p, uint32_t i, unsigned variant, struct location *l)
{
	const struct fathom_profile_location *from = &p->profile->locations[i];
	const struct fathom_frame *f = from->answer->frame;
	const uint32_t n = count_frames(p, i, variant);
	uint32_t all;
	const struct fathom_report_frame *frames = fathom_report_chain(&p->rows, i, &all);
	uint8_t none = 0;
	uint8_t *module = from->module == UINT32_MAX ? &none : &p->modules[from->module];

	if (!(p->locations[i] & 1u << variant))
		return;
	l->id = location_id(i, variant);
	l->mapping = from->module == UINT32_MAX ? 0 : (uint64_t)from->module + 1;
	l->address = from->pc.address;
	l->n = 0;
	*module |= IS_USED;
	for (uint32_t k = 0; k < n && !is_nameless(from->answer); k++, f = f ? f->outer : NULL)
		if (frames[k].chosen & FATHOM_REPORT_WANTED)
			add_line(p, l, &frames[k], f, module);
	write_message(p, PROFILE_LOCATION, put_location, l);
}

/* Writes the locations that samples have. */
static void write_locations(struct pprof *p)
{
	struct location l = { .n = 0 };

	for (uint32_t i = 0; i < p->profile->n_locations && !p->no_memory; i++)
		for (unsigned variant = 0; variant < VARIANTS; variant++)
			write_location(p, i, variant, &l);
	l.mapping = l.address = 0;
	for (uint32_t row = 0; row < p->rows.n && !p->no_memory; row++) {
		if (!p->own[row])
			continue;
		l.id = own_id(p, row);
		l.n = 0;
		p->no_memory |=
			!fathom_array_push(&l, (struct line){ .function = (uint64_t)row + 1 });
		p->functions[row] = 1;
		write_message(p, PROFILE_LOCATION, put_location, &l);
	}
	fathom_array_free(&l);
}

struct function {
	uint64_t id;
	uint64_t name; /* strings */
	uint64_t system_name;
	uint64_t file;
};

static bool put_function(pb_ostream_t *to, const void *message)
{
	const struct function *f = message;

	return put_number(to, FUNCTION_ID, f->id) && put_number(to, FUNCTION_NAME, f->name) &&
	       put_number(to, FUNCTION_SYSTEM_NAME, f->system_name) &&
	       put_number(to, FUNCTION_FILENAME, f->file);
}

static void write_functions(struct pprof *p)
{
	for (uint32_t i = 0; i < p->rows.n && !p->no_memory; i++) {
		const struct fathom_report_row *row = &p->rows.items[i];
		struct function f = { .id = (uint64_t)i + 1 };

		if (!p->functions[i])
			continue;
		f.name = string(p, row->name);
		f.system_name = string(p, row->linkage_name ? row->linkage_name : row->name);
		f.file = string(p, p->files[i]);
		write_message(p, PROFILE_FUNCTION, put_function, &f);
	}
}

struct mapping {
	uint64_t id;
	uint64_t file; /* strings */
	uint64_t build_id;
	uint8_t has; /* HAS_FUNCTIONS and so on */
};

static bool put_mapping(pb_ostream_t *to, const void *message)
{
	const struct mapping *m = message;

	return put_number(to, MAPPING_ID, m->id) &&
	       put_number(to, MAPPING_MEMORY_LIMIT, UINT64_MAX) &&
	       put_number(to, MAPPING_FILENAME, m->file) &&
	       put_number(to, MAPPING_BUILD_ID, m->build_id) &&
	       put_number(to, MAPPING_HAS_FUNCTIONS, (m->has & HAS_FUNCTIONS) != 0) &&
	       put_number(to, MAPPING_HAS_FILENAMES, (m->has & HAS_FILENAMES) != 0) &&
	       put_number(to, MAPPING_HAS_LINE_NUMBERS, (m->has & HAS_LINES) != 0) &&
	       put_number(to, MAPPING_HAS_INLINE_FRAMES, (m->has & HAS_INLINED) != 0);
}

/* Returns the string of the build-id of @m, in hexadecimal digits. */
static uint64_t build_id_of(struct pprof *p, const struct fathom_profile_module *m)
{
	char *text = malloc(2 * (size_t)m->build_id_size + 1);
	uint64_t number;

	if (!text) {
		p->no_memory = true;
		return 0;
	}
	fathom_hex_put(text, m->build_id, m->build_id_size);
	number = string(p, text);
	free(text);
	return number;
}

static void write_mappings(struct pprof *p)
{
	for (size_t i = 0; i < p->profile->n_modules && !p->no_memory; i++) {
		const struct fathom_profile_module *m = &p->profile->modules[i];
		struct mapping mapping = { .id = i + 1, .has = p->modules[i] };

		if (!(p->modules[i] & IS_USED))
			continue;
		mapping.file = string(p, m->path);
		mapping.build_id = build_id_of(p, m);
		write_message(p, PROFILE_MAPPING, put_mapping, &mapping);
	}
}

/* Writes the table of strings. */
static void write_strings(struct pprof *p)
{
	pb_ostream_t to = { .callback = collect, .state = p, .max_size = SIZE_MAX };

	for (size_t i = 0; i < p->strings.n && !p->no_memory; i++) {
		p->no_memory |=
			!fathom_proto_string(&to, PROFILE_STRING_TABLE, p->strings.items[i].text);
		if (p->out.n > ENOUGH)
			pass_on(p);
	}
}

/* Writes all of the profile, whose leaves are @leaves. */
static void write_all(struct pprof *p, const struct fathom_report_leaves *leaves)
{
	p->no_memory |= fathom_name_table_add(&p->strings, "") != 0;
	write_header(p);
	for (size_t i = 0; i < leaves->n && !p->no_memory && !p->gzip.has_failed; i++)
		if (make_stack(p, &leaves->items[i]))
			write_sample(p, &leaves->items[i]);
	if (p->gzip.has_failed || p->is_cancelled)
		return;
	write_locations(p);
	write_functions(p);
	write_mappings(p);
	write_strings(p);
	if (!p->no_memory)
		pass_on(p);
}

static bool init_marks(struct pprof *p)
{
	const size_t n = p->rows.n + 1;

	p->locations = calloc(p->profile->n_locations + 1, 1);
	p->modules = calloc(p->profile->n_modules + 1, 1);
	p->own = calloc(n, 1);
	p->functions = calloc(n, 1);
	p->files = calloc(n, sizeof *p->files);
	return p->locations && p->modules && p->own && p->functions && p->files;
}

static void deinit(struct pprof *p)
{
	fathom_report_rows_deinit(&p->rows);
	fathom_name_table_deinit(&p->strings);
	fathom_array_free(&p->clean);
	fathom_array_free(&p->out);
	fathom_array_free(&p->stack);
	fathom_array_free(&p->nodes);
	free(p->locations);
	free(p->modules);
	free(p->own);
	free(p->functions);
	free(p->files);
}

/* Writes the profile, whose rows and marks are made. */
static fathom_err write_profile(struct pprof *p, struct fathom_errinfo *reterr)
{
	struct fathom_report_leaves leaves = { .n = 0 };
	fathom_err err = fathom_report_leaves_init(&leaves, &p->rows, reterr);

	if (!err) {
		fathom_gzip_begin(&p->gzip);
		if (!p->gzip.no_memory)
			write_all(p, &leaves);
		p->gzip.no_memory |= p->no_memory || p->is_cancelled;
		fathom_gzip_end(&p->gzip);
	}
	fathom_report_leaves_deinit(&leaves);
	if (err)
		return err;
	if (p->is_cancelled)
		return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "the caller has given it up");
	if (p->gzip.has_failed)
		return fathom_export_fail_write(reterr);
	return p->gzip.no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

fathom_err fathom_export_pprof(const struct fathom_export *e, struct fathom_errinfo *reterr)
{
	struct fathom_report_options o = *e->options;
	struct pprof p = { .profile = e->profile,
			   .rows = { .profile = e->profile, .options = &o },
			   .gzip = { .write = e->write, .data = e->data },
			   .pace = fathom_pace_init(e->profile->session, PACE) };
	fathom_err err;

	/* Threads are the groups of leaves, and their names labels. */
	o.key = FATHOM_REPORT_BY_THREAD;
	err = fathom_report_rows_init(&p.rows, reterr);
	if (!err && !init_marks(&p))
		err = fathom_fail_memory(reterr);
	if (!err)
		err = write_profile(&p, reterr);
	deinit(&p);
	return err;
}
