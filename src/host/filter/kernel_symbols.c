/* SPDX-License-Identifier: MIT */
#include "host/filter/kernel_symbols.h"

#include <elf.h>

/* Adds the symbols of @t that have names and addresses; false without memory. */
static bool add_table(const struct fathom_symbol_table *t, struct fathom_keyed_array *starts)
{
	for (uint32_t i = 0; i < t->view.count; i++) {
		struct fathom_symbol_region region;
		struct fathom_symbol s;
		uint64_t svma;

		fathom_symtab_get(&t->view, i, &s);
		if (s.type == STT_SECTION || s.type == STT_FILE || s.section == SHN_UNDEF ||
		    fathom_symbol_is_mapping(&t->view, &s) ||
		    !fathom_symbol_place(t, &s, &svma, &region))
			continue;
		if (!fathom_array_push(starts, (struct fathom_keyed){ svma, 0 }))
			return false;
	}
	return true;
}

fathom_err fathom_kernel_symbols_read(const struct fathom_module *m,
				      struct fathom_kernel_symbols *ret)
{
	struct fathom_keyed_array *starts = &ret->starts;

	for (uint8_t t = 0; t < m->symbols.n_tables; t++)
		if (!add_table(&m->symbols.table[t], starts))
			return FATHOM_E_MEMORY;
	if (!fathom_array_room(starts, starts->n))
		return FATHOM_E_MEMORY;
	fathom_sort_keyed(starts->items, starts->items + starts->n, starts->n);
	return FATHOM_OK;
}

void fathom_kernel_symbols_deinit(struct fathom_kernel_symbols *k)
{
	fathom_array_free(&k->starts);
}

/* Returns whether no symbol starts after @svma in its section. */
static bool is_last(const struct fathom_kernel_symbols *k, const struct fathom_object *o,
		    uint64_t svma)
{
	const struct fathom_keyed_array *a = &k->starts;
	const size_t next = FATHOM_BISECT(a->n, i, a->items[i].key <= svma);

	return next == a->n ||
	       fathom_object_section_at(o, a->items[next].key) != fathom_object_section_at(o, svma);
}

bool fathom_kernel_symbols_agree(const struct fathom_kernel_symbols *k,
				 const struct fathom_module *m, uint64_t svma, uint64_t stated,
				 uint64_t size)
{
	const struct fathom_keyed_array *a = &k->starts;
	const uint64_t end = svma + size;
	size_t i;

	if (size <= stated)
		return size == stated;
	/* The kernel does not keep every symbol of the file. */
	i = FATHOM_BISECT(a->n, x, a->items[x].key < end);
	return (i < a->n && a->items[i].key == end) || is_last(k, m->main, svma);
}
