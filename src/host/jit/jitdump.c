/* SPDX-License-Identifier: MIT */
#include "host/jit/jitdump.h"

#include <errno.h>
#include <stdlib.h>

#include "host/file/file.h"
#include "safe/base/cursor.h"
#include "safe/base/limits.h"
#include "safe/base/sort.h"

#define MAGIC       0x4a695444 /* "JiTD" in the writer's byte order */
#define VERSION     1
#define HEADER_SIZE 40
#define PREFIX_SIZE 16

enum record { RECORD_LOAD = 0, RECORD_MOVE = 1, RECORD_DEBUG_INFO = 2, RECORD_UNWINDING = 4 };

/* Bytes of a record's fixed part. */
#define LOAD_SIZE      (PREFIX_SIZE + 40)
#define MOVE_SIZE      (PREFIX_SIZE + 48)
#define DEBUG_SIZE     (PREFIX_SIZE + 16)
#define LINE_SIZE      16
#define UNWINDING_SIZE (PREFIX_SIZE + 24)

/* V8 states the addresses of lines this much too high. */
#define ELF_HEADER 0x40

#define NOTHING UINT32_MAX

struct fathom_jitdump_function {
	uint64_t size;
	uint64_t index; /* code_index */
	size_t name;
	size_t first_line; /* sorted by offset, those at one offset as they were stated */
	size_t n_lines;
	uint32_t name_size;
};

/* From this record on, @function is at @start; NOTHING: no function is. */
struct fathom_jitdump_event {
	uint64_t start;
	uint64_t size;
	uint32_t function;
	uint32_t unwinding; /* index; NOTHING: how to unwind it is unknown */
};

struct fathom_jitdump_line {
	uint64_t off; /* offset from the start of the code, as stated */
	size_t file;
	uint32_t file_size;
	uint32_t line;
};

void fathom_jitdump_init(struct fathom_jitdump *d, struct fathom_memory *m)
{
	d->memory = m;
	d->table.memory = m;
	d->lowest_line = UINT64_MAX;
	d->lines_of.n = 0;
}

void fathom_jitdump_clear(struct fathom_jitdump *d)
{
	struct fathom_memory *m = d->memory;

	fathom_code_table_clear(&d->table);
	fathom_array_free(&d->events);
	fathom_array_free(&d->functions);
	fathom_array_free(&d->lines);
	fathom_array_free(&d->names);
	fathom_array_free(&d->unwinding);
	fathom_array_free(&d->claims);
	fathom_array_free(&d->scratch);
	fathom_memory_uncount(m, d->counted);
	memset(d, 0, sizeof *d);
	fathom_jitdump_init(d, m);
}

/* Makes room for more items in an array, within the budget. */
#define RESERVE(d, a, n_more) \
	reserve((d), &(a)->items, &(a)->cap, (a)->n, (n_more), sizeof *(a)->items)
static fathom_err reserve(struct fathom_jitdump *d, void *items, size_t *cap, size_t n, size_t more,
			  size_t size)
{
	const size_t before = *cap;

	if (before && more <= before - n)
		return FATHOM_OK;
	if (more > SIZE_MAX / 4 / size || !fathom_memory_fits(d->memory, (before + more) * size))
		return FATHOM_E_LIMIT;
	if (!fathom_array_enlarge(items, cap, n, more, size))
		return FATHOM_E_MEMORY;
	fathom_memory_count(d->memory, (*cap - before) * size);
	d->counted += (*cap - before) * size;
	return FATHOM_OK;
}

static fathom_err add_name(struct fathom_jitdump *d, struct fathom_str name, size_t *ret)
{
	FATHOM_TRY(RESERVE(d, &d->names, name.size));
	if (name.size)
		memcpy(d->names.items + d->names.n, name.data, name.size);
	*ret = d->names.n;
	d->names.n += name.size;
	return FATHOM_OK;
}

static struct fathom_str name_at(const struct fathom_jitdump *d, size_t at, uint32_t size)
{
	return (struct fathom_str){ d->names.items + at, size };
}

/* Moves the collected claims into the table. */
static fathom_err flush(struct fathom_jitdump *d)
{
	const size_t n = d->claims.n;

	d->claims.n = 0;
	return n ? fathom_code_table_add(&d->table, d->claims.items, n) : FATHOM_OK;
}

static fathom_err add_event(struct fathom_jitdump *d, const struct fathom_jitdump_event *e)
{
	FATHOM_TRY(RESERVE(d, &d->events, 1));
	FATHOM_TRY(RESERVE(d, &d->claims, 1));
	d->events.items[d->events.n++] = *e;
	d->claims.items[d->claims.n++] =
		(struct fathom_claim){ e->start, e->start + e->size, d->events.n };
	return FATHOM_OK;
}

/* Returns whether [start, start + size) is a valid range. */
static bool is_range(uint64_t start, uint64_t size)
{
	uint64_t end;

	return !__builtin_add_overflow(start, size, &end);
}

/* The available part of a record. */
struct record_view {
	uint32_t id;
	uint32_t size;
	struct fathom_cursor c; /* after the prefix */
};

/* Returns whether the last lines can belong to code of @size bytes at @start. */
static bool lines_fit(const struct fathom_jitdump *d, uint64_t start, uint64_t size)
{
	const struct fathom_jitdump_line *lines = d->lines.items + d->lines_of.first;

	if (!d->lines_of.n || d->lines_of.code != start)
		return false;
	for (size_t i = 0; i < d->lines_of.n; i++)
		if (lines[i].off > size && lines[i].off - size > ELF_HEADER)
			return false;
	return true;
}

/* Returns the index of what the last record tells of the next code, or NOTHING. */
static uint32_t take_unwinding(struct fathom_jitdump *d)
{
	const bool has = d->has_unwinding;

	d->has_unwinding = false;
	return has ? (uint32_t)d->unwinding.n - 1 : NOTHING;
}

static fathom_err read_load(struct fathom_jitdump *d, struct record_view *r)
{
	struct fathom_jitdump_event e = { .unwinding = take_unwinding(d) };
	struct fathom_jitdump_function f = { 0 };
	struct fathom_str name;

	cur_skip(&r->c, 16); /* pid, tid, vma */
	e.start = cur_u64(&r->c);
	e.size = cur_u64(&r->c);
	f.index = cur_u64(&r->c);
	name = cur_str(&r->c);
	/* Code whose name is too long or unterminated has no name. */
	if (!cur_ok(&r->c))
		name.size = 0;
	if (!is_range(e.start, e.size))
		return FATHOM_OK;
	if (lines_fit(d, e.start, e.size)) {
		f.first_line = d->lines_of.first;
		f.n_lines = d->lines_of.n;
	}
	d->lines_of.n = 0;
	f.size = e.size;
	f.name_size = name.size;
	e.function = NOTHING;
	if (name.size) {
		FATHOM_TRY(add_name(d, name, &f.name));
		FATHOM_TRY(RESERVE(d, &d->functions, 1));
		if (d->functions.n == NOTHING)
			return FATHOM_E_LIMIT;
		e.function = (uint32_t)d->functions.n;
		d->functions.items[d->functions.n++] = f;
	}
	return add_event(d, &e);
}

/* Returns the event that holds at @avma, by the table. */
static const struct fathom_jitdump_event *event_at(const struct fathom_jitdump *d, uint64_t avma)
{
	const struct fathom_claim *c = fathom_code_table_at(&d->table, avma);

	return c ? d->events.items + c->order - 1 : NULL;
}

static fathom_err read_move(struct fathom_jitdump *d, struct record_view *r)
{
	struct fathom_jitdump_event gone = { .function = NOTHING, .unwinding = NOTHING };
	struct fathom_jitdump_event e = gone;
	const struct fathom_jitdump_function *functions;
	const struct fathom_jitdump_event *was;
	uint64_t index;

	cur_skip(&r->c, 16);
	gone.start = cur_u64(&r->c);
	e.start = cur_u64(&r->c);
	e.size = cur_u64(&r->c);
	gone.size = e.size;
	index = cur_u64(&r->c);
	if (!cur_ok(&r->c) || !is_range(e.start, e.size) || !is_range(gone.start, gone.size))
		return FATHOM_OK;
	FATHOM_TRY(flush(d));
	was = event_at(d, gone.start);
	functions = d->functions.items;
	/* Code unknown at its old address has no name at its new one. */
	if (was && was->function != NOTHING && was->start == gone.start &&
	    functions[was->function].index == index) {
		e.function = was->function;
		e.unwinding = was->unwinding;
	}
	FATHOM_TRY(add_event(d, &gone));
	return add_event(d, &e);
}

/* Returns whether @name may be a path: V8 of 2023 writes other bytes there. */
static bool is_path(struct fathom_str name)
{
	for (uint32_t i = 0; i < name.size; i++)
		if ((uint8_t)name.data[i] < ' ' || name.data[i] == 0x7f)
			return false;
	return name.size != 0;
}

/*
 * Reads a line of the code at @code; *@file stays as it was if the line repeats it. Returns false
 * if the line is invalid.
 */
static bool read_line(struct fathom_cursor *c, uint64_t code, struct fathom_jitdump_line *ret,
		      struct fathom_str *file)
{
	const uint64_t avma = cur_u64(c);
	struct fathom_str name;

	ret->line = cur_u32(c);
	cur_skip(c, 4); /* discriminator */
	name = cur_str(c);
	ret->off = avma - code;
	if (name.size != 1 || (uint8_t)name.data[0] != 0xff)
		*file = name;
	return cur_ok(c) && avma >= code && file->data && is_path(*file);
}

/* Sorts @n lines by their offsets, stably. */
static fathom_err sort_lines(struct fathom_jitdump_line *lines, size_t n)
{
	struct fathom_keyed *keyed;
	struct fathom_jitdump_line *sorted;
	size_t i = 1;

	while (i < n && lines[i - 1].off <= lines[i].off)
		i++;
	if (i >= n)
		return FATHOM_OK;
	keyed = malloc(n * (2 * sizeof *keyed + sizeof *sorted));
	if (!keyed)
		return FATHOM_E_MEMORY;
	sorted = (struct fathom_jitdump_line *)(keyed + 2 * n);
	for (i = 0; i < n; i++)
		keyed[i] = (struct fathom_keyed){ lines[i].off, i };
	fathom_sort_keyed(keyed, keyed + n, n);
	for (i = 0; i < n; i++)
		sorted[i] = lines[keyed[i].value];
	memcpy(lines, sorted, n * sizeof *sorted);
	free(keyed);
	return FATHOM_OK;
}

/* Reads the lines of the next code; if one is invalid, all are something else, and none is used. */
static fathom_err read_debug_info(struct fathom_jitdump *d, struct record_view *r)
{
	const uint64_t code = cur_u64(&r->c);
	const uint64_t n = cur_u64(&r->c);
	struct fathom_str file = { NULL, 0 };
	struct fathom_str last = { NULL, 0 };
	struct fathom_jitdump_line line = { 0 };
	uint64_t lowest = d->lowest_line;

	d->lines_of.n = 0;
	d->lines_of.code = code;
	d->lines_of.first = d->lines.n;
	for (uint64_t i = 0; i < n && cur_left(&r->c); i++) {
		if (!read_line(&r->c, code, &line, &file)) {
			d->lines.n = d->lines_of.first;
			return FATHOM_OK;
		}
		FATHOM_TRY(RESERVE(d, &d->lines, 1));
		if (!last.data || !str_equal(last, file)) {
			FATHOM_TRY(add_name(d, file, &line.file));
			line.file_size = file.size;
			last = file;
		}
		lowest = line.off < lowest ? line.off : lowest;
		d->lines.items[d->lines.n++] = line;
	}
	d->lowest_line = lowest;
	d->lines_of.n = d->lines.n - d->lines_of.first;
	return sort_lines(d->lines.items + d->lines_of.first, d->lines_of.n);
}

/* Keeps where the record is; the next code is what it is about. */
static fathom_err keep_unwinding(struct fathom_jitdump *d)
{
	FATHOM_TRY(RESERVE(d, &d->unwinding, 1));
	if (d->unwinding.n == NOTHING)
		return FATHOM_E_LIMIT;
	d->unwinding.items[d->unwinding.n++] = d->next;
	d->has_unwinding = true;
	return FATHOM_OK;
}

static fathom_err read_record(struct fathom_jitdump *d, struct record_view *r)
{
	switch (r->id) {
	case RECORD_LOAD:
		return read_load(d, r);
	case RECORD_MOVE:
		return read_move(d, r);
	case RECORD_DEBUG_INFO:
		return read_debug_info(d, r);
	case RECORD_UNWINDING:
		return keep_unwinding(d);
	default:
		return FATHOM_OK;
	}
}

/* Returns how many bytes of a record of @size bytes are read. */
static uint64_t wanted_of(uint32_t id, uint64_t size)
{
	const uint64_t most = id == RECORD_LOAD         ? LOAD_SIZE + FATHOM_MAX_JIT_NAME
			      : id == RECORD_MOVE       ? MOVE_SIZE
			      : id == RECORD_DEBUG_INFO ? FATHOM_MAX_JITDUMP_LINES
							: PREFIX_SIZE;

	return size < most ? size : most;
}

static fathom_err read_header(struct fathom_jitdump *d, struct fathom_cursor *c)
{
	uint32_t magic;
	uint32_t version;
	uint32_t size;

	memcpy(d->header, c->p, HEADER_SIZE);
	magic = load_u32(d->header, false);
	d->swap = magic == __builtin_bswap32(MAGIC);
	version = load_u32(d->header + 4, d->swap);
	size = load_u32(d->header + 8, d->swap);
	if ((magic != MAGIC && !d->swap) || version != VERSION || size < HEADER_SIZE)
		return FATHOM_E_FORMAT;
	c->swap = d->swap;
	d->has_header = true;
	d->next = size;
	return FATHOM_OK;
}

fathom_err fathom_jitdump_parse(struct fathom_jitdump *d, struct fathom_bytes bytes, uint64_t left,
				uint64_t *ret_wanted)
{
	struct fathom_cursor c = cur_init(bytes, d->swap);

	*ret_wanted = 0;
	if (!d->has_header) {
		if (left < HEADER_SIZE)
			return FATHOM_OK;
		*ret_wanted = HEADER_SIZE;
		if (cur_left(&c) < HEADER_SIZE)
			return FATHOM_OK;
		FATHOM_TRY(read_header(d, &c));
		*ret_wanted = d->next <= left ? PREFIX_SIZE : 0;
		if (d->next > cur_left(&c))
			return FATHOM_OK;
		cur_skip(&c, d->next);
		left -= d->next;
	}
	while (left >= PREFIX_SIZE) {
		struct record_view r;
		struct fathom_cursor record = c;

		*ret_wanted = PREFIX_SIZE;
		if (cur_left(&c) < PREFIX_SIZE)
			return flush(d);
		r.id = cur_u32(&record);
		r.size = cur_u32(&record);
		cur_skip(&record, 8); /* time */
		if (r.size < PREFIX_SIZE) {
			FATHOM_TRY(flush(d));
			return FATHOM_E_CORRUPT;
		}
		if (r.size > left)
			break;
		*ret_wanted = wanted_of(r.id, r.size);
		if (cur_left(&c) < *ret_wanted)
			return flush(d);
		r.c = cur_sub(&record, *ret_wanted - PREFIX_SIZE);
		FATHOM_TRY(read_record(d, &r));
		d->next += r.size;
		left -= r.size;
		if (cur_left(&c) < r.size) {
			*ret_wanted = left >= PREFIX_SIZE ? PREFIX_SIZE : 0;
			return flush(d);
		}
		cur_skip(&c, r.size);
	}
	*ret_wanted = 0;
	return flush(d);
}

/* The least size of the pieces in which the file is read. */
#define READ_SIZE (UINT64_C(1) << 20)

/* Returns whether the file is still the one read before, judging by its header. */
static bool is_continued(const struct fathom_jitdump *d, int fd, uint64_t size)
{
	uint8_t header[HEADER_SIZE];

	return !d->has_header ||
	       (size >= d->next &&
		fathom_file_read_at(fd, 0, header, sizeof header) == sizeof header &&
		memcmp(header, d->header, sizeof header) == 0);
}

/* Reads the unread records of @fd. */
static fathom_err read_records(struct fathom_jitdump *d, int fd, uint64_t size)
{
	uint64_t wanted = PREFIX_SIZE;
	fathom_err err = FATHOM_OK;

	while (!err && wanted && d->next < size) {
		const uint64_t left = size - d->next;
		uint64_t piece = wanted > READ_SIZE ? wanted : READ_SIZE;
		size_t got;

		piece = piece < left ? piece : left;
		d->scratch.n = 0;
		FATHOM_TRY(RESERVE(d, &d->scratch, (size_t)piece));
		got = fathom_file_read_at(fd, d->next, d->scratch.items, (size_t)piece);
		if (got < piece && errno)
			return FATHOM_E_OS;
		/* The file was truncated meanwhile: the next batch sees that. */
		if (got < wanted)
			break;
		err = fathom_jitdump_parse(
			d, (struct fathom_bytes){ (const uint8_t *)d->scratch.items, got }, left,
			&wanted);
	}
	return err;
}

/* How often to read a file that is rewritten meanwhile. */
#define MAX_READS 4

fathom_err fathom_jitdump_read(struct fathom_jitdump *d, int fd, uint64_t size,
			       uint64_t *ret_damage)
{
	fathom_err err;

	if (!is_continued(d, fd, size))
		fathom_jitdump_clear(d);
	/* If the header has changed, the records may be of two files. */
	for (int i = 0; i < MAX_READS; i++) {
		err = read_records(d, fd, size);
		*ret_damage = d->next;
		if (is_continued(d, fd, size))
			return err;
		fathom_jitdump_clear(d);
	}
	return FATHOM_OK;
}

/* Finds the line of @f at @off in its code: of several at one offset the last. */
static void find_line(const struct fathom_jitdump *d, const struct fathom_jitdump_function *f,
		      uint64_t off, struct fathom_jitdump_hit *ret)
{
	const struct fathom_jitdump_line *lines = d->lines.items + f->first_line;
	const uint64_t at = off + (d->lowest_line == ELF_HEADER ? ELF_HEADER : 0);
	const size_t n = FATHOM_BISECT(f->n_lines, i, lines[i].off <= at);

	if (!n)
		return;
	ret->file = name_at(d, lines[n - 1].file, lines[n - 1].file_size);
	ret->line = lines[n - 1].line;
}

static bool make_hit(const struct fathom_jitdump *d, const struct fathom_jitdump_event *e,
		     uint64_t avma, struct fathom_jitdump_hit *ret)
{
	const struct fathom_jitdump_function *f;

	if (!e || e->function == NOTHING)
		return false;
	f = d->functions.items + e->function;
	*ret = (struct fathom_jitdump_hit){ .start = e->start,
					    .size = f->size,
					    .name = name_at(d, f->name, f->name_size) };
	find_line(d, f, avma - e->start, ret);
	return true;
}

bool fathom_jitdump_at(const struct fathom_jitdump *d, uint64_t avma,
		       struct fathom_jitdump_hit *ret)
{
	return make_hit(d, event_at(d, avma), avma, ret);
}

bool fathom_jitdump_unwinding_at(const struct fathom_jitdump *d, uint64_t avma,
				 struct fathom_jitdump_unwinding *ret)
{
	const struct fathom_jitdump_event *e = event_at(d, avma);

	if (!e || e->unwinding == NOTHING)
		return false;
	*ret = (struct fathom_jitdump_unwinding){ e->start, e->size,
						  d->unwinding.items[e->unwinding] };
	return true;
}

uint32_t fathom_jitdump_machine(const struct fathom_jitdump *d)
{
	return load_u32(d->header + 12, d->swap);
}

/* Reads the sizes in the record at @off; *@ret_size is that of .eh_frame. */
static fathom_err read_sizes(const struct fathom_jitdump *d, int fd, uint64_t off, size_t *ret_size)
{
	uint8_t head[UNWINDING_SIZE];
	uint64_t record;
	uint64_t all;
	uint64_t header;

	if (fathom_file_read_at(fd, off, head, sizeof head) != sizeof head)
		return FATHOM_E_CORRUPT;
	record = load_u32(head + 4, d->swap);
	all = load_u64(head + PREFIX_SIZE, d->swap);
	header = load_u64(head + PREFIX_SIZE + 8, d->swap);
	if (load_u32(head, d->swap) != RECORD_UNWINDING || record < UNWINDING_SIZE ||
	    all > record - UNWINDING_SIZE || header > all)
		return FATHOM_E_CORRUPT;
	if (all - header > FATHOM_MAX_JIT_FRAMES)
		return FATHOM_E_LIMIT;
	*ret_size = (size_t)(all - header);
	return FATHOM_OK;
}

fathom_err fathom_jitdump_read_unwinding(const struct fathom_jitdump *d, int fd, uint64_t off,
					 uint8_t **ret, size_t *ret_size)
{
	uint8_t *bytes;
	size_t size;

	FATHOM_TRY(read_sizes(d, fd, off, &size));
	bytes = malloc(size + 1);
	if (!bytes)
		return FATHOM_E_MEMORY;
	if (fathom_file_read_at(fd, off + UNWINDING_SIZE, bytes, size) != size ||
	    !is_continued(d, fd, d->next)) {
		free(bytes);
		return FATHOM_E_CHANGED;
	}
	*ret = bytes;
	*ret_size = size;
	return FATHOM_OK;
}
