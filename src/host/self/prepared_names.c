/* SPDX-License-Identifier: MIT */
/*
 * Copies the symbols of a module for handlers: the address ranges of the symbol index with
 * demangled names and, in the gaps, PLT stubs and the bounds of FDEs.
 */
#include <stdlib.h>

#include "host/base/demangle.h"
#include "host/self/self.h"
#include "host/symbol/plt.h"
#include "safe/base/sort.h"
#include "safe/base/text.h"

/* Minimum distance of two PLT stubs. */
#define LEAST_STUB 8

struct symbols {
	FATHOM_ARRAY_OF(struct fathom_self_symbol);
};

struct copy {
	struct fathom_module *module;
	struct fathom_symbol_index *index;
	struct fathom_self_prepared *to;
	struct fathom_u64_array starts;
	struct fathom_u32_array winners;
	struct symbols symbols;
	struct fathom_bytes_array scratch; /* for names made here */
	struct fathom_bytes_array demangled;
	const struct fathom_bounds_list *bounds;
	bool failed; /* out of memory */
};

uint32_t fathom_self_add_string(struct fathom_self_prepared *p, struct fathom_str s)
{
	const size_t need = (size_t)s.size + 1;
	uint32_t at;

	/* Offset 0 is the empty string. */
	if (!s.size || !fathom_array_room(&p->strings, need + 1) ||
	    p->strings.n + need + 1 > UINT32_MAX)
		return 0;
	if (!p->strings.n)
		p->strings.items[p->strings.n++] = '\0';
	at = (uint32_t)p->strings.n;
	memcpy(p->strings.items + at, s.data, s.size);
	p->strings.items[at + s.size] = '\0';
	p->strings.n += need;
	return at;
}

uint32_t fathom_self_add_demangled(struct fathom_self_prepared *p,
				   struct fathom_bytes_array *scratch, struct fathom_str linkage)
{
	fathom_err err;

	scratch->n = 0;
	err = fathom_demangle(linkage, false, scratch);
	if (err == FATHOM_END)
		return FATHOM_SELF_NONE;
	return err ? 0
		   : fathom_self_add_string(
			     p, (struct fathom_str){ scratch->items, (uint32_t)scratch->n });
}

/* Returns the linkage name that answers have for @hit; the text may be in c->scratch. */
static struct fathom_str linkage_of(struct copy *c, const struct fathom_symbol_hit *hit)
{
	char buf[FATHOM_BOUNDS_NAME];
	struct fathom_str name = hit->name;
	const char *suffix = "@plt";

	if (hit->source == FATHOM_SOURCE_FDE) {
		name = fathom_symbol_bounds(hit, buf);
		suffix = "";
	} else if (hit->source != FATHOM_SOURCE_PLT) {
		return name;
	}
	c->scratch.n = 0;
	if (!fathom_array_room(&c->scratch, name.size + strlen(suffix))) {
		c->failed = true;
		return (struct fathom_str){ NULL, 0 };
	}
	memcpy(c->scratch.items, name.data, name.size);
	memcpy(c->scratch.items + name.size, suffix, strlen(suffix));
	name.data = c->scratch.items;
	name.size += (uint32_t)strlen(suffix);
	return name;
}

/* Adds a symbol; returns its number, or the number for none if it has no name. */
static uint32_t add_symbol(struct copy *c, const struct fathom_symbol_hit *hit)
{
	const struct fathom_str linkage = linkage_of(c, hit);
	struct fathom_self_symbol s = { .start = hit->start,
					.size = hit->size,
					.source = hit->source };

	if (!linkage.size)
		return FATHOM_SELF_NONE;
	s.linkage = fathom_self_add_string(c->to, linkage);
	s.linkage_size = linkage.size;
	s.name = fathom_self_add_demangled(c->to, &c->demangled, linkage);
	s.name_size = (uint32_t)c->demangled.n;
	if (s.name == FATHOM_SELF_NONE) {
		s.name = s.linkage;
		s.name_size = s.linkage_size;
	}
	if (!s.linkage || !s.name || !fathom_array_room(&c->symbols, 1)) {
		c->failed = true;
		return FATHOM_SELF_NONE;
	}
	c->symbols.items[c->symbols.n++] = s;
	return (uint32_t)(c->symbols.n - 1);
}

/* Starts a range of symbol @number at @start. */
static void emit(struct copy *c, uint64_t start, uint32_t number)
{
	uint64_t *starts = c->starts.items;
	uint32_t *winners = c->winners.items;

	if (c->starts.n && starts[c->starts.n - 1] == start)
		c->winners.n = --c->starts.n;
	if (c->starts.n && winners[c->starts.n - 1] == number)
		return;
	if (!fathom_array_room(&c->starts, 1) || !fathom_array_room(&c->winners, 1)) {
		c->failed = true;
		return;
	}
	c->starts.items[c->starts.n++] = start;
	c->winners.items[c->winners.n++] = number;
}

/* Returns the index of the first FDE that ends after @svma. */
static size_t fde_behind(const struct fathom_bounds_list *f, uint64_t svma)
{
	return FATHOM_BISECT(f->n, i, f->ranges[i].value <= svma);
}

/* Returns the last symbol if it is that of an FDE that starts at @start. */
static uint32_t same_as_last(const struct copy *c, uint64_t start)
{
	const struct fathom_self_symbol *s = c->symbols.items;

	return c->symbols.n && s[c->symbols.n - 1].source == FATHOM_SOURCE_FDE &&
			       s[c->symbols.n - 1].start == start
		       ? (uint32_t)(c->symbols.n - 1)
		       : FATHOM_SELF_NONE;
}

/* Names the code at @pos, up to @high, by its FDE; returns the end. */
static uint64_t emit_description(struct copy *c, uint64_t pos, uint64_t high)
{
	const size_t i = c->bounds ? fde_behind(c->bounds, pos) : 0;
	const struct fathom_keyed *range =
		c->bounds && i < c->bounds->n ? &c->bounds->ranges[i] : NULL;
	struct fathom_symbol_hit hit = { .source = FATHOM_SOURCE_FDE };
	uint32_t number;

	if (!range || range->key > pos) {
		emit(c, pos, FATHOM_SELF_NONE);
		return range && range->key < high ? range->key : high;
	}
	hit.start = range->key;
	hit.size = range->value - range->key;
	number = same_as_last(c, hit.start);
	emit(c, pos, number != FATHOM_SELF_NONE ? number : add_symbol(c, &hit));
	return range->value < high ? range->value : high;
}

/* Returns the end of @pos's section, or the start of the next one; at most @high. */
static uint64_t section_boundary(const struct fathom_object *o, uint64_t pos, uint64_t high)
{
	for (uint32_t i = 1; i < o->n_sections; i++) {
		const struct fathom_object_section *s = &o->sections[i];
		const uint64_t end = s->base + s->header.size;

		if (!(s->header.flags & SHF_EXECINSTR))
			continue;
		if (s->base > pos && s->base < high)
			high = s->base;
		if (end > pos && end < high)
			high = end;
	}
	return high;
}

/* Names the code in [@low, @high), which has no symbol. */
static void emit_code(struct copy *c, uint64_t low, uint64_t high)
{
	const struct fathom_object *o = c->module->main;
	struct fathom_symbol_hit hit;
	uint64_t end;

	for (uint64_t pos = low; pos < high && !c->failed; pos = end) {
		if (fathom_plt_at(&c->module->symbols, c->index, pos, &hit)) {
			end = hit.start + hit.size < high ? hit.start + hit.size : high;
			emit(c, pos, add_symbol(c, &hit));
		} else if (fathom_plt_holds(o, pos)) {
			end = (pos & ~(uint64_t)(LEAST_STUB - 1)) + LEAST_STUB;
			(void)emit_description(c, pos, end < high ? end : high);
		} else {
			end = emit_description(c, pos, section_boundary(o, pos, high));
		}
	}
}

/* Names the code inside the gap [@low, @high) between symbols. */
static void emit_gap(struct copy *c, uint64_t low, uint64_t high)
{
	const struct fathom_object *o = c->module->main;

	emit(c, low, FATHOM_SELF_NONE);
	for (uint32_t i = 0; i < o->n_code; i++) {
		const uint64_t from = o->code[i].low > low ? o->code[i].low : low;
		const uint64_t to = o->code[i].high < high ? o->code[i].high : high;

		if (from >= to)
			continue;
		emit_code(c, from, to);
		emit(c, to, FATHOM_SELF_NONE);
	}
}

/* Returns the symbol of index entry @entry; adds it on first use. */
static uint32_t number_of(struct copy *c, uint32_t *numbers, uint32_t entry)
{
	struct fathom_symbol_hit hit;

	if (numbers[entry] == FATHOM_SELF_NONE) {
		fathom_symbol_index_place(c->index, entry, &hit);
		hit.name = fathom_symbol_index_name(c->index, entry);
		numbers[entry] = add_symbol(c, &hit);
	}
	return numbers[entry];
}

/*
 * Returns the symbol, among those that start where @winner does, that the lines name for all of
 * [@start, @end); @winner without lines.
 */
static uint32_t named_by_lines(const struct copy *c, uint32_t winner, uint64_t start, uint64_t end)
{
	const struct fathom_index *lines = c->to->module.lines;
	struct fathom_block_view view;
	struct fathom_symbol_hit hit;
	uint32_t named;

	if (!lines || !fathom_symbol_index_has_others(c->index, winner) ||
	    !fathom_index_find_block(lines, start, &view) || !view.block->n_nodes)
		return winner;
	named = fathom_symbol_index_spelled(c->index, winner, start, &view);
	fathom_symbol_index_place(c->index, named, &hit);
	return !hit.size || end - hit.start <= hit.size ? named : winner;
}

static void copy_stretches(struct copy *c, uint32_t *numbers)
{
	const uint64_t *starts;
	const uint32_t *winners;
	const uint32_t n = fathom_symbol_index_starts(c->index, &starts, &winners);

	emit_gap(c, 0, n ? starts[0] : UINT64_MAX);
	for (uint32_t i = 0; i < n && !c->failed; i++) {
		const uint64_t end = i + 1 < n ? starts[i + 1] : UINT64_MAX;

		if (winners[i] != FATHOM_NONE)
			emit(c, starts[i],
			     number_of(c, numbers, named_by_lines(c, winners[i], starts[i], end)));
		else
			emit_gap(c, starts[i], end);
	}
}

/*
 * Divides the addresses evenly into about as many buckets as there are starts, ignoring one start
 * in a hundred at either end. Bucket 0 holds everything before the base.
 */
static bool make_buckets(struct fathom_self_prepared *p)
{
	struct fathom_self_module *m = &p->module;
	const uint32_t trim = m->n_starts / 100;
	uint32_t start = 0;

	m->n_buckets = 64;
	while (m->n_buckets < m->n_starts)
		m->n_buckets *= 2;
	p->buckets = malloc((m->n_buckets + 1u) * sizeof *p->buckets);
	if (!p->buckets)
		return false;
	m->buckets = p->buckets;
	if (m->n_starts) {
		uint64_t span;

		m->base = p->starts[trim];
		span = p->starts[m->n_starts - 1 - trim] - m->base;
		while (span >> m->shift > m->n_buckets - 2)
			m->shift++;
	}
	p->buckets[0] = 0;
	for (uint32_t b = 1; b < m->n_buckets; b++) {
		/* Buckets that would start after the last address have no starts. */
		const bool behind = b - 1 > (UINT64_MAX - m->base) >> m->shift;
		const uint64_t low = m->base + ((uint64_t)(b - 1) << m->shift);

		while (start < m->n_starts && (behind || p->starts[start] < low))
			start++;
		p->buckets[b] = start;
	}
	p->buckets[m->n_buckets] = m->n_starts;
	return true;
}

/* Moves the copied data to the prepared module. */
static bool keep(struct copy *c)
{
	struct fathom_self_prepared *p = c->to;
	struct fathom_self_module *m = &p->module;

	p->starts = c->starts.items;
	p->winners = c->winners.items;
	p->symbols = c->symbols.items;
	m->starts = p->starts;
	m->winners = p->winners;
	m->symbols = p->symbols;
	m->n_starts = (uint32_t)c->starts.n;
	p->bytes += c->starts.cap * sizeof *p->starts + c->winners.cap * sizeof *p->winners +
		    c->symbols.cap * sizeof *p->symbols;
	return make_buckets(p);
}

fathom_err fathom_self_copy_names(struct fathom_module *m, struct fathom_self_prepared *p)
{
	struct copy c = { .module = m, .to = p };
	uint32_t *numbers = NULL;
	size_t n;

	/* Not through the module, which would keep the index. */
	c.index = fathom_symbol_index_create(&m->session->memory, &m->symbols, FATHOM_ALIAS_FATHOM,
					     m->session->threads);
	c.bounds = m->unwind.bounds.all(&m->unwind.bounds);
	if (c.index) {
		n = fathom_symbol_index_count(c.index) + 1u;
		numbers = malloc(n * sizeof *numbers);
		if (numbers)
			memset(numbers, 0xff, n * sizeof *numbers);
	}
	c.failed = !numbers;
	if (!c.failed)
		copy_stretches(&c, numbers);
	/* Freeing @p also frees the copied data, even after a failure. */
	if (!keep(&c))
		c.failed = true;
	fathom_symbol_index_destroy(c.index);
	free(numbers);
	fathom_array_free(&c.scratch);
	fathom_array_free(&c.demangled);
	return c.failed ? FATHOM_E_MEMORY : FATHOM_OK;
}
