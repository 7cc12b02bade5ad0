/* SPDX-License-Identifier: MIT */
/* One piece of memory, which stands for that of a process: nothing else can be read. */
#ifndef FATHOM_UNIT_PIECE_H
#define FATHOM_UNIT_PIECE_H

#include "safe/base/reader.h"

struct piece {
	uint64_t avma;
	size_t size;
	uint8_t bytes[1024];
};

static inline size_t piece_read(void *data, uint64_t avma, void *to, size_t size)
{
	const struct piece *p = data;
	const uint64_t off = avma - p->avma;
	size_t n;

	if (off >= p->size)
		return 0;
	n = size < p->size - off ? size : p->size - off;
	memcpy(to, p->bytes + off, n);
	return n;
}

static inline struct fathom_reader piece_reader(struct piece *p)
{
	return (struct fathom_reader){ .read = piece_read, .data = p };
}

/* Puts @value at @avma, in @size bytes. */
static inline void piece_put(struct piece *p, uint64_t avma, uint64_t value, size_t size)
{
	memcpy(p->bytes + (avma - p->avma), &value, size);
}

#endif
