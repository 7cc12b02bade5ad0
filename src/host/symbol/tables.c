/* SPDX-License-Identifier: MIT */
#include "host/symbol/tables.h"

#include "host/symbol/code_end.h"
#include "safe/base/cursor.h"
#include "safe/base/text.h"

/* The most symbols that a hash table's count is believed for. */
#define MAX_DYNAMIC_SYMBOLS (1u << 26)

/* Returns the number of symbols that DT_GNU_HASH reaches, by the end of its last chain. */
static uint64_t gnu_hash_count(const struct fathom_object *o, uint64_t svma)
{
	struct fathom_cursor c = cur_init(fathom_image_loaded_from(&o->image, svma), o->image.swap);
	const uint32_t n_buckets = cur_u32(&c);
	const uint32_t first = cur_u32(&c);
	const uint32_t bloom = cur_u32(&c);
	uint32_t last = 0;

	cur_skip(&c, 4);
	cur_skip(&c, (uint64_t)bloom * fathom_image_address_size(&o->image));
	for (uint32_t i = 0; i < n_buckets && cur_ok(&c); i++) {
		const uint32_t bucket = cur_u32(&c);

		last = bucket > last ? bucket : last;
	}
	if (last < first)
		return first;
	cur_skip(&c, (uint64_t)(last - first) * 4);
	while (cur_ok(&c) && last < MAX_DYNAMIC_SYMBOLS) {
		last++;
		if (cur_u32(&c) & 1)
			break;
	}
	return cur_ok(&c) ? last : 0;
}

/* Returns the number of symbols of a table that only DT_ entries describe. */
static uint64_t dynamic_count(const struct fathom_object *o, const struct fathom_dynamic *d)
{
	const bool wide =
		o->image.is64 && (o->image.machine == EM_S390 || o->image.machine == EM_ALPHA);
	const uint8_t word = wide ? 8 : 4; /* of DT_HASH; on wide machines not the gABI's */
	struct fathom_cursor c;
	uint64_t count;

	if (d->hash) {
		c = cur_init(fathom_image_loaded_bytes(&o->image, d->hash, 2 * (uint64_t)word),
			     o->image.swap);
		cur_skip(&c, word);
		count = cur_uint(&c, word);
		if (cur_ok(&c) && count)
			return count;
	}
	if (d->gnu_hash) {
		count = gnu_hash_count(o, d->gnu_hash);
		if (count)
			return count;
	}
	/* Every linker puts the names right after the symbols. */
	return d->strtab > d->symtab && d->syment ? (d->strtab - d->symtab) / d->syment : 0;
}

static void add_table(struct fathom_symbol_set *set, const struct fathom_object *o,
		      struct fathom_symtab view, enum fathom_source source)
{
	if (!view.count || set->n_tables == FATHOM_MAX_SYMTABS)
		return;
	view.source = (uint8_t)source;
	set->file[set->n_tables] = o->file;
	set->table[set->n_tables++] =
		(struct fathom_symbol_table){ view, o, set->opd.object ? &set->opd : NULL };
}

void fathom_symbol_set_init(struct fathom_symbol_set *set, struct fathom_object *main,
			    struct fathom_bounds *bounds)
{
	const uint32_t i = main->image.machine == EM_PPC64 ? fathom_object_find(main, ".opd") : 0;

	set->main = main;
	set->bounds = bounds;
	if (!i)
		return;
	set->opd.svma = main->sections[i].base;
	set->opd.object = main;
	/* Without its bytes, functions have no names rather than their descriptors'. */
	if (fathom_object_load(main, i, &set->opd.bytes, NULL))
		set->opd.bytes = (struct fathom_bytes){ NULL, 0 };
}

static void add_dynamic(struct fathom_symbol_set *set, const struct fathom_object *o)
{
	const uint64_t entsize = o->image.is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct fathom_bytes entries;
	struct fathom_dynamic d;
	uint64_t size;

	if (!fathom_object_dynamic(o, &d) ||
	    __builtin_mul_overflow(dynamic_count(o, &d), entsize, &size))
		return;
	entries = fathom_image_loaded_from(&o->image, d.symtab);
	entries.size = size < entries.size ? size : entries.size;
	add_table(set, o,
		  fathom_symtab_init(&o->image, entries, entsize,
				     fathom_image_loaded_bytes(&o->image, d.strtab, d.strsz),
				     (struct fathom_bytes){ NULL, 0 }),
		  FATHOM_SOURCE_DYNSYM);
}

void fathom_symbol_set_add(struct fathom_symbol_set *set, const struct fathom_object *o,
			   enum fathom_source symtab_source)
{
	const uint32_t symtab = fathom_object_find_type(o, SHT_SYMTAB);
	const uint32_t dynsym = fathom_object_find_type(o, SHT_DYNSYM);

	if (symtab)
		add_table(set, o, fathom_object_symtab(o, symtab), symtab_source);
	if (dynsym && o->sections[dynsym].header.size)
		add_table(set, o, fathom_object_symtab(o, dynsym), FATHOM_SOURCE_DYNSYM);
	else if (!dynsym)
		add_dynamic(set, o);
}

void fathom_symbol_set_source(struct fathom_symbol_set *set, enum fathom_source source)
{
	for (uint32_t t = 0; t < set->n_tables; t++)
		set->table[t].view.source = (uint8_t)source;
}

/* Finds the region of symbols in section @section of @o; returns false if it is not loaded. */
static bool region_of_section(const struct fathom_object *o, uint32_t section,
			      struct fathom_symbol_region *ret)
{
	const struct fathom_object_section *s;

	if (section >= o->n_sections)
		return false;
	s = &o->sections[section];
	if (!(s->header.flags & SHF_ALLOC) || (s->header.flags & SHF_TLS))
		return false;
	ret->low = s->base;
	if (__builtin_add_overflow(s->base, s->header.size, &ret->high))
		return false;
	ret->code = (s->header.flags & SHF_EXECINSTR) != 0;
	return true;
}

/* Finds the segment around @svma, for files without section headers. */
static bool region_of_segment(const struct fathom_object *o, uint64_t svma,
			      struct fathom_symbol_region *ret)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < o->image.phnum; i++) {
		if (!fathom_image_segment(&o->image, i, &s) || s.type != PT_LOAD ||
		    svma < s.vaddr || svma - s.vaddr >= s.memsz)
			continue;
		*ret = (struct fathom_symbol_region){ s.vaddr, s.vaddr + s.memsz,
						      (s.flags & PF_X) != 0 };
		return ret->high > ret->low;
	}
	return false;
}

/* Follows the descriptor at @svma to its code; returns false if it is no descriptor. */
static bool follow_descriptor(const struct fathom_opd *opd, uint64_t *svma,
			      struct fathom_symbol_region *ret)
{
	const struct fathom_bytes word = bytes_slice(opd->bytes, *svma - opd->svma, 8);
	const struct fathom_range *code;

	if (*svma < opd->svma || !word.size)
		return false;
	*svma = load_u64(word.data, opd->object->image.swap);
	code = fathom_object_code_at(opd->object, *svma);
	if (!code)
		return false;
	*ret = (struct fathom_symbol_region){ code->low, code->high, true };
	return true;
}

bool fathom_symbol_follow(const struct fathom_symbol_table *t, uint64_t svma, uint64_t *ret_svma,
			  struct fathom_symbol_region *ret_region)
{
	if (!t->opd || !follow_descriptor(t->opd, &svma, ret_region))
		return false;
	*ret_svma = svma;
	return true;
}

bool fathom_symbol_place(const struct fathom_symbol_table *t, const struct fathom_symbol *s,
			 uint64_t *ret_svma, struct fathom_symbol_region *ret_region)
{
	const struct fathom_object *o = t->object;

	*ret_svma = s->value;
	if (!o->n_sections)
		return region_of_segment(o, s->value, ret_region);
	if (!region_of_section(o, s->section, ret_region))
		return false;
	if (o->image.type == ET_REL)
		*ret_svma += ret_region->low;
	if (t->opd && s->type == STT_FUNC && !ret_region->code)
		return follow_descriptor(t->opd, ret_svma, ret_region);
	/* The section is cut: its end is not known. */
	if (!s->size && *ret_svma < ret_region->high && fathom_object_is_cut(o, s->section))
		ret_region->high = *ret_svma + 1;
	return *ret_svma >= ret_region->low && *ret_svma < ret_region->high;
}

bool fathom_symbol_contend(const struct fathom_symbol_set *set, uint8_t table,
			   const struct fathom_symbol *s, uint64_t svma,
			   struct fathom_placed_contender *ret)
{
	const struct fathom_symtab *t = &set->table[table].view;
	struct fathom_str name = fathom_symtab_name(t, s);
	struct fathom_str version;

	/* The end of the name may be missing, which only its first bytes do not show. */
	*ret = (struct fathom_placed_contender){ .c = { *s, { "", 0 }, false },
						 .svma = svma,
						 .table = table };
	if (!fathom_symbol_is_namable(t, s, name))
		return false;
	name = fathom_symtab_base_name(t, name, &version);
	ret->c.name = name;
	ret->c.default_version = !version.data || str_starts(version, "@@");
	return true;
}

/* Finds the machine whose code is followed; returns false if it is another one. */
static bool code_machine(const struct fathom_image *image, enum fathom_code_machine *ret)
{
	switch (image->machine) {
	case EM_X86_64:
		*ret = FATHOM_CODE_X86_64;
		return true;
	case EM_386:
		*ret = FATHOM_CODE_I386;
		return true;
	case EM_AARCH64:
		*ret = FATHOM_CODE_AARCH64;
		return true;
	default:
		return false;
	}
}

/*
 * Finds the code of @o from @svma to @end, or less, without relocations: what they lead to is not
 * followed. No code is compressed (gABI, SHF_COMPRESSED). Returns false if it is in another file: a
 * debug file does not have it.
 */
static bool code_bytes(struct fathom_object *o, uint64_t svma, uint64_t end,
		       struct fathom_bytes *ret)
{
	const uint32_t i = o->n_sections ? fathom_object_section_at(o, svma) : 0;
	const struct fathom_object_section *s = i ? &o->sections[i] : NULL;

	*ret = (struct fathom_bytes){ NULL, 0 };
	if (s && s->header.type == SHT_NOBITS)
		return false;
	if (!o->n_sections)
		*ret = fathom_image_loaded_from(&o->image, svma);
	else if (s && !(s->header.flags & SHF_COMPRESSED))
		*ret = bytes_from(fathom_image_section_bytes(&o->image, &s->header),
				  svma - s->base);
	ret->size = ret->size < end - svma ? ret->size : end - svma;
	return true;
}

uint64_t fathom_symbols_code_end(const struct fathom_symbol_set *set, uint64_t svma, uint64_t limit)
{
	enum fathom_code_machine machine;
	struct fathom_bytes code;
	uint64_t size;

	if (svma >= limit || !code_machine(&set->main->image, &machine))
		return limit;
	if (!code_bytes(set->main, svma, limit, &code))
		return limit;
	size = fathom_code_size(machine, code, svma, set->main->image.type == ET_REL);
	return svma + (size ? size : 1);
}

/* Returns the first start of a symbol after @svma, or UINT64_MAX. */
static uint64_t next_start(const struct fathom_symbol_set *set, uint64_t svma)
{
	struct fathom_symbol_region region;
	struct fathom_placed_contender k;
	uint64_t next = UINT64_MAX;
	struct fathom_symbol s;
	uint64_t start;

	for (uint8_t t = 0; t < set->n_tables; t++) {
		for (uint32_t i = 0; i < set->table[t].view.count; i++) {
			fathom_symtab_get(&set->table[t].view, i, &s);
			if (fathom_symbol_place(&set->table[t], &s, &start, &region) &&
			    start > svma && start < next &&
			    fathom_symbol_contend(set, t, &s, start, &k))
				next = start;
		}
	}
	return next;
}

/*
 * Returns the end of what a sizeless symbol at @svma may name: that of its FDE, else the start of
 * the next FDE, which is another function's, or where its code ends; never beyond @limit.
 */
static uint64_t sizeless_end(const struct fathom_symbol_set *set, uint64_t svma, uint64_t limit)
{
	const struct fathom_bounds_list *all;
	struct fathom_symbol_hit fde;
	uint64_t end;

	if (fathom_symbols_fde(set, svma, &fde)) {
		end = fde.start + fde.size;
		return end < limit ? end : limit;
	}
	all = set->bounds ? set->bounds->all(set->bounds) : NULL;
	end = all ? fathom_bounds_list_end(all, svma) : UINT64_MAX;
	limit = end < limit ? end : limit;
	end = next_start(set, svma);
	return fathom_symbols_code_end(set, svma, end < limit ? end : limit);
}

void fathom_symbol_hit_from(const struct fathom_placed_contender *k,
			    const struct fathom_symbol_set *set, struct fathom_symbol_hit *ret)
{
	*ret = (struct fathom_symbol_hit){
		.start = k->svma,
		.size = k->c.symbol.size,
		.name = k->c.name,
		.source = set->table[k->table].view.source,
	};
}

/* Result of a pass over the tables for one address. */
struct scan {
	uint64_t svma;
	const struct fathom_block_view *view; /* or NULL */
	struct fathom_placed_contender covering;
	struct fathom_placed_contender sizeless;
	uint64_t nearest; /* the last start at or before svma, of any symbol */
	uint64_t ended;   /* the last end at or before svma, of a sized one */
	bool has_covering;
	bool has_sizeless;
	bool shared; /* a symbol of another name starts there and covers svma, too */
	bool has_nearest;
	struct fathom_symbol_region region; /* of sizeless */
};

/* Returns whether @a is preferred to @b, which starts at the same address. */
static bool is_preferred(const struct scan *scan, const struct fathom_placed_contender *a,
			 const struct fathom_placed_contender *b)
{
	if (scan->view && scan->view->block->low == a->svma) {
		const bool fits = fathom_spelling_fits(scan->view, a->c.name);

		if (fits != fathom_spelling_fits(scan->view, b->c.name))
			return fits;
	}
	return fathom_symbol_preferred(&a->c, &b->c);
}

static void scan_symbol(struct scan *scan, const struct fathom_symbol_set *set, uint8_t table,
			const struct fathom_symbol *s)
{
	const bool sized = s->size != 0;
	struct fathom_placed_contender k;
	struct fathom_symbol_region region;
	uint64_t svma;
	bool better;

	if (!fathom_symbol_place(&set->table[table], s, &svma, &region) || svma > scan->svma ||
	    scan->svma >= region.high)
		return;
	if (!fathom_symbol_contend(set, table, s, svma, &k))
		return;
	if (!scan->has_nearest || svma > scan->nearest) {
		scan->nearest = svma;
		scan->has_nearest = true;
	}
	if (sized && scan->svma - svma < s->size) {
		if (!scan->has_covering || svma > scan->covering.svma)
			scan->shared = false;
		else if (svma == scan->covering.svma)
			scan->shared |= !str_equal(k.c.name, scan->covering.c.name);
		better = !scan->has_covering || svma > scan->covering.svma ||
			 (svma == scan->covering.svma && is_preferred(scan, &k, &scan->covering));
		scan->covering = better ? k : scan->covering;
		scan->has_covering = true;
	} else if (sized) {
		scan->ended = svma + s->size > scan->ended ? svma + s->size : scan->ended;
	} else {
		better = !scan->has_sizeless || svma > scan->sizeless.svma ||
			 (svma == scan->sizeless.svma && is_preferred(scan, &k, &scan->sizeless));
		scan->sizeless = better ? k : scan->sizeless;
		scan->region = better ? region : scan->region;
		scan->has_sizeless = true;
	}
}

/* Returns whether a symbol that starts at its value can change what @scan has found. */
static bool scan_may_win(const struct scan *scan, const struct fathom_symbol *s)
{
	if (s->value > scan->svma)
		return false;
	if (s->size && scan->svma - s->value < s->size)
		return !scan->has_covering || s->value >= scan->covering.svma;
	return !scan->has_nearest || s->value >= scan->nearest ||
	       s->value + s->size > scan->nearest;
}

/* Returns whether the values of the table's symbols are their addresses. */
static bool has_addresses(const struct fathom_symbol_table *t)
{
	return t->object->image.type != ET_REL && !t->opd;
}

/* Looks for symbols that cover the address: nearly always there is one. */
static void scan_covering(struct scan *scan, const struct fathom_symbol_set *set, uint8_t table)
{
	const struct fathom_symtab *view = &set->table[table].view;
	struct fathom_symbol s;

	for (uint32_t i = fathom_symtab_covering(view, 0, scan->svma); i < view->count;
	     i = fathom_symtab_covering(view, i + 1, scan->svma)) {
		fathom_symtab_get(view, i, &s);
		if (!scan->has_covering || s.value >= scan->covering.svma)
			scan_symbol(scan, set, table, &s);
	}
}

/* Looks at all symbols. */
static void scan_all(struct scan *scan, const struct fathom_symbol_set *set, uint8_t table)
{
	const struct fathom_symtab *view = &set->table[table].view;
	const bool addresses = has_addresses(&set->table[table]);
	struct fathom_symbol s;

	for (uint32_t i = 0; i < view->count; i++) {
		fathom_symtab_get(view, i, &s);
		/* Nearly all symbols end here. */
		if (!addresses || scan_may_win(scan, &s))
			scan_symbol(scan, set, table, &s);
	}
}

bool fathom_symbols_scan(const struct fathom_symbol_set *set, uint64_t svma,
			 const struct fathom_block_view *view, struct fathom_symbol_hit *ret)
{
	struct scan scan = { .svma = svma, .view = view };

	for (uint8_t t = 0; t < set->n_tables; t++) {
		/* A few large requests to the disk instead of one for each page. */
		fathom_file_will_read(set->file[t], set->table[t].view.entries);
		if (has_addresses(&set->table[t]))
			scan_covering(&scan, set, t);
		else
			scan_all(&scan, set, t);
	}
	if (!scan.has_covering) {
		scan = (struct scan){ .svma = svma, .view = view };
		for (uint8_t t = 0; t < set->n_tables; t++)
			scan_all(&scan, set, t);
	}
	if (scan.has_covering) {
		fathom_symbol_hit_from(&scan.covering, set, ret);
		ret->shared = scan.shared;
		return true;
	}
	/* No symbol starts after the nearest: a sized one that ended after it covers it. */
	if (!scan.has_sizeless || scan.sizeless.svma != scan.nearest || scan.ended > scan.nearest)
		return false;
	if (scan.region.code && svma != scan.sizeless.svma &&
	    svma >= sizeless_end(set, scan.sizeless.svma, scan.region.high))
		return false;
	fathom_symbol_hit_from(&scan.sizeless, set, ret);
	return true;
}

struct fathom_str fathom_symbol_bounds(const struct fathom_symbol_hit *hit,
				       char buf[FATHOM_BOUNDS_NAME])
{
	struct fathom_text t = text_init(buf, FATHOM_BOUNDS_NAME);

	fathom_text_cstr(&t, "func@[");
	fathom_text_hex(&t, hit->start);
	fathom_text_cstr(&t, "..");
	fathom_text_hex(&t, hit->start + hit->size);
	fathom_text_char(&t, ']');
	return (struct fathom_str){ buf, (uint32_t)t.len };
}

bool fathom_symbols_fde(const struct fathom_symbol_set *set, uint64_t svma,
			struct fathom_symbol_hit *ret)
{
	struct fathom_range range;

	if (!set->bounds || !set->bounds->at(set->bounds, svma, &range))
		return false;
	*ret = (struct fathom_symbol_hit){ .start = range.low,
					   .size = range.high - range.low,
					   .source = FATHOM_SOURCE_FDE };
	return true;
}
