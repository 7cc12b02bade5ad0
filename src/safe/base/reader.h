/* SPDX-License-Identifier: MIT */
/*
 * A reader of memory: of this process, another process, a core, a kernel, or a caller's own. All
 * code that looks into an address space reads through one of these.
 *
 * Safety: that of its functions.
 */
#ifndef FATHOM_BASE_READER_H
#define FATHOM_BASE_READER_H

#include "safe/base/bytes.h"

/* A piece of memory to read. */
struct fathom_reader_piece {
	uint64_t avma;
	size_t size;
};

struct fathom_reader {
	/*
	 * Reads up to @size bytes at @avma. Returns how many could be read, from the start. In the
	 * host tier, errno says why the rest could not; 0 if nothing is there.
	 */
	size_t (*read)(void *data, uint64_t avma, void *to, size_t size);
	/*
	 * Reads the @n @pieces, at most FATHOM_READER_EACH, into @to one after the other, in one
	 * call. Returns how many could be read, from the first on. NULL if the reader has no such
	 * call.
	 */
	size_t (*read_each)(void *data, const struct fathom_reader_piece *pieces, size_t n,
			    uint8_t *to);
	void *data;
};

/* Most pieces of one read_each(). */
#define FATHOM_READER_EACH 256

/* Reads @size bytes at @avma; false if not all can be read. */
static inline bool fathom_reader_read(const struct fathom_reader *r, uint64_t avma, void *to,
				      size_t size)
{
	return r->read(r->data, avma, to, size) == size;
}

/* Reads an unsigned number of @size bytes, 4 or 8, in the other byte order if @swap. */
static inline bool fathom_reader_uint(const struct fathom_reader *r, uint64_t avma, uint8_t size,
				      bool swap, uint64_t *ret)
{
	uint8_t bytes[8];

	if (!fathom_reader_read(r, avma, bytes, size))
		return false;
	*ret = size == 8 ? load_u64(bytes, swap) : load_u32(bytes, swap);
	return true;
}

#endif
