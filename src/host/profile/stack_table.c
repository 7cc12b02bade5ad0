/* SPDX-License-Identifier: MIT */
#include "host/profile/stack_table.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/hash.h"

/* A module or symbol as bytes, to be compared. */
struct fathom_table_text {
	size_t size;
	char bytes[];
};

/* How often another key is tried where different things have one hash. */
#define TRIES 8

static bool put(struct fathom_bytes_array *to, const void *bytes, size_t n)
{
	if (!fathom_array_room(to, n + 1))
		return false;
	if (n)
		memcpy(to->items + to->n, bytes, n);
	to->n += n;
	to->items[to->n++] = '\0';
	return true;
}

static struct fathom_table_text *copy_text(const struct fathom_bytes_array *from)
{
	struct fathom_table_text *t = malloc(sizeof *t + from->n);

	if (t) {
		t->size = from->n;
		memcpy(t->bytes, from->items, from->n);
	}
	return t;
}

/*
 * Returns where the number of @text is stored, FATHOM_KEY_NEW if it has none yet; @known has the
 * texts by number. NULL without memory.
 */
static uint32_t *find_text(struct fathom_key_map *map, struct fathom_table_text *const *known,
			   const struct fathom_bytes_array *text)
{
	const uint64_t hash = fathom_hash_bytes(0, text->items, text->n);
	uint32_t *number = NULL;

	for (uint64_t i = 0; i < TRIES; i++) {
		number = fathom_key_map_at(map, hash + i);
		if (!number || *number == FATHOM_KEY_NEW)
			return number;
		if (known[*number]->size == text->n &&
		    !memcmp(known[*number]->bytes, text->items, text->n))
			return number;
	}
	/* It is written once more. */
	*number = FATHOM_KEY_NEW;
	return number;
}

uint32_t fathom_table_module(struct fathom_stack_table *t, const struct fathom_profile_module *m)
{
	struct fathom_bytes_array text = { 0 };
	struct fathom_table_text *copy = NULL;
	uint32_t *number = NULL;
	uint32_t ret = FATHOM_TABLE_NONE;

	if (put(&text, &m->kind, 1) && put(&text, m->path, strlen(m->path)) &&
	    put(&text, m->build_id, m->build_id_size))
		number = find_text(&t->modules, t->known_modules.items, &text);
	if (number && *number == FATHOM_KEY_NEW && (copy = copy_text(&text)) != NULL &&
	    fathom_array_push(&t->known_modules, copy)) {
		*number = fathom_profile_write_module(t->writer, m);
		copy = NULL;
	}
	if (number && *number != FATHOM_KEY_NEW)
		ret = *number;
	free(copy);
	fathom_array_free(&text);
	return ret;
}

uint32_t fathom_table_symbol(struct fathom_stack_table *t, const struct fathom_profile_symbol *s)
{
	struct fathom_bytes_array text = { 0 };
	struct fathom_table_text *copy = NULL;
	uint32_t *number = NULL;
	uint32_t ret = FATHOM_TABLE_NONE;

	if (put(&text, &s->source, 1) && put(&text, &s->line, sizeof s->line) &&
	    put(&text, s->name.data, s->name.size) &&
	    put(&text, s->linkage_name.data, s->linkage_name.size) &&
	    put(&text, s->file.data, s->file.size))
		number = find_text(&t->symbols, t->known_symbols.items, &text);
	if (number && *number == FATHOM_KEY_NEW && (copy = copy_text(&text)) != NULL &&
	    fathom_array_push(&t->known_symbols, copy)) {
		*number = fathom_profile_write_symbol(t->writer, s);
		copy = NULL;
	}
	if (number && *number != FATHOM_KEY_NEW)
		ret = *number;
	free(copy);
	fathom_array_free(&text);
	return ret;
}

static bool is_same(const struct fathom_profile_location *a,
		    const struct fathom_profile_location *b)
{
	return a->pc.address == b->pc.address && a->pc.kind == b->pc.kind &&
	       a->module == b->module && a->trust == b->trust &&
	       a->is_signal_return == b->is_signal_return;
}

uint32_t fathom_table_location(struct fathom_stack_table *t,
			       const struct fathom_profile_location *l, uint32_t symbol)
{
	const uint64_t what[] = { l->pc.address, l->module, symbol,
				  (uint64_t)l->pc.kind << 16 | (uint64_t)l->trust << 8 |
					  l->is_signal_return };
	const uint64_t hash = fathom_hash_bytes(0, (const char *)what, sizeof what);
	uint32_t *number = NULL;

	for (uint64_t i = 0; i < TRIES; i++) {
		number = fathom_key_map_at(&t->locations, hash + i);
		if (!number)
			return FATHOM_TABLE_NONE;
		if (*number == FATHOM_KEY_NEW)
			break;
		if (is_same(&t->known_locations.items[*number], l) &&
		    t->symbol_of.items[*number] == symbol)
			return *number;
	}
	if (!fathom_array_room(&t->known_locations, 1) || !fathom_array_push(&t->symbol_of, symbol))
		return FATHOM_TABLE_NONE;
	(void)fathom_array_push(&t->known_locations, *l);
	*number = fathom_profile_write_location(t->writer, l, symbol);
	return *number;
}

uint32_t fathom_table_node(struct fathom_stack_table *t, uint32_t caller, uint32_t location)
{
	const struct fathom_profile_node node = { caller, location };
	uint32_t *number = fathom_key_map_at(&t->nodes, (uint64_t)caller << 32 | location);

	if (!number)
		return 0;
	if (*number == FATHOM_KEY_NEW)
		*number = fathom_profile_write_node(t->writer, &node);
	return *number;
}

void fathom_stack_table_deinit(struct fathom_stack_table *t)
{
	for (size_t i = 0; i < t->known_modules.n; i++)
		free(t->known_modules.items[i]);
	for (size_t i = 0; i < t->known_symbols.n; i++)
		free(t->known_symbols.items[i]);
	fathom_array_free(&t->known_modules);
	fathom_array_free(&t->known_symbols);
	fathom_array_free(&t->known_locations);
	fathom_array_free(&t->symbol_of);
	fathom_key_map_deinit(&t->modules);
	fathom_key_map_deinit(&t->symbols);
	fathom_key_map_deinit(&t->locations);
	fathom_key_map_deinit(&t->nodes);
}
