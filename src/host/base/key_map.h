/* SPDX-License-Identifier: MIT */
/* A hash table of numbers by 64-bit keys; keys are not removed. All zero, it is empty. */
#ifndef FATHOM_BASE_KEY_MAP_H
#define FATHOM_BASE_KEY_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Value of a key before it is given a number. */
#define FATHOM_KEY_NEW UINT32_MAX

struct fathom_key_map_slot {
	uint64_t key;
	uint32_t value; /* FATHOM_KEY_NEW: the slot is free */
};

struct fathom_key_map {
	struct fathom_key_map_slot *slots;
	size_t n;   /* slots in use */
	size_t cap; /* a power of two, or 0 */
};

/*
 * Returns where the number of @key is stored: FATHOM_KEY_NEW if it has none, which the caller then
 * gives it. It is valid until the next call. Returns NULL without memory.
 */
uint32_t *fathom_key_map_at(struct fathom_key_map *m, uint64_t key);
/* Returns the number of @key, which is not added; FATHOM_KEY_NEW: it has none. */
uint32_t fathom_key_map_find(const struct fathom_key_map *m, uint64_t key);
void fathom_key_map_deinit(struct fathom_key_map *m);

#endif
