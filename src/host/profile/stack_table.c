/* SPDX-License-Identifier: MIT */
#include "host/profile/stack_table.h"

#include <string.h>

#include "host/base/hash.h"

_Static_assert(FATHOM_TABLE_NONE == FATHOM_KEY_NEW, "of a name table, without memory");

/* How often another key is tried where different locations have one hash. */
#define TRIES 8

/* Spells @n bytes at @bytes: in hexadecimal digits, as they may have zeros. */
static bool spell(struct fathom_stack_table *t, const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *from = bytes;
	char *to;

	if (!fathom_array_room(&t->spelled, 2 * n + 2))
		return false;
	to = t->spelled.items + t->spelled.n;
	for (size_t i = 0; i < n; i++) {
		*to++ = digits[from[i] >> 4];
		*to++ = digits[from[i] & 15];
	}
	*to++ = ' ';
	*to = '\0';
	t->spelled.n += 2 * n + 1;
	return true;
}

/*
 * Returns the number of what t->spelled spells; FATHOM_TABLE_NONE without memory. *@ret_is_new: it
 * is to be written, and has the next number.
 */
static uint32_t number_of(struct fathom_stack_table *t, struct fathom_name_table *names,
			  bool is_spelled, bool *ret_is_new)
{
	const size_t n = names->n;
	const uint32_t number =
		is_spelled ? fathom_name_table_add(names, t->spelled.items) : FATHOM_KEY_NEW;

	t->spelled.n = 0;
	*ret_is_new = names->n > n;
	return number;
}

uint32_t fathom_table_cgroup(struct fathom_stack_table *t, const char *path)
{
	const size_t n = t->cgroups.n;
	const uint32_t number = fathom_name_table_add(&t->cgroups, path);

	if (t->cgroups.n > n)
		(void)fathom_profile_write_cgroup(t->writer, path);
	return number;
}

uint32_t fathom_table_module(struct fathom_stack_table *t, const struct fathom_profile_module *m)
{
	const bool is_spelled = spell(t, &m->kind, 1) && spell(t, m->path, strlen(m->path)) &&
				spell(t, m->build_id, m->build_id_size) &&
				spell(t, &m->file_size, sizeof m->file_size) &&
				spell(t, &m->changed, sizeof m->changed) &&
				spell(t, &m->runtime, sizeof m->runtime);
	bool is_new;
	const uint32_t number = number_of(t, &t->modules, is_spelled, &is_new);

	if (is_new)
		(void)fathom_profile_write_module(t->writer, m);
	return number;
}

uint32_t fathom_table_symbol(struct fathom_stack_table *t, const struct fathom_profile_symbol *s)
{
	const bool is_spelled = spell(t, &s->source, 1) && spell(t, &s->line, sizeof s->line) &&
				spell(t, &s->column, sizeof s->column) &&
				spell(t, &s->outer, sizeof s->outer) &&
				spell(t, s->name.data, s->name.size) &&
				spell(t, s->linkage_name.data, s->linkage_name.size) &&
				spell(t, s->file.data, s->file.size);
	bool is_new;
	const uint32_t number = number_of(t, &t->symbols, is_spelled, &is_new);

	if (is_new)
		(void)fathom_profile_write_symbol(t->writer, s);
	return number;
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
	fathom_name_table_deinit(&t->cgroups);
	fathom_name_table_deinit(&t->modules);
	fathom_name_table_deinit(&t->symbols);
	fathom_array_free(&t->spelled);
	fathom_array_free(&t->known_locations);
	fathom_array_free(&t->symbol_of);
	fathom_key_map_deinit(&t->locations);
	fathom_key_map_deinit(&t->nodes);
}
