/* SPDX-License-Identifier: MIT */
/*
 * Names one address: by the symbol of the tables or of the stored index, by a substitute, or with
 * the reason why there is no name.
 */
#include <stdlib.h>

#include "host/module/module.h"
#include "host/module/variables.h"
#include "host/symbol/gnu_rules.h"
#include "host/symbol/llvm_rules.h"
#include "host/symbol/plt.h"
#include "host/symbolize/batch.h"

/*
 * Returns the slot that caches the id of symbol @number of @count; without memory, notes a failure
 * and returns NULL.
 */
static uint32_t *symbol_id(struct fathom_part *p, uint32_t number, size_t count)
{
	if (!p->symbol_ids) {
		p->symbol_ids = malloc(count * sizeof *p->symbol_ids);
		if (!p->symbol_ids) {
			p->err = FATHOM_E_MEMORY;
			return NULL;
		}
		memset(p->symbol_ids, 0xff, count * sizeof *p->symbol_ids);
	}
	return &p->symbol_ids[number];
}

/*
 * Returns the block whose function decides between symbols; NULL if there is none, or the
 * personality's rule needs none.
 */
static const struct fathom_block_view *deciding(const struct fathom_batch *b,
						const struct fathom_found *f)
{
	return b->alias == FATHOM_ALIAS_FATHOM && f->view.block && f->view.block->n_nodes ? &f->view
											  : NULL;
}

/*
 * Returns the symbol at @svma that the block names; the alias rule alone chose symbol @number of
 * the index.
 */
static uint32_t named_by_block(const struct fathom_batch *b, struct fathom_part *p, uint64_t svma,
			       const struct fathom_found *f, uint32_t number)
{
	struct fathom_symbol_hit hit;

	if (!deciding(b, f) || !fathom_symbol_index_has_others(b->symbols, number))
		return number;
	/* Addresses are sorted, so consecutive ones often have the same symbol. */
	if (p->named.block == f->view.block && p->named.from == number && svma >= p->named.low &&
	    svma < p->named.high)
		return p->named.to;
	p->named.block = f->view.block;
	p->named.from = number;
	p->named.to = fathom_symbol_index_spelled(b->symbols, number, svma, &f->view);
	p->named.low = svma;
	p->named.high = UINT64_MAX;
	fathom_symbol_index_place(b->symbols, p->named.to, &hit);
	if (p->named.to != number && hit.size)
		p->named.high = hit.start + hit.size;
	return p->named.to;
}

/* Finds the symbol at @svma in the index that this run built. */
static bool find_in_tables(const struct fathom_batch *b, struct fathom_part *p, uint64_t svma,
			   const struct fathom_found *f, struct fathom_symbol_hit *hit,
			   uint32_t *ret_id)
{
	uint32_t number = f->has_symbol ? f->symbol : fathom_symbol_index_at(b->symbols, svma);
	uint32_t *id;

	if (number == FATHOM_NONE)
		return false;
	number = named_by_block(b, p, svma, f, number);
	fathom_symbol_index_place(b->symbols, number, hit);
	hit->file = fathom_symbol_index_file(b->symbols, number);
	id = symbol_id(p, number, fathom_symbol_index_count(b->symbols));
	if (id && *id == FATHOM_NONE) {
		hit->name = fathom_symbol_index_name(b->symbols, number);
		*id = fathom_part_symbol(p, hit);
	}
	*ret_id = id ? *id : FATHOM_NONE;
	return true;
}

/*
 * Returns whether symbols @a and @b of a stored index start together, and both or neither cover
 * @svma.
 */
static bool is_rival(const struct fathom_index_symbol *a, const struct fathom_index_symbol *b,
		     uint64_t svma)
{
	return a->start == b->start && (b->size ? svma - a->start < a->size : !a->size);
}

/*
 * Returns the symbol at @svma that the block names; the alias rule alone chose symbol @number of
 * the stored index. There, symbols that start together are adjacent, the preferred first.
 */
static uint32_t named_in_index(const struct fathom_batch *b, uint64_t svma,
			       const struct fathom_found *f, uint32_t number)
{
	struct fathom_index_symbol winner;
	struct fathom_index_symbol s;
	/* In an index from elsewhere there may be more. */
	const uint32_t least = number < FATHOM_INDEX_GROUP ? 0 : number - FATHOM_INDEX_GROUP;
	uint32_t i = number;

	if (!fathom_index_symbol(b->index, number, &winner) || !deciding(b, f) ||
	    f->view.block->low != winner.start)
		return number;
	while (i > least && fathom_index_symbol(b->index, i - 1, &s) && s.start == winner.start)
		i--;
	if (i == number && !(fathom_index_symbol(b->index, i + 1, &s) && s.start == winner.start))
		return number;
	if (fathom_spelling_fits(&f->view, fathom_index_string(b->index, winner.name)))
		return number;
	for (uint32_t n = 0; n <= 2 * FATHOM_INDEX_GROUP && fathom_index_symbol(b->index, i, &s) &&
			     s.start == winner.start;
	     i++, n++)
		if (is_rival(&s, &winner, svma) &&
		    fathom_spelling_fits(&f->view, fathom_index_string(b->index, s.name)))
			return i;
	return number;
}

/* Finds the symbol at @svma in the stored index of an earlier run. */
static bool find_in_index(const struct fathom_batch *b, struct fathom_part *p, uint64_t svma,
			  const struct fathom_found *f, struct fathom_symbol_hit *hit,
			  uint32_t *ret_id)
{
	struct fathom_index_symbol symbol;
	uint32_t number;
	uint32_t own = FATHOM_NONE;
	uint32_t *id = &own;

	if (!fathom_index_find_symbol(b->index, svma, &number))
		return false;
	number = named_in_index(b, svma, f, number);
	if (!fathom_index_symbol(b->index, number, &symbol))
		return false;
	*hit = (struct fathom_symbol_hit){ .start = symbol.start,
					   .size = symbol.size,
					   .source = (uint8_t)symbol.source };
	if (b->n > FATHOM_SCAN_LIMIT)
		id = symbol_id(p, number, (size_t)b->index->header->symbols.n);
	if (id && *id == FATHOM_NONE) {
		hit->name = fathom_index_string(b->index, symbol.name);
		*id = fathom_part_symbol(p, hit);
	}
	*ret_id = id ? *id : FATHOM_NONE;
	return true;
}

/* Finds the symbol at @svma without an index. */
static bool scan_tables(const struct fathom_batch *b, uint64_t svma, const struct fathom_found *f,
			struct fathom_symbol_hit *hit)
{
	const struct fathom_symbol_set *set = &b->module->symbols;

	switch (b->alias) {
	case FATHOM_ALIAS_GNU:
		return fathom_gnu_scan(set, svma, hit);
	case FATHOM_ALIAS_LLVM:
		return fathom_llvm_scan(set, svma, hit);
	default:
		return fathom_symbols_scan(set, svma, deciding(b, f), hit);
	}
}

/* Finds the symbol for @svma in the module's tables. */
static bool find_symbol(const struct fathom_batch *b, struct fathom_part *p, uint64_t svma,
			const struct fathom_found *f, struct fathom_symbol_hit *hit,
			uint32_t *ret_id)
{
	if (b->symbols)
		return find_in_tables(b, p, svma, f, hit, ret_id);
	if (b->index && b->alias == FATHOM_ALIAS_FATHOM)
		return find_in_index(b, p, svma, f, hit, ret_id);
	if (!scan_tables(b, svma, f, hit))
		return false;
	*ret_id = fathom_part_symbol(p, hit);
	return true;
}

bool fathom_batch_is_folded(const struct fathom_batch *b, uint64_t svma)
{
	struct fathom_index_symbol symbol;
	struct fathom_index_symbol other;
	struct fathom_symbol_hit hit;
	uint32_t number;

	if (b->alias != FATHOM_ALIAS_FATHOM)
		return false;
	if (b->symbols) {
		number = fathom_symbol_index_at(b->symbols, svma);
		return number != FATHOM_NONE && fathom_symbol_index_is_folded(b->symbols, number);
	}
	if (!b->index)
		return fathom_symbols_scan(&b->module->symbols, svma, NULL, &hit) && hit.shared;
	return fathom_index_find_symbol(b->index, svma, &number) &&
	       fathom_index_symbol(b->index, number, &symbol) &&
	       ((number && fathom_index_symbol(b->index, number - 1, &other) &&
		 other.start == symbol.start) ||
		(fathom_index_symbol(b->index, number + 1, &other) && other.start == symbol.start));
}

/* Names @a after symbol @id of @p. */
static void set_symbol(const struct fathom_batch *b, const struct fathom_part *p,
		       struct fathom_answer *a, const struct fathom_symbol_hit *hit, uint32_t id,
		       uint64_t svma)
{
	fathom_part_name_answer(p, b->answers, a, id);
	a->source = hit->source;
	a->size = hit->size;
	a->offset = svma - hit->start;
	/* A return address was looked up as the byte before it. */
	a->offset += a->pc.address - b->bias - svma;
}

/* Finds the stub or the unwind bounds at @svma in @index, which stands for the file. */
static bool find_stored_nameless(const struct fathom_index *index, uint64_t svma,
				 struct fathom_symbol_hit *ret)
{
	struct fathom_index_nameless n;

	if (!fathom_index_find_nameless(index, svma, &n) || svma < n.start ||
	    (n.source != FATHOM_SOURCE_PLT && n.source != FATHOM_SOURCE_FDE))
		return false;
	*ret = (struct fathom_symbol_hit){ .start = n.start,
					   .size = n.size,
					   .name = fathom_index_string(index, n.name),
					   .source = (uint8_t)n.source };
	return n.source == FATHOM_SOURCE_FDE || ret->name.data;
}

/* Names @svma without symbol tables (stub, unwind bounds); returns false if that fails, too. */
static bool find_nameless(const struct fathom_batch *b, uint64_t svma,
			  struct fathom_symbol_hit *ret)
{
	if (b->index && b->index->header->flags & FATHOM_INDEX_ALONE)
		return find_stored_nameless(b->index, svma, ret);
	return fathom_plt_at(&b->module->symbols, b->symbols, svma, ret) ||
	       (fathom_object_has_code(b->module->main, svma) &&
		fathom_symbols_fde(&b->module->symbols, svma, ret));
}

/* Returns the cache entry for @svma; NULL without memory. */
static struct fathom_nameless *nameless_at(struct fathom_part *p, uint64_t svma)
{
	if (!p->nameless)
		p->nameless = calloc(FATHOM_NAMELESS, sizeof *p->nameless);
	return p->nameless ? &p->nameless[svma / 16 % FATHOM_NAMELESS] : NULL;
}

static bool is_in(const struct fathom_nameless *n, uint64_t svma)
{
	return svma - n->start < n->size;
}

/*
 * Does what find_nameless() does, cached, and sets the id of the name. Most addresses of a batch
 * are in a stub or function met before, mostly the last one.
 */
static bool find_known_nameless(const struct fathom_batch *b, struct fathom_part *p, uint64_t svma,
				struct fathom_nameless *ret)
{
	struct fathom_nameless *known = NULL;
	struct fathom_symbol_hit hit;

	*ret = p->last_nameless;
	if (is_in(ret, svma))
		return true;
	if (b->n > FATHOM_SCAN_LIMIT)
		known = nameless_at(p, svma);
	if (known && is_in(known, svma)) {
		*ret = p->last_nameless = *known;
		return true;
	}
	if (!find_nameless(b, svma, &hit))
		return false;
	*ret = (struct fathom_nameless){ hit.start, hit.size, fathom_part_symbol(p, &hit),
					 hit.source };
	/* One FDE covers all stubs of a section, of which others have names. */
	if (hit.source == FATHOM_SOURCE_FDE && fathom_plt_holds(b->module->main, svma))
		return true;
	p->last_nameless = *ret;
	if (known)
		*known = *ret;
	return true;
}

/* Names @a after find_nameless(); returns the id of the name. */
static uint32_t set_fallback_symbol(const struct fathom_batch *b, struct fathom_part *p,
				    struct fathom_answer *a, uint64_t svma)
{
	struct fathom_symbol_hit hit = { 0 };
	struct fathom_nameless found;

	if (b->alias != FATHOM_ALIAS_FATHOM || !find_known_nameless(b, p, svma, &found))
		return FATHOM_NONE;
	hit.start = found.start;
	hit.size = found.size;
	hit.source = found.source;
	set_symbol(b, p, a, &hit, found.id, svma);
	return found.id;
}

/* Names the answer after the block's function; returns the id of its name. */
static uint32_t set_dwarf_symbol(const struct fathom_batch *b, struct fathom_part *p,
				 struct fathom_answer *a, const struct fathom_found *f,
				 uint64_t svma)
{
	const uint32_t id = fathom_part_physical(p, f->view);
	const struct fathom_symbol_hit hit = { .start = f->view.block->low,
					       .size = f->view.block->size,
					       .source = FATHOM_SOURCE_DWARF };

	if (id != FATHOM_NONE)
		set_symbol(b, p, a, &hit, id, svma);
	return id;
}

/* Returns whether the block's function is a better name than the symbol. */
static bool dwarf_names_better(const struct fathom_batch *b, const struct fathom_found *f,
			       const struct fathom_symbol_hit *hit)
{
	return b->alias == FATHOM_ALIAS_FATHOM && f->view.block && f->view.block->n_nodes &&
	       !hit->size && f->view.block->low > hit->start;
}

/* Returns whether the answer needs no symbol: GNU takes the linkage name from DWARF. */
static bool is_named_as_linked(const struct fathom_batch *b, const struct fathom_found *f)
{
	struct fathom_block_function function;
	struct fathom_block_node node;

	return b->alias == FATHOM_ALIAS_GNU && (b->flags & FATHOM_BATCH_DWARF_NAMES) &&
	       f->view.block && fathom_block_node(f->view.block, f->row.node, &node) &&
	       fathom_block_function(f->view.block, node.function, &function) &&
	       (function.linkage || (function.name && function.flags & FATHOM_BLOCK_UNMANGLED));
}

/* Returns why this answer has no line, or no name. */
static enum fathom_reason reason_for(const struct fathom_batch *b, const struct fathom_answer *a,
				     const struct fathom_found *f, uint64_t svma)
{
	const bool has_line = f->has_row && f->row.file != FATHOM_BLOCK_NONE;

	if (!a->symbol && !fathom_object_is_mapped(b->module->main, svma))
		return FATHOM_REASON_UNMAPPED;
	if (f->view.block && (f->view.block->flags & FATHOM_BLOCK_DAMAGED))
		return FATHOM_REASON_CORRUPT;
	if (f->reason)
		return f->reason;
	if (!a->symbol && (b->flags & FATHOM_NAMES_ONLY || has_line ||
			   b->no_lines == FATHOM_REASON_NO_DEBUG_INFO))
		return FATHOM_REASON_NO_SYMBOLS;
	if (has_line || (b->flags & FATHOM_NAMES_ONLY))
		return FATHOM_REASON_NONE;
	return b->no_lines;
}

/* Adds the declaration of the variable at @svma, or of the one that symbol @id names. */
static void set_variable(const struct fathom_batch *b, struct fathom_part *p,
			 struct fathom_answer *a, uint32_t id, uint64_t svma)
{
	const bool gnu = b->alias == FATHOM_ALIAS_GNU;
	struct fathom_str path;
	uint32_t line;

	if (!b->variables || a->frame || (!gnu && !a->symbol) ||
	    !fathom_variables_find(b->variables, b->workers[p->number],
				   gnu ? svma : a->pc.address - b->bias - a->offset, svma, gnu,
				   &path, &line))
		return;
	a->frame = fathom_part_place(p, id, path, line);
	b->answers->extra[a - b->answers->answers].file = NULL;
	a->reason = FATHOM_REASON_NONE;
}

/* Returns symbol @id demangled for the language in the debug information. */
static uint32_t in_language(const struct fathom_batch *b, struct fathom_part *p,
			    const struct fathom_found *f, uint32_t id)
{
	if (id == FATHOM_NONE || !f->view.block || b->alias != FATHOM_ALIAS_FATHOM)
		return id;
	return fathom_part_ada_symbol(p, f->view, id);
}

void fathom_batch_answer(struct fathom_batch *b, struct fathom_part *p,
			 const struct fathom_query *q, const struct fathom_found *f)
{
	struct fathom_answer *a = &b->answers->answers[q->index];
	struct fathom_symbol_hit hit = { 0 };
	uint32_t id = FATHOM_NONE;

	if (!is_named_as_linked(b, f) && find_symbol(b, p, q->svma, f, &hit, &id) &&
	    !dwarf_names_better(b, f, &hit)) {
		id = in_language(b, p, f, id);
		set_symbol(b, p, a, &hit, id, q->svma);
	} else {
		id = FATHOM_NONE;
		if (f->view.block && f->view.block->n_nodes)
			id = set_dwarf_symbol(b, p, a, f, q->svma);
	}
	if (id == FATHOM_NONE)
		id = set_fallback_symbol(b, p, a, q->svma);
	if (f->has_row && !(b->flags & FATHOM_NAMES_ONLY))
		a->frame = fathom_part_frame(p, f->view, &f->row, f->index, id);
	if (b->answers->extra && (!f->has_row || f->row.file == FATHOM_BLOCK_NONE))
		b->answers->extra[q->index].file = fathom_part_file(p, hit.file);
	a->reason = (uint8_t)reason_for(b, a, f, q->svma);
	set_variable(b, p, a, id, q->svma);
}
