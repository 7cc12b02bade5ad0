/* SPDX-License-Identifier: MIT */
#include "host/module/index_alone.h"

#include <stddef.h>
#include <stdlib.h>

#include "host/base/progress.h"
#include "host/module/cache_read.h"
#include "host/module/index_writer.h"
#include "host/module/skeleton.h"
#include "host/symbol/plt.h"
#include "safe/base/sort.h"

/* Bytes that are read at a time. */
#define WINDOW ((uint64_t)4 << 20)

/* Ranges of code that no symbol names, or points where one may begin. */
struct points {
	FATHOM_ARRAY_OF(uint64_t);
};

struct packing {
	struct fathom_module *m;
	const struct fathom_index *from;
	struct fathom_index_writer to;
	struct fathom_symbol_index *symbols;
	FATHOM_ARRAY_OF(struct fathom_index_nameless);
};

/* Blocks. */

/* A block and the segments that it answers for. */
struct group {
	uint64_t low; /* of the first segment */
	size_t first;
	size_t n;
};

static int compare_segments(const void *a, const void *b)
{
	const struct fathom_index_segment *x = a;
	const struct fathom_index_segment *y = b;

	return x->block != y->block ? u64_compare(x->block, y->block) : u64_compare(x->low, y->low);
}

static int compare_groups(const void *a, const void *b)
{
	return u64_compare(((const struct group *)a)->low, ((const struct group *)b)->low);
}

/* Groups the sorted @segments by block, and sorts the groups by address. */
static size_t group_segments(const struct fathom_index_segment *segments, size_t n,
			     struct group *groups)
{
	size_t n_groups = 0;

	for (size_t i = 0; i < n; i++) {
		if (i && segments[i].block == segments[i - 1].block)
			groups[n_groups - 1].n++;
		else
			groups[n_groups++] = (struct group){ segments[i].low, i, 1 };
	}
	qsort(groups, n_groups, sizeof *groups, compare_groups);
	return n_groups;
}

static fathom_err write_group(struct packing *p, const struct fathom_index_segment *segments,
			      const struct group *g, struct fathom_index_bound *bounds)
{
	struct fathom_block_view view;

	for (size_t i = 0; i < g->n; i++)
		bounds[i] = (struct fathom_index_bound){ segments[g->first + i].unit_off,
							 segments[g->first + i].low,
							 segments[g->first + i].high };
	if (!fathom_index_find_block(p->from, bounds[0].low, &view))
		return FATHOM_E_CORRUPT;
	if (view.block->bytes > FATHOM_INDEX_MAX_BLOCK)
		return FATHOM_E_LIMIT;
	fathom_index_writer_block(&p->to, &view, bounds[0].unit_off, bounds, g->n);
	return p->to.err;
}

/* Writes the blocks in the order of their addresses. */
static fathom_err write_blocks(struct packing *p)
{
	const size_t most = (size_t)p->from->header->segments.n + 1;
	struct fathom_index_segment *segments = malloc(most * sizeof *segments);
	struct fathom_index_bound *bounds = malloc(most * sizeof *bounds);
	struct group *groups = malloc(most * sizeof *groups);
	fathom_err err = segments && bounds && groups ? FATHOM_OK : FATHOM_E_MEMORY;
	size_t n_groups = 0;
	size_t n = 0;

	while (!err && fathom_index_segment(p->from, n, &segments[n]))
		n++;
	if (n) {
		qsort(segments, n, sizeof *segments, compare_segments);
		n_groups = group_segments(segments, n, groups);
	}
	for (size_t i = 0; i < n_groups && !err; i++) {
		err = write_group(p, segments, &groups[i], bounds);
		if (!err && i % 4096 == 0 &&
		    !fathom_goes_on(p->m->session, FATHOM_PHASE_STORE, i, n_groups))
			err = FATHOM_E_CANCELLED;
	}
	p->to.header.blocks.n = p->to.off - p->to.header.blocks.off;
	free(segments);
	free(bounds);
	free(groups);
	return err;
}

/* Symbols. */

static fathom_err write_symbols(struct packing *p)
{
	const struct fathom_index_header *h = p->from->header;
	struct fathom_index_header *to = &p->to.header;
	const size_t n = (size_t)h->symbols.n;
	struct fathom_index_symbol *symbols = malloc((n + 1) * sizeof *symbols);

	if (!symbols)
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; i < n; i++) {
		if (!fathom_index_symbol(p->from, i, &symbols[i])) {
			free(symbols);
			return FATHOM_E_CORRUPT;
		}
		symbols[i].name = fathom_index_writer_string(
			&p->to, fathom_index_string(p->from, symbols[i].name));
	}
	fathom_index_writer_part(&p->to, p->from->file.data + h->symbol_starts.off,
				 h->symbol_starts.n, sizeof(uint64_t), &to->symbol_starts);
	fathom_index_writer_part(&p->to, p->from->file.data + h->symbol_winners.off,
				 h->symbol_winners.n, sizeof(uint32_t), &to->symbol_winners);
	fathom_index_writer_part(&p->to, symbols, n, sizeof *symbols, &to->symbols);
	free(symbols);
	return p->to.err;
}

/* Code without symbols. */

static int compare_points(const void *a, const void *b)
{
	return u64_compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Collects where what names code may change in [@low, @high): at stubs, and at bounds of FDEs. */
static bool collect_points(const struct packing *p, uint64_t low, uint64_t high,
			   struct points *points)
{
	const struct fathom_symbol_set *set = &p->m->symbols;
	const struct fathom_bounds_list *all = set->bounds ? set->bounds->all(set->bounds) : NULL;
	struct fathom_symbol_hit hit;
	size_t i = all ? fathom_bounds_list_upto(all, low) : 0;
	bool done = fathom_array_push(points, low);

	for (i = i ? i - 1 : 0; all && done && i < all->n && all->ranges[i].key < high; i++) {
		const uint64_t start = all->ranges[i].key;
		const uint64_t end = all->ranges[i].value;

		if (start > low)
			done = fathom_array_push(points, start);
		if (done && end > low && end < high)
			done = fathom_array_push(points, end);
	}
	for (uint64_t at = low; done && at < high; at++) {
		if (!fathom_plt_holds(p->m->main, at)) {
			const uint32_t s = fathom_object_section_at(p->m->main, at);
			const uint64_t size = s ? p->m->main->sections[s].header.size : 0;

			/* To the next section, or byte by byte where there is none. */
			if (s && p->m->main->sections[s].base + size > at)
				at = p->m->main->sections[s].base + size - 1;
			continue;
		}
		if (!fathom_plt_at(set, p->symbols, at, &hit))
			continue;
		done = fathom_array_push(points, at) &&
		       fathom_array_push(points, hit.start + hit.size);
		at = hit.start + hit.size - 1;
	}
	return done;
}

/* Names the code at @low, up to @high, where nothing changes. */
static fathom_err add_nameless(struct packing *p, uint64_t low, uint64_t high)
{
	const struct fathom_symbol_set *set = &p->m->symbols;
	struct fathom_index_nameless *last = p->n ? &p->items[p->n - 1] : NULL;
	struct fathom_symbol_hit hit = { 0 };
	struct fathom_index_nameless found;

	if (!fathom_plt_at(set, p->symbols, low, &hit)) {
		hit = (struct fathom_symbol_hit){ 0 };
		if (!fathom_symbols_fde(set, low, &hit))
			return FATHOM_OK;
	}
	found = (struct fathom_index_nameless){
		.low = low,
		.high = high,
		.start = hit.start,
		.size = hit.size,
		.name = hit.source == FATHOM_SOURCE_PLT
				? fathom_index_writer_string(&p->to, hit.name)
				: 0,
		.source = hit.source,
	};
	if (last && last->high == low && last->start == found.start && last->size == found.size &&
	    last->source == found.source) {
		last->high = high;
		return FATHOM_OK;
	}
	return fathom_array_push(p, found) ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Names the code in [@low, @high), where no symbol is. */
static fathom_err name_gap(struct packing *p, uint64_t low, uint64_t high)
{
	struct points points = { 0 };
	fathom_err err = collect_points(p, low, high, &points) ? FATHOM_OK : FATHOM_E_MEMORY;

	if (!err)
		qsort(points.items, points.n, sizeof *points.items, compare_points);
	for (size_t i = 0; i < points.n && !err; i++) {
		const uint64_t next = i + 1 < points.n ? points.items[i + 1] : high;

		if (points.items[i] < high && next > points.items[i])
			err = add_nameless(p, points.items[i], next < high ? next : high);
	}
	fathom_array_free(&points);
	return err;
}

/* Names the code of [@low, @high), part of which may have symbols. */
static fathom_err name_code(struct packing *p, uint64_t low, uint64_t high)
{
	const struct fathom_index_header *h = p->from->header;
	const uint64_t *starts = (const void *)(p->from->file.data + h->symbol_starts.off);
	const uint32_t *winners = (const void *)(p->from->file.data + h->symbol_winners.off);
	const uint64_t n = h->symbol_starts.n;
	uint64_t i = FATHOM_BISECT(n, k, starts[k] <= low);
	uint64_t at = low;

	while (at < high) {
		const uint64_t next = i < n && starts[i] < high ? starts[i] : high;

		if (next > at && (!i || winners[i - 1] == FATHOM_NONE))
			FATHOM_TRY(name_gap(p, at, next));
		at = next;
		i++;
	}
	return FATHOM_OK;
}

/* Writes what names code that no symbol names. */
static fathom_err write_nameless(struct packing *p)
{
	const struct fathom_object *o = p->m->main;
	fathom_err err = FATHOM_OK;

	p->symbols = fathom_module_symbols(p->m, FATHOM_ALIAS_FATHOM);
	if (!p->symbols)
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; i < o->n_code && !err; i++)
		err = name_code(p, o->code[i].low, o->code[i].high);
	if (!err)
		fathom_index_writer_part(&p->to, p->items, p->n, sizeof *p->items,
					 &p->to.header.nameless);
	return err ? err : p->to.err;
}

/* All of it. */

static fathom_err write_index(struct packing *p, struct fathom_bytes *ret)
{
	const struct fathom_bytes id = p->m->main->build_id;
	struct fathom_index_header *h = &p->to.header;
	fathom_err err = fathom_index_writer_open(&p->to, NULL);

	p->to.has_no_checks = true;
	p->to.checks.n = 0;
	h->flags = FATHOM_INDEX_COMPLETE | FATHOM_INDEX_ALONE;
	h->build_id_size = (uint32_t)id.size;
	memcpy(h->build_id, id.data, (size_t)id.size);
	if (!err)
		err = write_blocks(p);
	if (!err)
		err = write_symbols(p);
	if (!err)
		err = write_nameless(p);
	if (err) {
		fathom_index_writer_abort(&p->to);
		return err;
	}
	return fathom_index_writer_close_memory(&p->to, ret);
}

static uint32_t level_of(const struct fathom_module *m)
{
	const struct fathom_image *image = &m->main->image;
	struct fathom_segment s;
	uint32_t level = m->debug || m->has_go_table ? FATHOM_INDEX_HAS_LINES : 0;
	uint8_t byte;

	for (uint32_t i = 0; i < m->symbols.n_tables; i++)
		if (m->symbols.table[i].view.source != FATHOM_SOURCE_DYNSYM)
			level |= FATHOM_INDEX_HAS_SYMTAB;
	for (uint32_t i = 0; i < image->phnum; i++)
		if (fathom_image_segment(image, i, &s) && s.type == PT_LOAD && (s.flags & PF_X) &&
		    s.filesz && fathom_object_read(m->main, s.vaddr, &byte, 1) == 1)
			level |= FATHOM_INDEX_HAS_FILE;
	return image->phnum ? level : level | FATHOM_INDEX_HAS_FILE;
}

/* Sums up all bytes of @f. */
static uint64_t check_file(const struct fathom_file *f)
{
	uint64_t sums[2] = { 0 };

	for (uint64_t off = 0; off < f->bytes.size; off += WINDOW) {
		const uint64_t left = f->bytes.size - off;
		const struct fathom_bytes window =
			bytes_slice(f->bytes, off, left < WINDOW ? left : WINDOW);

		fathom_file_will_read(f, window);
		sums[1] = fathom_index_check(window.data, (size_t)window.size);
		sums[0] = fathom_index_check(sums, sizeof sums);
		fathom_file_give_back(f, window);
	}
	return sums[0];
}

/* Returns the bytes of section @s of @o when it is decompressed. */
static uint64_t plain_size(const struct fathom_object *o, const struct fathom_section *s)
{
	const struct fathom_bytes bytes = fathom_image_section_bytes(&o->image, s);

	if (s->flags & SHF_COMPRESSED && o->image.is64 && bytes.size >= sizeof(Elf64_Chdr))
		return load_u64(bytes.data + offsetof(Elf64_Chdr, ch_size), o->image.swap);
	if (s->flags & SHF_COMPRESSED && !o->image.is64 && bytes.size >= sizeof(Elf32_Chdr))
		return load_u32(bytes.data + offsetof(Elf32_Chdr, ch_size), o->image.swap);
	return s->size;
}

/* Returns the bytes of the sections of @o with debug information. */
static uint64_t debug_bytes(const struct fathom_object *o)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;

		if (s->name.data && s->type != SHT_NOBITS &&
		    (str_starts(s->name, ".debug_") || str_starts(s->name, ".zdebug_")))
			sum += plain_size(o, s);
	}
	return sum;
}

static fathom_err fail_incomplete(const struct fathom_module *m, const char *why,
				  struct fathom_errinfo *reterr)
{
	(void)fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, why);
	fathom_errinfo_set_file(reterr, m->main->file->path);
	return FATHOM_E_UNSUPPORTED;
}

static fathom_err pack(struct fathom_module *m, const struct fathom_index *from,
		       struct fathom_alone *ret)
{
	const struct fathom_object *debug = m->debug ? m->debug : m->main;
	struct packing p = { .m = m, .from = from };
	fathom_err err = write_index(&p, &ret->index);

	fathom_array_free(&p);
	FATHOM_TRY(err);
	FATHOM_TRY(fathom_skeleton_make(m->main, &ret->skeleton));
	ret->level = level_of(m);
	ret->debug_size = debug->file->bytes.size;
	ret->debug_check = check_file(debug->file);
	ret->debug_info_size = debug_bytes(debug);
	return FATHOM_OK;
}

fathom_err fathom_alone_make(struct fathom_module *m, struct fathom_alone *ret,
			     struct fathom_errinfo *reterr)
{
	const uint64_t id_size = m->main->build_id.size;
	struct fathom_alone a = { .level = 0 };
	struct fathom_cache_file *c;
	fathom_err err;

	if (!id_size || id_size > sizeof c->index.header->build_id)
		return fail_incomplete(m, "it has no build-id, by which a store finds indexes",
				       reterr);
	err = fathom_cache_take_all(m, &c);
	if (err)
		return fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	if (c->index.header->flags & FATHOM_INDEX_COMPLETE)
		err = pack(m, &c->index, &a);
	else
		err = FATHOM_E_UNSUPPORTED;
	fathom_cache_file_close(c);
	if (err == FATHOM_E_UNSUPPORTED)
		(void)fail_incomplete(m, "parts of its debug information cannot be decoded",
				      reterr);
	else if (err)
		(void)fathom_fail(reterr, err, "", 0, fathom_err_name(err));
	else
		err = fathom_module_check_files(m, reterr);
	if (err)
		fathom_alone_deinit(&a);
	else
		*ret = a;
	return err;
}

void fathom_alone_deinit(struct fathom_alone *a)
{
	free((void *)(uintptr_t)a->index.data);
	free((void *)(uintptr_t)a->skeleton.data);
	*a = (struct fathom_alone){ .level = 0 };
}
