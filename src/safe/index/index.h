/* SPDX-License-Identifier: MIT */
/*
 * An index file, as the cache on disk keeps it: symbols by address, and blocks (block.h) by
 * address, searched where they are mapped.
 *
 *	header     one page
 *	blocks     each 8-byte aligned, their strings in the common pool
 *	pool       strings, as in block.h
 *	symbols    starts (8 bytes each, sorted), winners (4 bytes each), entries: those that start
 *	           at one address stand together, the preferred first
 *	segments   sorted, not overlapping: which block answers for which addresses
 *	nameless   sorted, not overlapping: stubs and unwind bounds where no symbol is
 *	checks     a checksum of 4 bytes for each page before this part
 *
 * A page is checked when it is first touched: a damaged file gives no answers, not wrong ones.
 *
 * An index of a store (FATHOM_INDEX_ALONE) answers without the file that it was made from. It has
 * no checks: its pages are filled in when they are first touched, by somebody who has checked them.
 * Files are written and read in the byte order of one machine.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_INDEX_INDEX_H
#define FATHOM_INDEX_INDEX_H

#include <stdatomic.h>

#include "safe/index/block.h"

#define FATHOM_INDEX_MAGIC   "fathomIX"
#define FATHOM_INDEX_VERSION 6
#define FATHOM_INDEX_PAGE    4096
#define FATHOM_INDEX_SOURCES 4

#define FATHOM_INDEX_COMPLETE 1u /* holds all that the debug information says */
#define FATHOM_INDEX_ALONE    2u /* holds what the file itself says, too: nameless */

/* At most this many symbols of one address are written, beside the one that wins there. */
#define FATHOM_INDEX_GROUP 64

/* The largest block in an index that answers alone. */
#define FATHOM_INDEX_MAX_BLOCK (UINT64_C(16) << 20)

/*
 * A file that went into the index. The index is out of date if one of them was replaced: by a file
 * of another layout or, without a build-id, by any other file.
 */
struct fathom_index_source {
	uint64_t size;
	uint64_t layout;  /* checksum of the build-id and of all headers; 0 without a build-id */
	int64_t mtime_ns; /* this and the next two: 0 with a build-id */
	uint64_t device;
	uint64_t inode;
};

struct fathom_index_part {
	uint64_t off;
	uint64_t n; /* items; bytes for blocks and pool */
};

struct fathom_index_header {
	char magic[8];
	uint32_t version;
	uint32_t byte_order; /* 0x01020304 */
	uint64_t file_size;
	uint32_t flags;
	uint32_t n_sources;
	struct fathom_index_source source[FATHOM_INDEX_SOURCES];
	uint8_t build_id[64];
	uint32_t build_id_size;
	uint32_t reserved;
	uint64_t content; /* checksum of what is answered from, in files with a build-id */
	struct fathom_index_part blocks;
	struct fathom_index_part pool;
	struct fathom_index_part symbol_starts;
	struct fathom_index_part symbol_winners;
	struct fathom_index_part symbols;
	struct fathom_index_part segments;
	struct fathom_index_part nameless;
	struct fathom_index_part checks;
	uint64_t check; /* checksum of all members before it */
};

/*
 * The end of the header's page holds checksums of the device, inode, size and times of files that
 * were found to have the content; 0: none. Readers add theirs in place, and may overwrite each
 * other's: a lost one is only found again.
 */
#define FATHOM_INDEX_SEEN     64
#define FATHOM_INDEX_SEEN_OFF (FATHOM_INDEX_PAGE - FATHOM_INDEX_SEEN * sizeof(uint64_t))

struct fathom_index_symbol {
	uint64_t start;
	uint64_t size;
	uint32_t name;   /* a string of the pool */
	uint32_t source; /* enum fathom_source */
};

struct fathom_index_segment {
	uint64_t low;
	uint64_t high;
	uint64_t block;    /* offset in the file */
	uint64_t unit_off; /* of the unit that the block was made from */
};

/* Code that no symbol names, and what names it: a stub of the PLT, or the bounds of an FDE. */
struct fathom_index_nameless {
	uint64_t low; /* the range that is named */
	uint64_t high;
	uint64_t start; /* of the stub or FDE, which may reach further */
	uint64_t size;
	uint32_t name;   /* a string of the pool; 0: bounds only */
	uint32_t source; /* enum fathom_source */
};

/* Fills in the page at @off; returns false if it cannot be read. Many threads call it. */
typedef bool fathom_index_fill_fn(void *data, uint64_t off);

struct fathom_index {
	struct fathom_bytes file;
	const struct fathom_index_header *header;
	/* The caller's: a zeroed bit for each page, and one word that is set if damage was met. */
	_Atomic uint64_t *checked;
	fathom_index_fill_fn *fill; /* NULL: all pages are there, and have checksums */
	void *fill_data;
};

/* Returns the checksum of @size bytes. */
uint64_t fathom_index_check(const void *data, size_t size);

/* Returns the words that checked must have for a file of @size bytes. */
static inline uint64_t fathom_index_checked_words(uint64_t size)
{
	return (size / FATHOM_INDEX_PAGE + 64) / 64 + 1;
}

/* Returns whether a damaged page was met: then "not found" proves nothing. */
bool fathom_index_is_damaged(const struct fathom_index *x);

/* Opens @file. Returns false unless it is an index of this version and machine, with all parts. */
bool fathom_index_init(struct fathom_index *x, struct fathom_bytes file, _Atomic uint64_t *checked);

/* Does the same for an index that answers alone, of which only the first page is there. */
bool fathom_index_init_filled(struct fathom_index *x, struct fathom_bytes file,
			      _Atomic uint64_t *checked, fathom_index_fill_fn *fill, void *data);

/*
 * Returns whether @seen, which is not 0, is among the files known to have the content. *@ret_place
 * is where in the file it stands, or where it may be put.
 */
bool fathom_index_has_seen(const struct fathom_index *x, uint64_t seen, uint64_t *ret_place);

/* Returns the @size bytes at @off, or NULL if they are outside or damaged. */
const void *fathom_index_bytes(const struct fathom_index *x, uint64_t off, uint64_t size);

/* Returns the string @reference of the pool; data is NULL for none and for a damaged one. */
struct fathom_str fathom_index_string(const struct fathom_index *x, uint32_t reference);

/* Finds the number, below symbols.n, of the symbol at @svma. Returns false if there is none. */
bool fathom_index_find_symbol(const struct fathom_index *x, uint64_t svma, uint32_t *ret_number);
bool fathom_index_symbol(const struct fathom_index *x, uint32_t number,
			 struct fathom_index_symbol *ret);

/* Finds the block that answers for @svma, with all its pages checked; false if there is none. */
bool fathom_index_find_block(const struct fathom_index *x, uint64_t svma,
			     struct fathom_block_view *ret);

/* Finds what names the code at @svma, which no symbol names. Returns false if nothing does. */
bool fathom_index_find_nameless(const struct fathom_index *x, uint64_t svma,
				struct fathom_index_nameless *ret);

/* Reads segment @i. Returns false if it is out of range or damaged. */
bool fathom_index_segment(const struct fathom_index *x, uint64_t i,
			  struct fathom_index_segment *ret);

#endif
