/* SPDX-License-Identifier: MIT */
#include "host/base/name_table.h"

#include <stdlib.h>
#include <string.h>

/* Hashes @text by FNV-1a. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

uint32_t fathom_name_table_add(struct fathom_name_table *t, const char *text)
{
	uint32_t *first = fathom_key_map_at(&t->by_hash, hash_of(text));
	struct fathom_table_name name;

	if (!first)
		return FATHOM_KEY_NEW;
	for (uint32_t i = *first; i != FATHOM_KEY_NEW; i = t->items[i].next)
		if (!strcmp(t->items[i].text, text))
			return i;
	name = (struct fathom_table_name){ .text = strdup(text), .next = *first };
	if (t->n == FATHOM_KEY_NEW || !name.text || !fathom_array_push(t, name)) {
		free(name.text);
		return FATHOM_KEY_NEW;
	}
	*first = (uint32_t)t->n - 1;
	return *first;
}

void fathom_name_table_deinit(struct fathom_name_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->items[i].text);
	fathom_array_free(t);
	fathom_key_map_deinit(&t->by_hash);
}
