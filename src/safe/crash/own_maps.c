/* SPDX-License-Identifier: MIT */
/*
 * proc(5): /proc/self/maps, a line for each mapping; /proc/self/task/TID/syscall, which ends in the
 * stack pointer and the pc of a thread that sleeps. Not handled: escapes in paths.
 */
#define _GNU_SOURCE
#include "safe/crash/own_maps.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "safe/base/bytes.h"
#include "safe/base/hex.h"
#include "safe/base/sys.h"
#include "safe/base/text.h"
#include "safe/crash/file_facts.h"

/* Bytes of a map that are read at a time; one line has fewer. */
#define ROOM 8192

/* Most threads that are looked at. */
#define MAX_THREADS 4096

static void close_file(long fd)
{
	(void)fathom_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Reads the digits of base @base at *@p, and passes them and one character more. */
static uint64_t take_number(const char **p, const char *end, unsigned base)
{
	uint64_t value = 0;

	for (; *p < end; (*p)++) {
		const unsigned digit = fathom_hex_lower(**p);

		if (digit >= base)
			break;
		value = value * base + digit;
	}
	*p += *p < end;
	return value;
}

/* Reads the line up to @end: start-end permissions offset device inode path. */
static void read_line(const char *p, const char *end, struct fathom_own_mapping *ret)
{
	size_t size;

	ret->start = take_number(&p, end, 16);
	ret->end = take_number(&p, end, 16);
	ret->readable = end - p > 4 && p[0] == 'r';
	ret->writable = end - p > 4 && p[1] == 'w';
	ret->executable = end - p > 4 && p[2] == 'x';
	p += end - p > 5 ? 5 : end - p;
	ret->off = take_number(&p, end, 16);
	(void)take_number(&p, end, 16); /* the device: major, minor */
	(void)take_number(&p, end, 16);
	ret->inode = take_number(&p, end, 10);
	while (p < end && *p == ' ')
		p++;
	size = (size_t)(end - p) < sizeof ret->path - 1 ? (size_t)(end - p) : sizeof ret->path - 1;
	memcpy(ret->path, p, size);
	ret->path[size] = '\0';
}

/* A search in the map. */
struct search {
	uint64_t address;
	struct fathom_own_mapping *holder;
	struct fathom_own_mapping *above;
	char text[ROOM];
	size_t n;
};

/* Looks at the whole lines of @s and keeps the rest; returns false when the search has ended. */
static bool look_at_lines(struct search *s)
{
	const struct fathom_str text = { s->text, (uint32_t)s->n };
	const char *const all = s->text + s->n;
	const char *line = s->text;
	uint32_t at;

	while ((at = fathom_str_find(text, (uint32_t)(line - s->text), '\n')) < text.size) {
		const char *const end = s->text + at;
		const char *p = line;

		if (take_number(&p, end, 16) > s->address) {
			read_line(line, end, s->above);
			return false;
		}
		if (take_number(&p, end, 16) > s->address)
			read_line(line, end, s->holder);
		line = end + 1;
	}
	s->n = (size_t)(all - line);
	memmove(s->text, line, s->n);
	return s->n < sizeof s->text;
}

bool fathom_own_maps_find(uint64_t address, struct fathom_own_mapping *ret,
			  struct fathom_own_mapping *ret_above)
{
	const long fd = fathom_open_path("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	struct search s;
	long n = fd;

	ret->end = 0;
	ret_above->end = 0;
	s.address = address;
	s.holder = ret;
	s.above = ret_above;
	s.n = 0;
	while (fd >= 0) {
		n = fathom_sys(SYS_read, fd, (long)(uintptr_t)(s.text + s.n),
			       (long)(sizeof s.text - s.n), 0, 0, 0);
		if (n <= 0)
			break;
		s.n += (size_t)n;
		if (!look_at_lines(&s))
			break;
	}
	if (fd >= 0)
		close_file(fd);
	return n >= 0;
}

/* Reads the stack pointer of thread @name; returns false if it runs, or has ended. */
static bool read_sp(const char *name, uint64_t *ret)
{
	char room[64];
	struct fathom_text path = text_init(room, sizeof room);
	const char *words[2];
	char line[256];
	int found = 0;
	long fd;
	long n;

	fathom_text_cstr(&path, "/proc/self/task/");
	fathom_text_cstr(&path, name);
	fathom_text_cstr(&path, "/syscall");
	fathom_text_end(&path);
	fd = fathom_open_path(room, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	n = fathom_sys(SYS_read, fd, (long)(uintptr_t)line, sizeof line, 0, 0, 0);
	close_file(fd);
	/* The last two words: "... 0xSP 0xPC\n". */
	for (const char *p = line + (n > 0 ? n : 0); p > line && found < 2; p--)
		if (p[-1] == ' ')
			words[found++] = p;
	if (found < 2 || memcmp(words[1], "0x", 2) != 0)
		return false;
	words[1] += 2;
	*ret = take_number(&words[1], line + n, 16);
	return true;
}

/* struct linux_dirent64 of getdents64(2), without the name */
#define NAME_AT 19
#define SIZE_AT 16

/* Notes in *@found the threads of the @n bytes of entries whose stack pointers lie in a range. */
static void look_at_threads(const char *entries, size_t n, uint64_t start, uint64_t end,
			    int32_t but, int32_t *found, int *n_found)
{
	uint16_t size;

	for (size_t i = 0; i + NAME_AT < n; i += size) {
		const char *name = entries + i + NAME_AT;
		const char *p = name;
		uint64_t tid;
		uint64_t sp;

		memcpy(&size, entries + i + SIZE_AT, sizeof size);
		if (size <= NAME_AT || size > n - i)
			return;
		tid = take_number(&p, entries + i + size, 10);
		if (!tid || (int32_t)tid == but || !read_sp(name, &sp) || sp < start || sp >= end)
			continue;
		*found = (int32_t)tid;
		++*n_found;
	}
}

static long open_threads(void)
{
	return fathom_open_path("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}

int32_t fathom_own_thread_in(uint64_t start, uint64_t end, int32_t but)
{
	_Alignas(8) char entries[2048];
	const long fd = open_threads();
	int32_t found = 0;
	int n_found = 0;

	/* Each entry has 24 bytes or more. */
	for (size_t left = 24u * MAX_THREADS; fd >= 0 && left;) {
		const long n = fathom_sys(SYS_getdents64, fd, (long)(uintptr_t)entries,
					  sizeof entries, 0, 0, 0);

		if (n <= 0)
			break;
		look_at_threads(entries, (size_t)n, start, end, but, &found, &n_found);
		left -= (size_t)n < left ? (size_t)n : left;
	}
	if (fd >= 0)
		close_file(fd);
	return n_found == 1 ? found : 0;
}

uint32_t fathom_own_thread_count(void)
{
	const long fd = open_threads();
	struct fathom_file_facts f = { .links = 0 };

	if (fd < 0)
		return 0;
	(void)fathom_file_facts_read(fd, &f);
	close_file(fd);
	/* The folder's own two links, and one of each thread. */
	return f.links > 2 ? f.links - 2 : 0;
}
