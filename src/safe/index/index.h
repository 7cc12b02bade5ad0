/* SPDX-License-Identifier: MIT */
/*
 * An index file, as the cache on disk keeps it: symbols by address, and blocks (block.h) by
 * address, ready to be searched where they are mapped.
 *
 *	header     one page
 *	blocks     each 8-byte aligned, their strings in the common pool
 *	pool       strings, as in block.h
 *	symbols    starts (8 bytes each, sorted), winners (4 bytes each), entries: those that start
 *	           at one address stand together, the preferred first
 *	segments   sorted, not overlapping: which block answers for which addresses
 *	checks     a checksum of 4 bytes for each page before this part
 *
 * A page is checked when it is first touched: a damaged file gives no answers, not wrong ones.
 * Files are written and read in the byte order of one machine.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_INDEX_INDEX_H
#define FATHOM_INDEX_INDEX_H

#include <stdatomic.h>

#include "safe/index/block.h"

#define FATHOM_INDEX_MAGIC   "fathomIX"
#define FATHOM_INDEX_VERSION 4
#define FATHOM_INDEX_PAGE    4096
#define FATHOM_INDEX_SOURCES 4

#define FATHOM_INDEX_COMPLETE 1u /* holds all that the debug information says */

/*
 * A file that went into the index. The index is out of date when one of them is another file now: a
 * file of another layout or, without a build-id, any other file.
 */
struct fathom_index_source {
	uint64_t size;
	uint64_t layout;  /* checksum of the build-id and of all headers; 0: it has no build-id */
	int64_t mtime_ns; /* this and what follows: 0 with a build-id */
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
	uint64_t
		content; /* checksum of what the answers were made from, of files with a build-id */
	struct fathom_index_part blocks;
	struct fathom_index_part pool;
	struct fathom_index_part symbol_starts;
	struct fathom_index_part symbol_winners;
	struct fathom_index_part symbols;
	struct fathom_index_part segments;
	struct fathom_index_part checks;
	uint64_t check; /* of all before it */
};

/*
 * Where the header's page ends stand the checksums of the devices, inodes, sizes and times of files
 * that were found to have the content; 0: none. Readers add theirs in place, and may overwrite each
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
	uint64_t unit_off; /* of the unit it was made from */
};

struct fathom_index {
	struct fathom_bytes file;
	const struct fathom_index_header *header;
	/* caller: a bit for each page, zeroed, and a word that says whether damage was met */
	_Atomic uint64_t *checked;
};

/* The checksum of @size bytes. */
uint64_t fathom_index_check(const void *data, size_t size);

/* The words that checked must have for a file of @size bytes. */
static inline uint64_t fathom_index_checked_words(uint64_t size)
{
	return (size / FATHOM_INDEX_PAGE + 64) / 64 + 1;
}

/* Whether some page was found to be damaged: what was not found may be there all the same. */
bool fathom_index_is_damaged(const struct fathom_index *x);

/* Whether @file is an index of this version, of this machine, with its parts in place. */
bool fathom_index_init(struct fathom_index *x, struct fathom_bytes file, _Atomic uint64_t *checked);

/*
 * Whether @seen, which is not 0, stands among the files that have the content. *@ret_place is where
 * in the file it stands, or where it may be put.
 */
bool fathom_index_has_seen(const struct fathom_index *x, uint64_t seen, uint64_t *ret_place);

/* @size bytes at @off, or NULL when they are outside or damaged. */
const void *fathom_index_bytes(const struct fathom_index *x, uint64_t off, uint64_t size);

/* The string @reference of the pool; data is NULL when there is none or it is damaged. */
struct fathom_str fathom_index_string(const struct fathom_index *x, uint32_t reference);

/* The number of the symbol at @svma; false when there is none. Numbers are below symbols.n. */
bool fathom_index_find_symbol(const struct fathom_index *x, uint64_t svma, uint32_t *ret_number);
bool fathom_index_symbol(const struct fathom_index *x, uint32_t number,
			 struct fathom_index_symbol *ret);

/* The block that answers for @svma, with all its strings checked; false when there is none. */
bool fathom_index_find_block(const struct fathom_index *x, uint64_t svma,
			     struct fathom_block_view *ret);

/* Segment @i; false when it is out of range or damaged. */
bool fathom_index_segment(const struct fathom_index *x, uint64_t i,
			  struct fathom_index_segment *ret);

#endif
