/* SPDX-License-Identifier: MIT */
#include "host/file/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/file/file.h"
#include "host/file/kernel_text.h"
#include "safe/base/cursor.h"
#include "safe/base/hex.h"
#include "safe/base/sort.h"

#define DELETED " (deleted)"

/* A number in @base, 10 or 16. */
static uint64_t take_number(struct fathom_cursor *c, unsigned base)
{
	const uint8_t *start = c->p;
	uint64_t value = 0;

	while (cur_left(c) && fathom_hex_lower((char)*c->p) < base)
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, fathom_hex_lower((char)*c->p++), &value))
			cur_fail(c);
	if (c->p == start)
		cur_fail(c);
	return value;
}

/* "r-xp" */
static void take_rights(struct fathom_cursor *c, struct fathom_mapping *m)
{
	m->readable = cur_u8(c) == 'r';
	m->writable = cur_u8(c) == 'w';
	m->executable = cur_u8(c) == 'x';
	cur_skip(c, 1);
}

/* Takes the name, which follows the inode and blanks, and may have blanks in it. */
static void take_name(struct fathom_cursor *c, struct fathom_mapping *m)
{
	const size_t suffix = sizeof DELETED - 1;
	size_t size;

	while (cur_left(c) && *c->p == ' ')
		c->p++;
	size = (size_t)cur_left(c);
	if (size > suffix && memcmp(c->end - suffix, DELETED, suffix) == 0) {
		m->deleted = true;
		size -= suffix;
	}
	if (size)
		m->name = (struct fathom_str){ (const char *)c->p, (uint32_t)size };
}

static bool parse_line(struct fathom_bytes line, struct fathom_mapping *m)
{
	struct fathom_cursor c = cur_init(line, false);
	uint64_t major;

	memset(m, 0, sizeof *m);
	m->start = take_number(&c, 16);
	cur_expect(&c, '-');
	m->end = take_number(&c, 16);
	cur_expect(&c, ' ');
	take_rights(&c, m);
	cur_expect(&c, ' ');
	m->off = take_number(&c, 16);
	cur_expect(&c, ' ');
	major = take_number(&c, 16);
	cur_expect(&c, ':');
	m->device = major << 32 | take_number(&c, 16);
	cur_expect(&c, ' ');
	m->inode = take_number(&c, 10);
	if (!cur_ok(&c) || m->start >= m->end)
		return false;
	take_name(&c, m);
	return true;
}

/*
 * Adds @m after the other mappings. It may begin before the end of the last one: mappings that the
 * kernel has joined since the last line was made. What is after that end counts.
 */
static void add_mapping(struct fathom_maps *maps, struct fathom_mapping *m)
{
	const uint64_t end = maps->n ? maps->items[maps->n - 1].end : 0;

	if (m->end <= end)
		return;
	if (m->start < end) {
		m->off += m->inode ? end - m->start : 0;
		m->start = end;
	}
	maps->items[maps->n++] = *m;
}

fathom_err fathom_maps_parse(char *text, size_t size, struct fathom_maps *ret)
{
	struct fathom_maps maps = { .text = text };
	const char *line = text;
	const char *end;

	maps.items = malloc(fathom_text_count_lines(text, size) * sizeof *maps.items);
	if (!maps.items) {
		free(text);
		return FATHOM_E_MEMORY;
	}
	for (; line < text + size; line = end + 1) {
		const size_t left = (size_t)(text + size - line);
		struct fathom_mapping m;

		end = memchr(line, '\n', left);
		end = end ? end : text + size;
		if (parse_line((struct fathom_bytes){ (const uint8_t *)line, (size_t)(end - line) },
			       &m))
			add_mapping(&maps, &m);
	}
	if (fathom_maps_link(&maps)) {
		fathom_maps_deinit(&maps);
		return FATHOM_E_MEMORY;
	}
	*ret = maps;
	return FATHOM_OK;
}

uint64_t fathom_mapping_hash_file(const struct fathom_mapping *m)
{
	uint64_t hash = (m->inode + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ m->device;

	for (uint32_t i = 0; i < m->name.size; i++)
		hash = (hash ^ (uint8_t)m->name.data[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

/* The last mapping so far of each file, by hash. */
struct files {
	uint32_t *last; /* number + 1; 0: free */
	size_t mask;
};

/* Returns where the last mapping of the file of @i is noted, or is to be. */
static uint32_t *find_last(const struct files *f, const struct fathom_maps *maps, size_t i)
{
	size_t at = (size_t)fathom_mapping_hash_file(&maps->items[i]) & f->mask;

	while (f->last[at] &&
	       !fathom_mapping_same_file(&maps->items[f->last[at] - 1], &maps->items[i]))
		at = (at + 1) & f->mask;
	return &f->last[at];
}

fathom_err fathom_maps_link(struct fathom_maps *maps)
{
	struct fathom_mapping *m = maps->items;
	struct files files = { .mask = 15 };
	uint32_t *last = NULL;

	if (maps->n >= UINT32_MAX / 4)
		return FATHOM_E_LIMIT;
	while (files.mask < 2 * maps->n)
		files.mask = 2 * files.mask + 1;
	files.last = calloc(files.mask + 1, sizeof *files.last);
	if (!files.last)
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; i < maps->n; i++) {
		m[i].first = i;
		m[i].next = (uint32_t)maps->n;
		/* Most are of the file that the one before is of. */
		if (!i || !fathom_mapping_same_file(&m[i - 1], &m[i]))
			last = find_last(&files, maps, i);
		if (*last) {
			m[i].first = m[*last - 1].first;
			m[*last - 1].next = i;
		}
		*last = i + 1;
	}
	free(files.last);
	return FATHOM_OK;
}

/* The most that is read: the kernel allows 65,530 mappings, or as many as root has set. */
#define MAX_SIZE ((size_t)1 << 30)

/* There are mappings, or there is no process behind the map. */
static fathom_err no_memory(const char *path, struct fathom_errinfo *reterr)
{
	(void)fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0,
			  "has no memory: a kernel thread, or it has ended");
	fathom_errinfo_set_file(reterr, path);
	return FATHOM_E_NOT_FOUND;
}

fathom_err fathom_maps_check(const char *path, struct fathom_errinfo *reterr)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;
	char byte;

	if (fd >= 0) {
		got = read(fd, &byte, 1);
		if (got < 0)
			(void)fathom_fail_os(reterr, path);
		close(fd);
	} else {
		(void)fathom_fail_os(reterr, path);
	}
	return got > 0 ? FATHOM_OK : got < 0 ? FATHOM_E_OS : no_memory(path, reterr);
}

fathom_err fathom_maps_read(const char *path, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr)
{
	char *text = NULL;
	size_t size = 0;

	FATHOM_TRY(fathom_text_read(path, MAX_SIZE, NULL, NULL, &text, &size, reterr));
	if (fathom_maps_parse(text, size, ret))
		return fathom_fail_memory(reterr);
	if (ret->n)
		return FATHOM_OK;
	fathom_maps_deinit(ret);
	return no_memory(path, reterr);
}

fathom_err fathom_maps_copy(const struct fathom_maps *maps, struct fathom_maps *ret)
{
	struct fathom_mapping *items = malloc((maps->n + 1) * sizeof *items);

	if (!items)
		return FATHOM_E_MEMORY;
	if (maps->n)
		memcpy(items, maps->items, maps->n * sizeof *items);
	*ret = (struct fathom_maps){ .items = items, .n = maps->n };
	return FATHOM_OK;
}

void fathom_maps_deinit(struct fathom_maps *maps)
{
	free(maps->items);
	free(maps->text);
}

size_t fathom_maps_at(const struct fathom_maps *maps, uint64_t avma)
{
	const size_t low = FATHOM_BISECT(maps->n, i, maps->items[i].end <= avma);

	return low < maps->n && maps->items[low].start <= avma ? low : maps->n;
}

bool fathom_mapping_same_file(const struct fathom_mapping *a, const struct fathom_mapping *b)
{
	return a->inode == b->inode && a->device == b->device && str_equal(a->name, b->name);
}

bool fathom_mapping_is_usable(const struct fathom_mapping *m)
{
	return m->readable || m->writable || m->executable;
}
