/* SPDX-License-Identifier: MIT */
#include "host/file/kernel_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/file/file.h"

/* The kernel hands out a page or so at a time, however much room there is. */
#define LEAST_ROOM ((size_t)64 << 10)

struct growing {
	char *text;
	size_t size;
	size_t cap;
};

static bool make_room(struct growing *g)
{
	const size_t cap = g->cap ? 2 * g->cap : 2 * LEAST_ROOM;
	char *larger;

	if (g->cap - g->size >= LEAST_ROOM)
		return true;
	larger = realloc(g->text, cap);
	if (!larger)
		return false;
	g->text = larger;
	g->cap = cap;
	return true;
}

static fathom_err read_pieces(int fd, size_t limit, fathom_text_enough_fn *enough, void *data,
			      struct growing *g)
{
	ssize_t got;

	do {
		if (g->size > limit)
			return FATHOM_E_LIMIT;
		if (!make_room(g))
			return FATHOM_E_MEMORY;
		got = read(fd, g->text + g->size, g->cap - g->size - 1);
		if (got < 0 && errno != EINTR)
			return FATHOM_E_OS;
		g->size += got > 0 ? (size_t)got : 0;
	} while (got && !(got > 0 && enough && enough(g->text, g->size, data)));
	return FATHOM_OK;
}

fathom_err fathom_text_read(const char *path, size_t limit, fathom_text_enough_fn *enough,
			    void *data, char **ret_text, size_t *ret_size,
			    struct fathom_errinfo *reterr)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct growing g = { NULL, 0, 0 };
	fathom_err err;

	if (fd < 0)
		return fathom_fail_os(reterr, path);
	err = read_pieces(fd, limit, enough, data, &g);
	if (err == FATHOM_E_OS)
		(void)fathom_fail_os(reterr, path);
	else if (err)
		(void)fathom_fail(reterr, err, "", 0,
				  err == FATHOM_E_LIMIT ? "is longer than any that is read"
							: "out of memory");
	close(fd);
	if (err) {
		fathom_errinfo_set_file(reterr, path);
		free(g.text);
		return err;
	}
	g.text[g.size] = '\0';
	*ret_text = g.text;
	*ret_size = g.size;
	return FATHOM_OK;
}

size_t fathom_text_read_short(const char *path, void *to, size_t cap)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t size = 0;
	ssize_t got = 1;

	if (fd < 0)
		return 0;
	while (got > 0 && size < cap) {
		got = read(fd, (char *)to + size, cap - size);
		size += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	return got < 0 ? 0 : size;
}

size_t fathom_text_count_lines(const char *text, size_t size)
{
	const char *end = text + size;
	size_t n = 1;

	for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
		n++;
	return n;
}
