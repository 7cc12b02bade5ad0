/* SPDX-License-Identifier: MIT */
/*
 * A file that is rewritten between two readings. The test is linked with
 * -Wl,--wrap=fathom_file_read_at.
 */
#ifndef REWRITTEN_H
#define REWRITTEN_H

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

static struct {
	int readings; /* left before the file is rewritten; 0: it is not */
	int fd;
	const void *bytes;
	size_t size;
} rewriting;

/* Replaces the content of @fd by @size @bytes before the @n-th reading from now on. */
static void rewrite_before(int n, int fd, const void *bytes, size_t size)
{
	rewriting.readings = n;
	rewriting.fd = fd;
	rewriting.bytes = bytes;
	rewriting.size = size;
}

size_t __real_fathom_file_read_at(int fd, uint64_t off, void *to, size_t size);
size_t __wrap_fathom_file_read_at(int fd, uint64_t off, void *to, size_t size);

size_t __wrap_fathom_file_read_at(int fd, uint64_t off, void *to, size_t size)
{
	if (rewriting.readings && !--rewriting.readings) {
		assert_int_equal(ftruncate(rewriting.fd, 0), 0);
		assert_int_equal(pwrite(rewriting.fd, rewriting.bytes, rewriting.size, 0),
				 (ssize_t)rewriting.size);
	}
	return __real_fathom_file_read_at(fd, off, to, size);
}

#endif
