/* SPDX-License-Identifier: MIT */
/*
 * Profiles of pprof: protocol buffers (https://protobuf.dev/programming-guides/encoding/), as
 * proto/profile.proto of https://github.com/google/pprof describes them; gzip is undone when the
 * file is opened.
 *
 * Of several types of samples the default one is read or, as pprof does, the last. Locations with
 * lines have these as inlined functions. One without is named from its file if the mapping spans
 * all addresses, as in fathom's own: else nothing says which address the file states for it. Labels
 * other than thread, tid and pid are left out; so are regular expressions that drop frames.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/name_table.h"
#include "host/base/path.h"
#include "host/exchange/importing.h"
#include "host/profile/samples_format.h"
#include "safe/base/cursor.h"

/* The most functions that are inlined into each other; of more the innermost are kept. */
#define MOST_LINES 1000

/* Fields of the file between looks at how much memory they take. */
#define PACE 4096

/* Wire types. */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* A field of a message. */
struct field {
	uint64_t number;
	uint64_t value;             /* of a number */
	struct fathom_cursor bytes; /* of others; empty */
	bool is_bytes;
};

/* A mapping. */
struct mapping {
	uint64_t start;
	struct fathom_str file;
	struct fathom_str build_id; /* hexadecimal digits */
};

/* A function: numbers of strings. */
struct function {
	uint64_t name;
	uint64_t system_name;
	uint64_t file;
};

/* A location, with its numbers in the profile once it has them. */
struct location {
	struct fathom_cursor body;
	uint32_t inner; /* as the innermost frame; FATHOM_TABLE_NONE: none yet */
	uint32_t outer; /* as a caller, likewise */
};

struct pprof {
	struct fathom_import *import;
	struct {
		FATHOM_ARRAY_OF(struct fathom_str);
	} strings;
	struct {
		FATHOM_ARRAY_OF(struct mapping);
	} mappings;
	struct {
		FATHOM_ARRAY_OF(struct function);
	} functions;
	struct {
		FATHOM_ARRAY_OF(struct location);
	} locations;
	struct {
		FATHOM_ARRAY_OF(struct fathom_cursor);
	} types;
	struct fathom_key_map mapping_ids;
	struct fathom_key_map function_ids;
	struct fathom_key_map location_ids;
	struct fathom_name_table threads;
	struct fathom_u64_array stack; /* of a sample, the innermost first */
	struct fathom_u64_array lines; /* of a location: function, line, column of each */
	uint64_t default_type;         /* string */
	uint64_t time;
	uint64_t duration;
	uint64_t comment; /* string, the first one */
	uint64_t scale;   /* factor of values */
	size_t type;      /* number of the values that are read */
	bool no_memory;
};

/* Takes the next field of @c; returns false at its end, or if it is damaged. */
static bool take_field(struct fathom_cursor *c, struct field *ret)
{
	uint64_t tag;

	if (!cur_left(c))
		return false;
	tag = cur_uleb(c);
	*ret = (struct field){ .number = tag >> 3,
			       .bytes = cur_init((struct fathom_bytes){ 0 }, false) };
	switch (tag & 7) {
	case WIRE_VARINT:
		ret->value = cur_uleb(c);
		break;
	case WIRE_64:
		ret->value = cur_u64(c);
		break;
	case WIRE_32:
		ret->value = cur_u32(c);
		break;
	case WIRE_BYTES:
		ret->bytes = cur_sub(c, cur_uleb(c));
		ret->is_bytes = true;
		break;
	default:
		cur_fail(c);
	}
	return cur_ok(c);
}

/* Files begin with the type of their samples: a message with two strings. */
bool fathom_is_pprof(struct fathom_bytes file)
{
	struct fathom_cursor c = cur_init(file, false);
	struct field first;
	struct field f;
	size_t n = 0;

	if (!file.size || file.data[0] != (1 << 3 | WIRE_BYTES) || !take_field(&c, &first))
		return false;
	while (take_field(&first.bytes, &f)) {
		if (f.is_bytes || f.number < 1 || f.number > 2 || n++ > 2)
			return false;
	}
	return n && cur_ok(&first.bytes);
}

static struct fathom_str string_at(const struct pprof *p, uint64_t i)
{
	return i < p->strings.n ? p->strings.items[i] : (struct fathom_str){ "", 0 };
}

/* Gives @id the number of the last of @n items. */
static void number(struct pprof *p, struct fathom_key_map *map, uint64_t id, size_t n)
{
	uint32_t *at = fathom_key_map_at(map, id);

	if (!at)
		p->no_memory = true;
	else
		*at = (uint32_t)n - 1;
}

/* Returns the number of the item with @id, of @n; UINT32_MAX: there is none. */
static uint32_t with_id(const struct fathom_key_map *map, uint64_t id, size_t n)
{
	const uint32_t at = fathom_key_map_find(map, id);

	return at < n ? at : UINT32_MAX;
}

/* Reads the numbers of the fields 1 to @n - 1 of a message. Returns false if it is damaged. */
static bool read_numbers(struct fathom_cursor c, uint64_t *values, size_t n)
{
	struct field f;

	memset(values, 0, n * sizeof *values);
	while (take_field(&c, &f))
		if (f.number < n && !f.is_bytes)
			values[f.number] = f.value;
	return cur_ok(&c);
}

static bool add_mapping(struct pprof *p, struct fathom_cursor c)
{
	uint64_t v[7];
	struct mapping m;

	if (!read_numbers(c, v, 7))
		return false;
	/* Strings may come later: their numbers are replaced then. */
	m = (struct mapping){ .start = v[2],
			      .file = { NULL, (uint32_t)v[5] },
			      .build_id = { NULL, (uint32_t)v[6] } };
	p->no_memory |= !fathom_array_push(&p->mappings, m);
	number(p, &p->mapping_ids, v[1], p->mappings.n);
	return true;
}

static bool add_function(struct pprof *p, struct fathom_cursor c)
{
	uint64_t v[5];
	struct function f;

	if (!read_numbers(c, v, 5))
		return false;
	f = (struct function){ v[2], v[3], v[4] };
	p->no_memory |= !fathom_array_push(&p->functions, f);
	number(p, &p->function_ids, v[1], p->functions.n);
	return true;
}

static bool add_location(struct pprof *p, struct fathom_cursor c)
{
	const struct location l = { c, FATHOM_TABLE_NONE, FATHOM_TABLE_NONE };
	uint64_t v[2];

	if (!read_numbers(c, v, 2))
		return false;
	p->no_memory |= !fathom_array_push(&p->locations, l);
	number(p, &p->location_ids, v[1], p->locations.n);
	return true;
}

/* Reads a field of the profile; all but samples. Returns false if it is damaged. */
static bool read_field(struct pprof *p, const struct field *f)
{
	struct fathom_str s;

	switch (f->number) {
	case 1:
		p->no_memory |= !fathom_array_push(&p->types, f->bytes);
		return true;
	case 3:
		return add_mapping(p, f->bytes);
	case 4:
		return add_location(p, f->bytes);
	case 5:
		return add_function(p, f->bytes);
	case 6:
		s.size = cur_left(&f->bytes) < FATHOM_PROFILE_TEXT ? (uint32_t)cur_left(&f->bytes)
								   : (uint32_t)FATHOM_PROFILE_TEXT;
		s.data = (const char *)f->bytes.p;
		s.size = (uint32_t)strnlen(s.data, s.size);
		p->no_memory |= !fathom_array_push(&p->strings, s);
		return true;
	case 9:
		p->time = f->value;
		return true;
	case 10:
		p->duration = f->value;
		return true;
	case 13:
		/* They are packed. */
		if (!p->comment) {
			struct fathom_cursor c = f->bytes;

			p->comment = f->is_bytes ? cur_uleb(&c) : f->value;
		}
		return true;
	case 14:
		p->default_type = f->value;
		return true;
	default:
		return true;
	}
}

static fathom_err fail(const struct pprof *p, const struct fathom_cursor *c, const char *what,
		       struct fathom_errinfo *reterr)
{
	const uint8_t *at = c->bad ? c->bad : c->p;

	return fathom_import_fail(p->import, FATHOM_E_CORRUPT,
				  (uint64_t)(at - p->import->file->bytes.data), what, reterr);
}

/* Returns how many bytes the tables have. */
static uint64_t size_of_tables(const struct pprof *p)
{
	const uint64_t slots = p->mapping_ids.cap + p->function_ids.cap + p->location_ids.cap;

	return p->strings.cap * (uint64_t)sizeof *p->strings.items +
	       p->mappings.cap * (uint64_t)sizeof *p->mappings.items +
	       p->functions.cap * (uint64_t)sizeof *p->functions.items +
	       p->locations.cap * (uint64_t)sizeof *p->locations.items +
	       p->types.cap * (uint64_t)sizeof *p->types.items +
	       slots * sizeof(struct fathom_key_map_slot);
}

static fathom_err read_definitions(struct pprof *p, struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(p->import->file->bytes, false);
	struct field f;
	uint64_t n_fields = 0;

	while (take_field(&c, &f)) {
		if (!read_field(p, &f))
			return fail(p, &c, "a message is damaged", reterr);
		if (p->no_memory)
			return fathom_fail_memory(reterr);
		FATHOM_TRY(fathom_import_check(p->import, reterr));
		if (n_fields++ % PACE == 0 &&
		    !fathom_memory_fits(&p->import->session->memory, size_of_tables(p)))
			return fathom_import_fail_budget(p->import, reterr);
	}
	if (!cur_ok(&c))
		return fail(p, &c, "a field is damaged, or the file was cut", reterr);
	for (size_t i = 0; i < p->mappings.n; i++) {
		struct mapping *m = &p->mappings.items[i];

		m->file = string_at(p, m->file.size);
		m->build_id = string_at(p, m->build_id.size);
	}
	return FATHOM_OK;
}

/* Chooses the type of samples, and writes what the profile says of itself. */
static void write_about(struct pprof *p)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} times[] = { { "nanoseconds", 1 },
		      { "microseconds", 1000 },
		      { "milliseconds", 1000000 },
		      { "seconds", 1000000000 } };
	uint64_t v[3] = { 0 };
	struct fathom_str unit;
	struct fathom_str type;

	p->type = p->types.n - 1;
	for (size_t i = 0; i < p->types.n && p->default_type; i++)
		if (read_numbers(p->types.items[i], v, 3) &&
		    str_equal(string_at(p, v[1]), string_at(p, p->default_type))) {
			p->type = i;
			break;
		}
	(void)read_numbers(p->types.items[p->type], v, 3);
	type = string_at(p, v[1]);
	unit = string_at(p, v[2]);
	p->scale = 1;
	if (!unit.size || str_is(unit, "count"))
		unit = type.size ? type : fathom_import_str("samples");
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (str_is(unit, times[i].name)) {
			p->scale = times[i].ns;
			unit = fathom_import_str("ns");
		}
	fathom_import_about(p->import, FATHOM_ABOUT_COMMAND, string_at(p, p->comment));
	fathom_import_about(p->import, FATHOM_ABOUT_EVENT, type);
	fathom_import_about(p->import, FATHOM_ABOUT_UNIT, unit);
	fathom_import_about_number(p->import, FATHOM_ABOUT_ENDS, 1);
	fathom_import_about(p->import, FATHOM_ABOUT_METHOD, fathom_import_str("pprof"));
	if (p->time)
		fathom_import_about_number(p->import, FATHOM_ABOUT_STARTED, p->time);
}

/* Collects the lines of a location: function, line and column of each, the innermost first. */
static void collect_lines(struct pprof *p, struct fathom_cursor body)
{
	struct field f;

	p->lines.n = 0;
	while (take_field(&body, &f) && p->lines.n < 3 * (size_t)MOST_LINES) {
		uint64_t v[4];

		if (f.number != 4 || !f.is_bytes || !read_numbers(f.bytes, v, 4))
			continue;
		for (size_t i = 1; i < 4; i++)
			p->no_memory |= !fathom_array_push(&p->lines, v[i]);
	}
}

/* Returns the symbol of the lines, the innermost; FATHOM_TABLE_NONE: there are none. */
static uint32_t symbol_of(struct pprof *p)
{
	uint32_t symbol = FATHOM_TABLE_NONE;
	uint32_t outer = 0;

	for (size_t i = p->lines.n / 3; i--;) {
		const uint64_t *v = p->lines.items + 3 * i;
		const uint32_t at = with_id(&p->function_ids, v[0], p->functions.n);
		const struct function *f = at == UINT32_MAX ? NULL : &p->functions.items[at];
		struct fathom_profile_symbol s = { .outer = outer };

		s.name = string_at(p, f ? f->name : 0);
		s.linkage_name = string_at(p, f ? f->system_name : 0);
		s.file = string_at(p, f ? f->file : 0);
		s.line = v[1] <= INT32_MAX ? (uint32_t)v[1] : 0;
		s.column = v[2] <= INT32_MAX ? (uint32_t)v[2] : 0;
		if (!s.name.size)
			s.name = s.linkage_name.size ? s.linkage_name : fathom_import_str("??");
		if (str_equal(s.name, s.linkage_name))
			s.linkage_name.size = 0;
		symbol = fathom_import_symbol(p->import, &s);
		outer = symbol == FATHOM_TABLE_NONE ? 0 : symbol + 1;
	}
	return symbol;
}

/* Reads the digits of a build-id; returns its size, 0 if they are none. */
static uint32_t read_build_id(struct fathom_str s, uint8_t *to, size_t cap)
{
	uint32_t n = 0;

	for (; 2 * n + 1 < s.size && n < cap; n++) {
		const char digits[3] = { s.data[2 * n], s.data[2 * n + 1], 0 };
		char *end;

		to[n] = (uint8_t)strtoul(digits, &end, 16);
		if (*end || digits[0] == '-' || digits[0] == '+' || digits[0] == ' ')
			return 0;
	}
	return s.size % 2 || 2 * n < s.size ? 0 : n;
}

/* Copies @s to @to, with a NUL. */
static const char *copy(struct fathom_str s, char *to, size_t cap)
{
	const size_t n = s.size < cap ? s.size : cap - 1;

	memcpy(to, s.data, n);
	to[n] = '\0';
	return to;
}

/* Returns the number of the module of mapping @id; UINT32_MAX: it has none. */
static uint32_t module_of(struct pprof *p, uint64_t id)
{
	const uint32_t i = with_id(&p->mapping_ids, id, p->mappings.n);
	struct fathom_profile_module module = { .kind = FATHOM_PROFILE_MODULE_MEMORY };
	const struct mapping *m;
	uint8_t build_id[256];
	char path[4096];

	if (i == UINT32_MAX || !p->mappings.items[i].file.size)
		return UINT32_MAX;
	m = &p->mappings.items[i];
	module.path = copy(m->file, path, sizeof path);
	module.build_id = build_id;
	module.build_id_size = read_build_id(m->build_id, build_id, sizeof build_id);
	if (path[0] != '[' && !m->start)
		module.kind = FATHOM_PROFILE_MODULE_FILE;
	else if (strncmp(path, "[kernel", 7) == 0)
		module.kind = FATHOM_PROFILE_MODULE_KERNEL;
	else if (strncmp(path, FATHOM_PROFILE_JIT, sizeof FATHOM_PROFILE_JIT - 1) == 0)
		module.kind = FATHOM_PROFILE_MODULE_JIT;
	return fathom_import_module(p->import, &module);
}

/* Returns the number in the profile of the location with @id; the caller's if @is_caller. */
static uint32_t location_of(struct pprof *p, uint64_t id, bool is_caller)
{
	const uint32_t i = with_id(&p->location_ids, id, p->locations.n);
	struct fathom_profile_location l = { .module = UINT32_MAX };
	uint64_t v[4] = { 0 };
	uint32_t symbol = FATHOM_TABLE_NONE;
	uint32_t *known = NULL;

	if (i != UINT32_MAX) {
		known = is_caller ? &p->locations.items[i].outer : &p->locations.items[i].inner;
		if (*known != FATHOM_TABLE_NONE)
			return *known;
		(void)read_numbers(p->locations.items[i].body, v, 4);
		collect_lines(p, p->locations.items[i].body);
		symbol = symbol_of(p);
		l.module = module_of(p, v[2]);
		l.pc.address = v[3];
		if (symbol == FATHOM_TABLE_NONE && is_caller)
			l.pc.kind = FATHOM_PC_RETURN;
	}
	if (!known)
		return fathom_import_location(p->import, &l, symbol);
	return *known = fathom_import_location(p->import, &l, symbol);
}

/* Returns the thread of a sample with these labels, which is written when it is first seen. */
static uint32_t thread_of(struct pprof *p, struct fathom_str name, uint64_t pid, uint64_t tid)
{
	struct fathom_profile_thread t = { 0 };
	const size_t n = p->threads.n;
	uint32_t known;
	char text[512];
	int size;

	if (!name.size && p->mappings.n) {
		char path[4096];
		const char *last =
			fathom_path_last_part(copy(p->mappings.items[0].file, path, sizeof path));

		size = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " ", pid, tid);
		(void)snprintf(text + size, sizeof text - (size_t)size, "%.200s", last);
	} else {
		size = snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " ", pid, tid);
		(void)snprintf(text + size, sizeof text - (size_t)size, "%.*s",
			       name.size && name.size < 200 ? (int)name.size : 200,
			       name.size ? name.data : "[unknown]");
	}
	known = fathom_name_table_add(&p->threads, text);
	if (known == FATHOM_KEY_NEW) {
		p->no_memory = true;
		return 0;
	}
	if (p->threads.n == n)
		return known;
	t.pid = pid && pid <= INT32_MAX ? (int32_t)pid : 1;
	t.tid = tid && tid <= INT32_MAX ? (int32_t)tid : t.pid;
	t.name = text + size;
	return fathom_profile_write_thread(&p->import->writer, &t, UINT32_MAX);
}

/*
 * Takes the numbers of a repeated field, packed or not: value @wanted goes to *@ret, or all to the
 * stack. Returns false if they are damaged.
 */
static bool take_values(struct pprof *p, struct field *f, size_t *n, size_t wanted, uint64_t *ret)
{
	uint64_t value = f->value;

	do {
		if (f->is_bytes) {
			if (!cur_left(&f->bytes))
				return true;
			value = cur_uleb(&f->bytes);
			if (!cur_ok(&f->bytes))
				return false;
		}
		if (!ret)
			p->no_memory |= !fathom_array_push(&p->stack, value);
		else if (*n == wanted)
			*ret = value;
		++*n;
	} while (f->is_bytes);
	return true;
}

/* Reads one sample of @body, and writes it. */
static fathom_err write_sample(struct pprof *p, struct fathom_cursor body,
			       struct fathom_errinfo *reterr)
{
	struct fathom_profile_sample s = { .stop = FATHOM_STOP_ENTRY };
	struct fathom_str name = { "", 0 };
	struct fathom_cursor c = body;
	uint64_t weight = 0;
	uint64_t pid = 0;
	uint64_t tid = 0;
	size_t n_values = 0;
	size_t n = 0;
	bool is_whole = true;
	struct field f;

	p->stack.n = 0;
	while (take_field(&c, &f)) {
		uint64_t v[4];
		struct fathom_str key;

		if (f.number == 1) {
			is_whole &= take_values(p, &f, &n, 0, NULL);
		} else if (f.number == 2) {
			is_whole &= take_values(p, &f, &n_values, p->type, &weight);
		} else if (f.number == 3 && f.is_bytes && read_numbers(f.bytes, v, 4)) {
			key = string_at(p, v[1]);
			if (str_is(key, "thread"))
				name = string_at(p, v[2]);
			else if (str_is(key, "pid"))
				pid = v[3];
			else if (str_is(key, "tid"))
				tid = v[3];
		}
	}
	if (!cur_ok(&c) || !is_whole)
		return fail(p, &c, "a sample is damaged", reterr);
	if (weight > INT64_MAX)
		return fail(p, &body,
			    "a sample has a weight below 0: it is a difference of profiles",
			    reterr);
	if (weight > UINT64_MAX / p->scale)
		return fail(p, &body, "a sample has an impossible weight", reterr);
	if (!weight)
		return FATHOM_OK;
	n = p->stack.n;
	if (n > FATHOM_IMPORT_FRAMES) {
		n = FATHOM_IMPORT_FRAMES;
		s.stop = FATHOM_STOP_LIMIT;
	}
	while (n-- && !p->import->err)
		s.node = fathom_import_node(p->import, s.node,
					    location_of(p, p->stack.items[n], n != 0));
	s.weight = weight * p->scale;
	s.thread = thread_of(p, name, pid, tid);
	if (p->no_memory)
		return fathom_fail_memory(reterr);
	FATHOM_TRY(fathom_import_check(p->import, reterr));
	fathom_profile_write_sample(&p->import->writer, &s);
	return FATHOM_OK;
}

static fathom_err write_samples(struct pprof *p, struct fathom_errinfo *reterr)
{
	struct fathom_cursor c = cur_init(p->import->file->bytes, false);
	struct field f;

	while (take_field(&c, &f))
		if (f.number == 2 && f.is_bytes)
			FATHOM_TRY(write_sample(p, f.bytes, reterr));
	return FATHOM_OK;
}

static void deinit(struct pprof *p)
{
	fathom_array_free(&p->strings);
	fathom_array_free(&p->mappings);
	fathom_array_free(&p->functions);
	fathom_array_free(&p->locations);
	fathom_array_free(&p->types);
	fathom_key_map_deinit(&p->mapping_ids);
	fathom_key_map_deinit(&p->function_ids);
	fathom_key_map_deinit(&p->location_ids);
	fathom_name_table_deinit(&p->threads);
	fathom_array_free(&p->stack);
	fathom_array_free(&p->lines);
}

fathom_err fathom_import_pprof(struct fathom_import *i, struct fathom_errinfo *reterr)
{
	struct pprof p = { .import = i };
	fathom_err err = read_definitions(&p, reterr);

	if (!err) {
		write_about(&p);
		err = write_samples(&p, reterr);
	}
	if (!err)
		fathom_import_end(i, p.duration <= INT64_MAX ? p.duration : 0);
	deinit(&p);
	return err;
}
