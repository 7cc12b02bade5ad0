/* SPDX-License-Identifier: MIT */
/*
 * Finds the symbols of .dynsym that may have a name, through DT_GNU_HASH (the GNU linkers' table,
 * described in glibc's dl-lookup.c and "GNU Hash ELF Sections") or DT_HASH (System V gABI 4.3,
 * chapter 5, "Hash Table").
 *
 * A look-up touches a few words, however many symbols there are. It yields candidates: the caller
 * compares the names. Both tables hold only what the dynamic linker may find; they may lack imports
 * and local symbols.
 *
 * Bounds: a chain of DT_GNU_HASH ends with the bytes. A chain of DT_HASH may run in a circle; it
 * ends after as many steps as the table has symbols.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_GNU_HASH_H
#define FATHOM_ELF_GNU_HASH_H

#include "safe/base/bytes.h"

struct fathom_hash_table {
	struct fathom_bytes bloom; /* the Bloom filter of DT_GNU_HASH */
	struct fathom_bytes buckets;
	struct fathom_bytes chains;
	uint32_t n_buckets;
	uint32_t n_chains; /* DT_HASH: number of symbols */
	uint32_t n_bloom;  /* words of the Bloom filter */
	uint32_t first;    /* DT_GNU_HASH: symbol of chain word 0 */
	uint32_t shift;
	uint8_t word; /* bytes of a word of the Bloom filter, or of DT_HASH */
	bool is_gnu;
	bool swap;
};

/*
 * Prepares the table at the start of @bytes, which may go on after it. Returns false if the table
 * has no buckets or is cut off: then it can answer nothing.
 */
bool fathom_gnu_hash_init(struct fathom_hash_table *t, struct fathom_bytes bytes, bool is64,
			  bool swap);
/* The same for DT_HASH. Its words have 4 bytes; 8 on 64-bit Alpha and s390. */
bool fathom_sysv_hash_init(struct fathom_hash_table *t, struct fathom_bytes bytes, uint8_t word,
			   bool swap);

/* Returns the hash of @name in DT_GNU_HASH. */
uint32_t fathom_gnu_hash(struct fathom_str name);

/* One name's look-up. */
struct fathom_hash_search {
	const struct fathom_hash_table *table;
	uint32_t hash;
	uint32_t next; /* symbol; 0 at the end */
	uint32_t left; /* steps still allowed */
};

void fathom_hash_search_init(struct fathom_hash_search *s, const struct fathom_hash_table *t,
			     struct fathom_str name);
/* Yields the number of the next candidate. It may be beyond the symbol table. */
bool fathom_hash_search_next(struct fathom_hash_search *s, uint32_t *ret_symbol);

#endif
