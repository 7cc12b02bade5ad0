/* SPDX-License-Identifier: MIT */
/*
 * A set of names to compare symbols with: a filter on the first eight bytes, which rejects nearly
 * all symbols, then a hash table on the whole name. Both ignore a version, which follows "@": the
 * caller compares it.
 */
#ifndef FATHOM_SYMBOL_NAME_KEYS_H
#define FATHOM_SYMBOL_NAME_KEYS_H

#include <stdlib.h>

#include "safe/base/bytes.h"

struct fathom_name_key {
	uint64_t hash;
	uint32_t value; /* the caller's number */
	uint32_t next;  /* number + 1 of the next in the chain */
};

struct fathom_name_keys {
	uint64_t *filter;     /* bits, by the hash of the first eight bytes */
	uint64_t filter_mask; /* for numbers of bits */
	uint32_t *first;      /* number + 1 of the first in each chain */
	uint32_t mask;        /* for numbers of chains */
	uint32_t n;
	struct fathom_name_key *item;
};

/* Makes room for @n names; returns false if out of memory. */
bool fathom_name_keys_init(struct fathom_name_keys *k, size_t n);
void fathom_name_keys_deinit(struct fathom_name_keys *k);

/* Adds @name, under the number @value. */
void fathom_name_keys_add(struct fathom_name_keys *k, struct fathom_str name, uint32_t value);

/* The golden ratio as a fraction of 2^64: spreads bits upwards (Knuth, 6.4). */
#define FATHOM_SPREAD UINT64_C(0x9e3779b97f4a7c15)

/* Returns the bytes of @key, the first one lowest, before the first @c; all if there is none. */
static inline uint64_t fathom_name_cut(uint64_t key, char c)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t x = key ^ ones * (uint8_t)c;
	/* The lowest byte of these that is not 0 is 0x80 where x has its first zero. */
	const uint64_t marks = (x - ones) & ~x & ones << 7;

	return marks ? key & ((marks & (~marks + 1)) - 1) >> 7 : key;
}

/* Loads the @left bytes at @name, up to eight, the first one lowest. */
static inline uint64_t fathom_name_load(const char *name, uint64_t left)
{
	const bool swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const uint8_t *p = (const uint8_t *)name;

	if (left >= 8)
		return load_u64(p, swap);
	/* The two loads may overlap: they agree on the bytes that both have. */
	if (left >= 4)
		return load_u32(p, swap) | (uint64_t)load_u32(p + left - 4, swap) << 8 * (left - 4);
	if (left >= 2)
		return load_u16(p, swap) | (uint64_t)load_u16(p + left - 2, swap) << 8 * (left - 2);
	return left ? p[0] : 0;
}

/* Returns the first eight bytes of a name without its version. @left bytes may be read. */
static inline uint64_t fathom_name_key_of(const char *name, uint64_t left)
{
	return fathom_name_cut(fathom_name_cut(fathom_name_load(name, left), '\0'), '@');
}

static inline uint64_t fathom_name_keys_bit(const struct fathom_name_keys *k, uint64_t key)
{
	return (key * FATHOM_SPREAD >> 32) & k->filter_mask;
}

/* Does fathom_name_keys_first() after the filter. */
uint32_t fathom_name_keys_look_up(const struct fathom_name_keys *k, const char *name,
				  uint64_t left);

/*
 * Returns the number + 1 of the first key for the name at @name, or 0. The name ends with a NUL or
 * after @left bytes.
 */
static inline uint32_t fathom_name_keys_first(const struct fathom_name_keys *k, const char *name,
					      uint64_t left)
{
	const uint64_t bit = fathom_name_keys_bit(k, fathom_name_key_of(name, left));

	return k->filter[bit / 64] >> bit % 64 & 1 ? fathom_name_keys_look_up(k, name, left) : 0;
}

/* Returns the number + 1 of the next key with the hash of number @i - 1, or 0. */
uint32_t fathom_name_keys_next(const struct fathom_name_keys *k, uint32_t i);

#endif
