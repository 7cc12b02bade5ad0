/* SPDX-License-Identifier: MIT */
#include "host/base/option_struct.h"

#include <string.h>

bool fathom_options_read(const void *from, void *to, size_t size, const uint32_t *flags,
			 uint32_t known, const uint64_t *reserved, size_t n_reserved)
{
	const uint8_t *bytes = from;
	size_t theirs;

	memcpy(&theirs, from, sizeof theirs);
	if (theirs < sizeof theirs)
		return false;
	memset(to, 0, size);
	memcpy(to, from, theirs < size ? theirs : size);
	for (size_t i = size; i < theirs; i++)
		if (bytes[i])
			return false;
	for (size_t i = 0; i < n_reserved; i++)
		if (reserved[i])
			return false;
	return !flags || !(*flags & ~known);
}

/* Bytes of the smallest and of the largest such struct. */
#define LEAST_SIZE 16
#define MOST_SIZE  4096

bool fathom_size_is_set(const void *from)
{
	size_t size;

	memcpy(&size, from, sizeof size);
	return size >= LEAST_SIZE && size <= MOST_SIZE;
}
