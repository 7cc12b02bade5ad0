/* SPDX-License-Identifier: MIT */
/*
 * A set of names that symbols are compared with: a filter on the first eight bytes, which settles
 * nearly all symbols, then a hash table on the whole name. A version, what follows "@", counts in
 * neither: the caller compares.
 */
#ifndef FATHOM_SYMBOL_NAME_KEYS_H
#define FATHOM_SYMBOL_NAME_KEYS_H

#include <stdlib.h>

#include "safe/base/bytes.h"

struct fathom_name_key {
	uint64_t hash;
	uint32_t value; /* the caller's number */
	uint32_t next;  /* in the chain: number + 1 */
};

struct fathom_name_keys {
	uint64_t *filter;     /* bits, by the hash of the first eight bytes */
	uint64_t filter_mask; /* of a bit's number */
	uint32_t *first;      /* of each chain: number + 1 */
	uint32_t mask;        /* of a chain's number */
	uint32_t n;
	struct fathom_name_key *item;
};

/* Makes room for @n names; false without memory. */
bool fathom_name_keys_init(struct fathom_name_keys *k, size_t n);
void fathom_name_keys_deinit(struct fathom_name_keys *k);

/* Adds @name, under the number @value. */
void fathom_name_keys_add(struct fathom_name_keys *k, struct fathom_str name, uint32_t value);

/* The golden ratio as a fraction of 2^64: spreads bits upwards (Knuth, 6.4). */
#define FATHOM_SPREAD UINT64_C(0x9e3779b97f4a7c15)

/* The bytes of @key, the first one lowest, that stand before the first @c; all when there is none.
 */
static inline uint64_t fathom_name_cut(uint64_t key, char c)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t x = key ^ ones * (uint8_t)c;
	/* The lowest byte of these that is not 0 is 0x80 where x has its first zero. */
	const uint64_t marks = (x - ones) & ~x & ones << 7;

	return marks ? key & ((marks & (~marks + 1)) - 1) >> 7 : key;
}

/* The @left bytes at @name, up to eight, the first one lowest. */
static inline uint64_t fathom_name_load(const char *name, uint64_t left)
{
	const bool swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	const uint8_t *p = (const uint8_t *)name;

	if (left >= 8)
		return load_u64(p, swap);
	/* Two loads that may overlap: what both have is the same. */
	if (left >= 4)
		return load_u32(p, swap) | (uint64_t)load_u32(p + left - 4, swap) << 8 * (left - 4);
	if (left >= 2)
		return load_u16(p, swap) | (uint64_t)load_u16(p + left - 2, swap) << 8 * (left - 2);
	return left ? p[0] : 0;
}

/* The first eight bytes of a name without its version. @left bytes may be read. */
static inline uint64_t fathom_name_key_of(const char *name, uint64_t left)
{
	return fathom_name_cut(fathom_name_cut(fathom_name_load(name, left), '\0'), '@');
}

static inline uint64_t fathom_name_keys_bit(const struct fathom_name_keys *k, uint64_t key)
{
	return (key * FATHOM_SPREAD >> 32) & k->filter_mask;
}

/* fathom_name_keys_first() behind the filter. */
uint32_t fathom_name_keys_look_up(const struct fathom_name_keys *k, const char *name,
				  uint64_t left);

/*
 * Returns the number + 1 of the first key for the name at @name, or 0. The name ends with a NUL or
 * behind @left bytes.
 */
static inline uint32_t fathom_name_keys_first(const struct fathom_name_keys *k, const char *name,
					      uint64_t left)
{
	const uint64_t bit = fathom_name_keys_bit(k, fathom_name_key_of(name, left));

	return k->filter[bit / 64] >> bit % 64 & 1 ? fathom_name_keys_look_up(k, name, left) : 0;
}

/* Returns the number + 1 of the key that follows number @i + 1 with the same hash, or 0. */
uint32_t fathom_name_keys_next(const struct fathom_name_keys *k, uint32_t i);

#endif
