/* SPDX-License-Identifier: MIT */
/*
 * From a name to the symbols of .dynsym that may have it: DT_GNU_HASH (the GNU linkers' table,
 * which glibc's dl-lookup.c and "GNU Hash ELF Sections" describe; System V gABI 4.3, chapter 5,
 * "Hash Table") and the gABI's own DT_HASH.
 *
 * A look-up touches a few words, however many symbols there are. What it yields are candidates: the
 * caller compares the names. Both tables hold only what the dynamic linker may find; imports, if
 * any, and local symbols may be missing.
 *
 * Bounds: a chain of DT_GNU_HASH ends with the bytes; one of DT_HASH, which may run in a circle,
 * after as many steps as the table has symbols.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_ELF_GNU_HASH_H
#define FATHOM_ELF_GNU_HASH_H

#include "safe/base/bytes.h"

struct fathom_hash_table {
	struct fathom_bytes bloom; /* of DT_GNU_HASH */
	struct fathom_bytes buckets;
	struct fathom_bytes chains;
	uint32_t n_buckets;
	uint32_t n_chains; /* of DT_HASH: symbols */
	uint32_t n_bloom;  /* words */
	uint32_t first;    /* of DT_GNU_HASH: the number of the symbol of chain word 0 */
	uint32_t shift;
	uint8_t word; /* bytes of a word of the filter, or of DT_HASH */
	bool is_gnu;
	bool swap;
};

/*
 * Prepares the table that starts with @bytes, which may go on behind it. False when it has no
 * buckets, or its bytes are not there: then it can answer nothing.
 */
bool fathom_gnu_hash_init(struct fathom_hash_table *t, struct fathom_bytes bytes, bool is64,
			  bool swap);
/* The same for DT_HASH, whose words are of 4 bytes, but 8 on 64-bit Alpha and s390. */
bool fathom_sysv_hash_init(struct fathom_hash_table *t, struct fathom_bytes bytes, uint8_t word,
			   bool swap);

/* A look-up of one name. */
struct fathom_hash_search {
	const struct fathom_hash_table *table;
	uint32_t hash;
	uint32_t next; /* symbol; 0: there are no more */
	uint32_t left; /* steps that may still be made */
};

void fathom_hash_search_init(struct fathom_hash_search *s, const struct fathom_hash_table *t,
			     struct fathom_str name);
/* The number of the next symbol that may have the name, which need not be one of the table's. */
bool fathom_hash_search_next(struct fathom_hash_search *s, uint32_t *ret_symbol);

#endif
