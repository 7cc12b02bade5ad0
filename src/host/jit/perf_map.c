/* SPDX-License-Identifier: MIT */
#include "host/jit/perf_map.h"

#include <errno.h>
#include <stdlib.h>

#include "host/file/file.h"
#include "safe/base/hex.h"

/* Piece size for comparing the kept text with the file. */
#define COMPARE_SIZE 16384
/* Buffered writers write multiples of this many bytes. */
#define WRITE_SIZE 4096

void fathom_perf_map_init(struct fathom_perf_map *map, struct fathom_memory *m)
{
	map->memory = m;
	map->table.memory = m;
}

void fathom_perf_map_clear(struct fathom_perf_map *map)
{
	fathom_code_table_clear(&map->table);
	fathom_memory_uncount(map->memory, map->cap);
	free(map->text);
	map->text = NULL;
	map->size = 0;
	map->parsed = 0;
	map->cap = 0;
	map->tail = (struct fathom_perf_symbol){ 0 };
}

/* A line being parsed. */
struct line {
	const char *p;
	const char *end; /* end of the line, without the line break */
};

static bool is_blank(const struct line *l)
{
	return l->p < l->end && (*l->p == ' ' || *l->p == '\t');
}

static bool take_hex(struct line *l, uint64_t *ret)
{
	uint64_t value = 0;
	const char *start;

	if (l->end - l->p > 2 && l->p[0] == '0' && (l->p[1] == 'x' || l->p[1] == 'X'))
		l->p += 2;
	for (start = l->p; l->p < l->end && fathom_hex_digit(*l->p) < 16; l->p++) {
		if (value >> 60)
			return false;
		value = value << 4 | fathom_hex_digit(*l->p);
	}
	*ret = value;
	return l->p != start;
}

/* Reads a line; its name may be empty. */
static bool parse_line(struct line l, struct fathom_perf_symbol *ret)
{
	uint64_t end;

	while (is_blank(&l))
		l.p++;
	if (!take_hex(&l, &ret->start) || !is_blank(&l))
		return false;
	while (is_blank(&l))
		l.p++;
	if (!take_hex(&l, &ret->size) || (l.p < l.end && !is_blank(&l)) ||
	    __builtin_add_overflow(ret->start, ret->size, &end))
		return false;
	/* Skip one blank only: further ones belong to the name. */
	l.p += l.p < l.end;
	if (l.p < l.end && l.end[-1] == '\r')
		l.end--;
	/* Names have no NUL and are shorter: this is no name. */
	if ((uint64_t)(l.end - l.p) > UINT32_MAX || memchr(l.p, '\0', (size_t)(l.end - l.p)))
		return false;
	ret->name = (struct fathom_str){ l.p, (uint32_t)(l.end - l.p) };
	return true;
}

/* Adds the claims of the whole lines not yet parsed. */
static fathom_err parse_lines(struct fathom_perf_map *map)
{
	struct fathom_claim_array claims = { 0 };
	fathom_err err = FATHOM_OK;
	uint64_t at = map->parsed;

	while (at < map->size) {
		const char *start = map->text + at;
		const char *end = memchr(start, '\n', (size_t)(map->size - at));
		struct fathom_perf_symbol s;

		if (!end)
			break;
		if (parse_line((struct line){ start, end }, &s)) {
			if (!fathom_array_room(&claims, 1)) {
				err = FATHOM_E_MEMORY;
				break;
			}
			(claims.items)[claims.n++] =
				(struct fathom_claim){ s.start, s.start + s.size, at + 1 };
		}
		at += (uint64_t)(end - start) + 1;
	}
	if (!err && claims.n)
		err = fathom_code_table_add(&map->table, claims.items, claims.n);
	if (!err)
		map->parsed = at;
	fathom_array_free(&claims);
	return err;
}

/* Makes room for @more bytes of text. */
static fathom_err reserve(struct fathom_perf_map *map, uint64_t more)
{
	uint64_t cap = map->cap + map->cap / 2;
	char *text;

	if (more <= map->cap - map->size)
		return FATHOM_OK;
	if (more > UINT64_MAX / 4 - map->size)
		return FATHOM_E_LIMIT;
	if (cap < map->size + more)
		cap = map->size + more;
	if (cap > SIZE_MAX || !fathom_memory_fits(map->memory, cap - map->cap))
		return FATHOM_E_LIMIT;
	text = realloc(map->text, (size_t)cap);
	if (!text)
		return FATHOM_E_MEMORY;
	fathom_memory_count(map->memory, cap - map->cap);
	map->text = text;
	map->cap = cap;
	return FATHOM_OK;
}

void fathom_perf_map_end(struct fathom_perf_map *map)
{
	const struct line l = { map->text + map->parsed, map->text + map->size };

	if (map->parsed == map->size || map->size % WRITE_SIZE == 0 || !parse_line(l, &map->tail))
		map->tail.size = 0;
}

/*
 * Returns whether the file still begins with the text kept. Compares all of it: agents rewrite
 * maps, and most lines of the new one are the same.
 */
static bool is_continued(const struct fathom_perf_map *map, int fd)
{
	char there[COMPARE_SIZE];

	for (uint64_t off = 0; off < map->size; off += COMPARE_SIZE) {
		const uint64_t left = map->size - off;
		const size_t n = (size_t)(left < COMPARE_SIZE ? left : COMPARE_SIZE);

		if (fathom_file_read_at(fd, off, there, n) != n ||
		    memcmp(there, map->text + off, n) != 0)
			return false;
	}
	return true;
}

/* Reads the unread part of the file, up to @size. */
static fathom_err read_rest(struct fathom_perf_map *map, int fd, uint64_t size)
{
	if (map->size >= size)
		return FATHOM_OK;
	FATHOM_TRY(reserve(map, size - map->size));
	map->size += fathom_file_read_at(fd, map->size, map->text + map->size,
					 (size_t)(size - map->size));
	/* A file truncated meanwhile just ends: the next batch sees that. */
	return map->size < size && errno ? FATHOM_E_OS : FATHOM_OK;
}

/* How often to read a file that is rewritten meanwhile. */
#define MAX_READS 4

fathom_err fathom_perf_map_read(struct fathom_perf_map *map, int fd, uint64_t size)
{
	map->tail.size = 0;
	if (size < map->size)
		fathom_perf_map_clear(map);
	/* Compare after reading the rest, so that texts of two files are never mixed. */
	for (int i = 0; i < MAX_READS; i++) {
		FATHOM_TRY(read_rest(map, fd, size));
		if (is_continued(map, fd))
			return parse_lines(map);
		fathom_perf_map_clear(map);
	}
	return FATHOM_OK;
}

bool fathom_perf_map_at(const struct fathom_perf_map *map, uint64_t avma,
			struct fathom_perf_symbol *ret)
{
	const struct fathom_claim *c = fathom_code_table_at(&map->table, avma);
	const bool is_in_tail = avma >= map->tail.start && avma - map->tail.start < map->tail.size;
	const char *start = c ? map->text + c->order - 1 : NULL;
	const char *end = c ? memchr(start, '\n', (size_t)(map->parsed - (c->order - 1))) : NULL;

	if (is_in_tail) {
		*ret = map->tail;
		return ret->name.size;
	}
	return end && parse_line((struct line){ start, end }, ret) && ret->name.size;
}
