/* SPDX-License-Identifier: MIT */
#include "host/symbol/name_keys.h"

/* Bits of the filter for each name: one symbol in this many passes by chance. */
#define FILTER_BITS 16

/* Hashes a name without its version, eight bytes at a time. */
static uint64_t hash_of(const char *name, uint64_t left)
{
	uint64_t hash = 0;

	for (;;) {
		const uint64_t key = fathom_name_key_of(name, left);

		hash = (hash ^ key) * FATHOM_SPREAD;
		hash ^= hash >> 29;
		/* Names have no 0 bytes: if the last of these is 0, the name has ended. */
		if (!(key >> 56))
			return hash;
		name += 8;
		left -= 8;
	}
}

static uint32_t *chain_of(const struct fathom_name_keys *k, uint64_t hash)
{
	return &k->first[hash * FATHOM_SPREAD >> 32 & k->mask];
}

bool fathom_name_keys_init(struct fathom_name_keys *k, size_t n)
{
	uint64_t size = 64;

	while (size < n)
		size *= 2;
	*k = (struct fathom_name_keys){ .mask = (uint32_t)(size - 1),
					.filter_mask = FILTER_BITS * size - 1 };
	if (size > UINT32_MAX / FILTER_BITS)
		return false;
	k->filter = calloc((size_t)(FILTER_BITS * size / 64), sizeof *k->filter);
	k->first = calloc((size_t)size, sizeof *k->first);
	k->item = malloc((n + 1) * sizeof *k->item);
	return k->filter && k->first && k->item;
}

void fathom_name_keys_deinit(struct fathom_name_keys *k)
{
	free(k->filter);
	free(k->first);
	free(k->item);
}

void fathom_name_keys_add(struct fathom_name_keys *k, struct fathom_str name, uint32_t value)
{
	const uint64_t bit = fathom_name_keys_bit(k, fathom_name_key_of(name.data, name.size));
	const uint64_t hash = hash_of(name.data, name.size);
	uint32_t *first = chain_of(k, hash);

	k->filter[bit / 64] |= UINT64_C(1) << bit % 64;
	k->item[k->n] = (struct fathom_name_key){ hash, value, *first };
	*first = ++k->n;
}

/* Returns the first key with @hash in the chain from @i on. Both are number + 1, or 0: none. */
static uint32_t skip_others(const struct fathom_name_keys *k, uint32_t i, uint64_t hash)
{
	while (i && k->item[i - 1].hash != hash)
		i = k->item[i - 1].next;
	return i;
}

uint32_t fathom_name_keys_look_up(const struct fathom_name_keys *k, const char *name, uint64_t left)
{
	const uint64_t hash = hash_of(name, left);

	return skip_others(k, *chain_of(k, hash), hash);
}

uint32_t fathom_name_keys_next(const struct fathom_name_keys *k, uint32_t i)
{
	return skip_others(k, k->item[i - 1].next, k->item[i - 1].hash);
}
