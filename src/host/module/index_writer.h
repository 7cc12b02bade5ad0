/* SPDX-License-Identifier: MIT */
/*
 * Writing an index file (safe/index/index.h), part by part: first the blocks, as they are made,
 * then what refers to them. The file gets its name only when it is complete.
 */
#ifndef FATHOM_MODULE_INDEX_WRITER_H
#define FATHOM_MODULE_INDEX_WRITER_H

#include "host/base/array.h"
#include "host/base/memory.h"
#include "safe/index/index.h"

/* A range of addresses that a block can answer for. */
struct fathom_index_claim {
	uint64_t low;
	uint64_t high;
	uint64_t block; /* offset in the file */
	uint64_t unit_off;
	bool function; /* false: code outside functions */
};

/* A range of addresses that a unit claims. */
struct fathom_index_bound {
	uint64_t unit_off;
	uint64_t low;
	uint64_t high;
};

struct fathom_index_claims {
	FATHOM_ARRAY_OF(struct fathom_index_claim);
};

struct fathom_index_writer {
	char *path; /* NULL: in memory */
	char *temporary;
	int fd;
	fathom_err err; /* the first failure; nothing is written after it */
	int os_errno;
	uint64_t off; /* bytes written, including those in page */
	size_t in_page;
	struct fathom_u32_array checks;
	struct fathom_bytes_array pool;
	struct fathom_index_claims claims;
	uint32_t *strings; /* hash table of references to pool */
	size_t strings_size;
	size_t n_strings;
	struct fathom_bytes_array out;    /* the block being written */
	struct fathom_bytes_array memory; /* the output if path is NULL */
	struct fathom_index_header header;
	uint64_t seen;      /* identity of the files that it is made from */
	bool has_no_checks; /* set before anything is added: an index that answers alone */
	uint8_t page[FATHOM_INDEX_PAGE];
	uint8_t buffer[64 * FATHOM_INDEX_PAGE];
	size_t n_buffer;
};

/*
 * Starts the file that will be @path; makes its directory if needed. With NULL, writes to memory
 * instead.
 */
fathom_err fathom_index_writer_open(struct fathom_index_writer *w, const char *path);

/*
 * Adds a block of the unit at @unit_off, for the addresses in the @n sorted @bounds: line tables
 * reach beyond what their unit claims, into padding, where no unit is asked. Adds nothing for a
 * block that knows nothing. Failures show at the end.
 */
void fathom_index_writer_block(struct fathom_index_writer *w, const struct fathom_block_view *view,
			       uint64_t unit_off, const struct fathom_index_bound *bounds,
			       size_t n);

/* Returns a reference to @s in the pool; adds it if it is new. */
uint32_t fathom_index_writer_string(struct fathom_index_writer *w, struct fathom_str s);

/* Writes @n items of @size bytes as one part, and describes it in @ret. */
void fathom_index_writer_part(struct fathom_index_writer *w, const void *items, uint64_t n,
			      size_t size, struct fathom_index_part *ret);

/*
 * Writes the remaining parts, with the fields that the caller has set (of the header flags,
 * sources, build-id, content; seen), and gives the file its name. A writer must be closed or
 * aborted.
 */
fathom_err fathom_index_writer_close(struct fathom_index_writer *w);
/* Closes a writer to memory; *@ret is the caller's to free(). */
fathom_err fathom_index_writer_close_memory(struct fathom_index_writer *w,
					    struct fathom_bytes *ret);
void fathom_index_writer_abort(struct fathom_index_writer *w);

#endif
