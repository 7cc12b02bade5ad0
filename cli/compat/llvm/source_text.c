/* SPDX-License-Identifier: MIT */
#include "cli/compat/llvm/source_text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Larger source files are not shown. */
#define MAX_SOURCE ((off_t)64 << 20)

/* Reads all of @fd, which has @size bytes. */
static bool read_all(int fd, size_t size, struct llvm_source *s)
{
	s->text = malloc(size + 1);
	while (s->text && s->size < size) {
		const ssize_t got = read(fd, s->text + s->size, size - s->size);

		if (got <= 0)
			break;
		s->size += (size_t)got;
	}
	return s->text != NULL;
}

static void load(struct llvm_source *s, const char *path)
{
	struct stat st;
	int fd;

	if (s->path && strcmp(s->path, path) == 0)
		return;
	llvm_source_deinit(s);
	s->path = strdup(path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= MAX_SOURCE)
		(void)read_all(fd, (size_t)st.st_size, s);
	close(fd);
}

/* Returns LLVM's width of @n in digits: one too many for powers of ten. */
static unsigned width_of(uint64_t n)
{
	unsigned width = 0;

	for (uint64_t power = 1; power < n; width++)
		if (__builtin_mul_overflow(power, 10, &power))
			break;
	return width;
}

static void write_line(struct out *o, uint64_t number, unsigned width, bool marked,
		       const char *text, size_t size)
{
	for (unsigned own = width_of(number + 1); own < width; own++)
		out_char(o, ' ');
	out_dec(o, number);
	out_str(o, marked ? " >: " : "  : ");
	out_bytes(o, text, size && text[size - 1] == '\r' ? size - 1 : size);
	out_char(o, '\n');
}

void llvm_source_write(struct llvm_source *s, struct out *o, struct llvm_text embedded,
		       const char *path, uint64_t line, uint64_t n)
{
	const uint64_t first = line > n / 2 + 1 ? line - n / 2 : 1;
	const uint64_t last = first + n - 1;
	const char *at;
	const char *end;

	if (!n)
		return;
	if (!embedded.data) {
		load(s, path);
		embedded = (struct llvm_text){ s->text, s->size };
	}
	if (!embedded.data)
		return;
	at = embedded.data;
	end = at + embedded.size;
	for (uint64_t number = 1; number <= last && at < end; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		if (number >= first)
			write_line(o, number, width_of(last), number == line, at,
				   (size_t)(stop - at));
		at = newline ? newline + 1 : end;
	}
}

void llvm_source_deinit(struct llvm_source *s)
{
	free(s->path);
	free(s->text);
	*s = (struct llvm_source){ 0 };
}
