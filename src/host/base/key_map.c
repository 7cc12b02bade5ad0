/* SPDX-License-Identifier: MIT */
#include "host/base/key_map.h"

#include <stdbool.h>
#include <stdlib.h>

#define FIRST_CAP 64

/*
 * Returns the slot of @key, or the free one where it belongs. The hash depends on the address of
 * the slots, so that nobody can write a trace in which all keys collide.
 */
static struct fathom_key_map_slot *find_slot(const struct fathom_key_map *m, uint64_t key)
{
	uint64_t hash = key ^ (uintptr_t)m->slots;

	hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
	hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	for (size_t i = (size_t)(hash ^ hash >> 33);; i++) {
		struct fathom_key_map_slot *slot = &m->slots[i & (m->cap - 1)];

		if (slot->value == FATHOM_KEY_NEW || slot->key == key)
			return slot;
	}
}

/* Doubles the slots; returns false without memory. */
static bool enlarge(struct fathom_key_map *m)
{
	struct fathom_key_map larger = { .n = m->n, .cap = m->cap ? 2 * m->cap : FIRST_CAP };

	larger.slots = calloc(larger.cap, sizeof *larger.slots);
	if (!larger.slots)
		return false;
	for (size_t i = 0; i < larger.cap; i++)
		larger.slots[i].value = FATHOM_KEY_NEW;
	for (size_t i = 0; i < m->cap; i++)
		if (m->slots[i].value != FATHOM_KEY_NEW)
			*find_slot(&larger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = larger;
	return true;
}

uint32_t *fathom_key_map_at(struct fathom_key_map *m, uint64_t key)
{
	struct fathom_key_map_slot *slot;

	/* Half of the slots stay free. */
	if (2 * m->n >= m->cap && !enlarge(m))
		return NULL;
	slot = find_slot(m, key);
	if (slot->value == FATHOM_KEY_NEW) {
		slot->key = key;
		m->n++;
	}
	return &slot->value;
}

uint32_t fathom_key_map_find(const struct fathom_key_map *m, uint64_t key)
{
	return m->cap ? find_slot(m, key)->value : FATHOM_KEY_NEW;
}

void fathom_key_map_deinit(struct fathom_key_map *m)
{
	free(m->slots);
}
