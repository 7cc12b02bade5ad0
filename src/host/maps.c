/* SPDX-License-Identifier: MIT */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "file.h"

#define DELETED " (deleted)"

/* What is left of a line. */
struct line {
	const char *p;
	const char *end;
};

static bool take_char(struct line *l, char c)
{
	if (l->p == l->end || *l->p != c)
		return false;
	l->p++;
	return true;
}

/* A number in @base, 10 or 16. */
static bool take_number(struct line *l, unsigned base, uint64_t *ret)
{
	const char *start = l->p;
	uint64_t value = 0;

	while (l->p < l->end) {
		const char c = *l->p;
		const unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				       : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
							      : base;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
		l->p++;
	}
	*ret = value;
	return l->p != start;
}

/* "r-xp" */
static bool take_rights(struct line *l, struct fathom_mapping *m)
{
	if (l->end - l->p < 4)
		return false;
	m->readable = l->p[0] == 'r';
	m->writable = l->p[1] == 'w';
	m->executable = l->p[2] == 'x';
	l->p += 4;
	return true;
}

/* What follows the inode: blanks, then the name to the end of the line, with any blanks in it. */
static void take_name(struct line *l, struct fathom_mapping *m)
{
	const size_t suffix = sizeof DELETED - 1;
	size_t size;

	while (take_char(l, ' '))
		;
	size = (size_t)(l->end - l->p);
	if (size > suffix && memcmp(l->end - suffix, DELETED, suffix) == 0) {
		m->deleted = true;
		size -= suffix;
	}
	if (size)
		m->name = (struct fathom_str){ l->p, (uint32_t)size };
}

static bool parse_line(struct line l, struct fathom_mapping *m)
{
	uint64_t major;
	uint64_t minor;

	memset(m, 0, sizeof *m);
	if (!take_number(&l, 16, &m->start) || !take_char(&l, '-') ||
	    !take_number(&l, 16, &m->end) || !take_char(&l, ' ') || !take_rights(&l, m) ||
	    !take_char(&l, ' ') || !take_number(&l, 16, &m->off) || !take_char(&l, ' ') ||
	    !take_number(&l, 16, &major) || !take_char(&l, ':') || !take_number(&l, 16, &minor) ||
	    !take_char(&l, ' ') || !take_number(&l, 10, &m->inode))
		return false;
	m->device = major << 32 | minor;
	take_name(&l, m);
	return m->start < m->end;
}

static size_t count_lines(const char *text, size_t size)
{
	size_t n = 1;

	for (size_t i = 0; i < size; i++)
		n += text[i] == '\n';
	return n;
}

fathom_err fathom_maps_parse(char *text, size_t size, struct fathom_maps *ret)
{
	struct fathom_maps maps = { .text = text };
	struct line l = { text, text };

	maps.items = malloc(count_lines(text, size) * sizeof *maps.items);
	if (!maps.items) {
		free(text);
		return FATHOM_E_MEMORY;
	}
	for (; l.p < text + size; l.p = l.end + 1) {
		const size_t left = (size_t)(text + size - l.p);
		struct fathom_mapping m;

		l.end = memchr(l.p, '\n', left);
		l.end = l.end ? l.end : text + size;
		if (parse_line(l, &m) && (!maps.n || maps.items[maps.n - 1].end <= m.start))
			maps.items[maps.n++] = m;
	}
	*ret = maps;
	return FATHOM_OK;
}

/* The kernel hands out a page or so at a time, whatever there is room for. */
#define READ_SIZE ((size_t)64 << 10)
/* The most that is read: the kernel allows 65,530 mappings, or as many as root has set. */
#define MAX_SIZE ((size_t)1 << 30)

/* Reads all of @fd, which is closed, into memory from malloc(). */
static fathom_err read_all(int fd, char **ret_text, size_t *ret_size)
{
	char *text = NULL;
	size_t size = 0;
	size_t cap = 0;
	ssize_t got = 1;

	while (got > 0 && size < MAX_SIZE) {
		if (cap - size < READ_SIZE) {
			char *larger = realloc(text, cap + 2 * READ_SIZE);

			if (!larger)
				break;
			text = larger;
			cap += 2 * READ_SIZE;
		}
		do
			got = read(fd, text + size, cap - size);
		while (got < 0 && errno == EINTR);
		size += got > 0 ? (size_t)got : 0;
	}
	if (got) {
		const int number = errno;

		free(text);
		close(fd);
		errno = number;
		return got < 0 ? FATHOM_E_OS : FATHOM_E_MEMORY;
	}
	close(fd);
	*ret_text = text;
	*ret_size = size;
	return FATHOM_OK;
}

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
	char *text;
	size_t size;
	fathom_err err = FATHOM_E_OS;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		err = read_all(fd, &text, &size);
	if (err == FATHOM_E_OS)
		return fathom_fail_os(reterr, path);
	if (!err)
		err = fathom_maps_parse(text, size, ret);
	if (err)
		return fathom_fail(reterr, err, "", 0, "out of memory");
	if (ret->n)
		return FATHOM_OK;
	fathom_maps_deinit(ret);
	return no_memory(path, reterr);
}

void fathom_maps_deinit(struct fathom_maps *maps)
{
	free(maps->items);
	free(maps->text);
}

size_t fathom_maps_at(const struct fathom_maps *maps, uint64_t avma)
{
	size_t low = 0;
	size_t high = maps->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (maps->items[mid].end <= avma)
			low = mid + 1;
		else
			high = mid;
	}
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
