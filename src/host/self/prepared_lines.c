/* SPDX-License-Identifier: MIT */
/*
 * Prepares files, lines and inlined calls of a module for handlers: the index from the disk cache,
 * or one made in memory, and the demangled names of its functions.
 */
#include <stdlib.h>

#include "host/self/self.h"

static int compare_linkage(const void *a, const void *b)
{
	const struct fathom_self_demangled *x = a;
	const struct fathom_self_demangled *y = b;

	return x->linkage < y->linkage ? -1 : x->linkage > y->linkage;
}

/* Collects the linkage names of @view's functions. */
static bool add_linkages(struct fathom_self_prepared *p, const struct fathom_block_view *view)
{
	for (uint32_t i = 0; i < view->block->n_functions; i++) {
		struct fathom_block_function f;

		if (!fathom_block_function(view->block, i, &f) || !f.linkage)
			continue;
		if (!fathom_array_push(&p->demangled,
				       (struct fathom_self_demangled){ .linkage = f.linkage }))
			return false;
	}
	return true;
}

/* Sorts and deduplicates the names. */
static void unite(struct fathom_self_demangled_array *a)
{
	struct fathom_self_demangled *d = a->items;
	size_t n = 0;

	if (a->n)
		qsort(d, a->n, sizeof *d, compare_linkage);
	for (size_t i = 0; i < a->n; i++)
		if (!n || d[n - 1].linkage != d[i].linkage)
			d[n++] = d[i];
	a->n = n;
}

/* Demangles the names; drops those that are not mangled. */
static bool demangle_all(struct fathom_self_prepared *p, const struct fathom_index *index)
{
	struct fathom_self_demangled *d = p->demangled.items;
	struct fathom_bytes_array scratch = { 0 };
	bool done = true;
	size_t n = 0;

	for (size_t i = 0; i < p->demangled.n && done; i++) {
		const struct fathom_str linkage = fathom_index_string(index, d[i].linkage);
		const uint32_t name = linkage.size ? fathom_self_add_demangled(p, &scratch, linkage)
						   : FATHOM_SELF_NONE;

		done = name != 0;
		if (name && name != FATHOM_SELF_NONE)
			d[n++] = (struct fathom_self_demangled){ d[i].linkage, name,
								 (uint32_t)scratch.n };
	}
	fathom_array_free(&scratch);
	p->demangled.n = n;
	return done;
}

static fathom_err name_functions(struct fathom_self_prepared *p, const struct fathom_index *index)
{
	const struct fathom_block *last = NULL;
	struct fathom_index_segment segment;
	struct fathom_block_view view;

	for (uint64_t i = 0; fathom_index_segment(index, i, &segment); i++) {
		if (!fathom_index_find_block(index, segment.low, &view) || view.block == last)
			continue;
		last = view.block;
		if (!add_linkages(p, &view))
			return FATHOM_E_MEMORY;
	}
	unite(&p->demangled);
	return demangle_all(p, index) ? FATHOM_OK : FATHOM_E_MEMORY;
}

fathom_err fathom_self_copy_lines(struct fathom_module *m, struct fathom_self_prepared *p)
{
	enum fathom_reason reason = FATHOM_REASON_NO_DEBUG_INFO;
	fathom_err err;

	if (!m->cache && !fathom_module_debug(m, &reason)) {
		p->module.no_lines = (uint8_t)reason;
		return FATHOM_OK;
	}
	p->module.no_lines = FATHOM_REASON_NO_DEBUG_INFO;
	err = fathom_cache_take_all(m, &p->lines);
	if (err) {
		p->module.no_lines = (uint8_t)fathom_reason_of(err);
		return err == FATHOM_E_MEMORY ? err : FATHOM_OK;
	}
	if (!(p->lines->index.header->flags & FATHOM_INDEX_COMPLETE))
		p->module.no_lines = FATHOM_REASON_CORRUPT;
	p->module.lines = &p->lines->index;
	p->bytes += p->lines->allocated ? p->lines->map.size : 0;
	return name_functions(p, &p->lines->index);
}
