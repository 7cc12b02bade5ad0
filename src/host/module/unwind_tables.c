/* SPDX-License-Identifier: MIT */
#include "host/module/unwind_tables.h"

#include <stdlib.h>

#include "host/base/array.h"
#include "safe/base/limits.h"

struct sections {
	FATHOM_ARRAY_OF(struct fathom_unwind_section);
};

/* Finding the sections ----------------------------------------------------------------------- */

/* Returns whether @s is .eh_frame (@eh) or .debug_frame and has entries. */
static bool has_entries(const struct fathom_object_section *s, bool eh)
{
	if (!s->header.name.data || s->header.type == SHT_NOBITS)
		return false;
	if (eh) /* a terminator alone is no entry */
		return s->header.size > sizeof(uint32_t) && str_is(s->header.name, ".eh_frame");
	return s->header.size &&
	       (str_is(s->header.name, ".debug_frame") || str_is(s->header.name, ".zdebug_frame"));
}

/* Returns what all sections of one kind in @o have in common. */
static struct fathom_cfi describe(const struct fathom_object *o, bool eh)
{
	const uint32_t text = fathom_object_find(o, ".text");
	const uint32_t got = fathom_object_find(o, ".got");

	return (struct fathom_cfi){
		.text_svma = text ? o->sections[text].base : 0,
		.data_svma = got ? o->sections[got].base : 0,
		.address_size = fathom_image_address_size(&o->image),
		.is_eh = eh,
		.swap = o->image.swap,
	};
}

static bool add_section(struct fathom_unwind_tables *u, struct sections *a,
			struct fathom_unwind_section s, uint64_t size)
{
	if (!fathom_array_room(a, 1))
		return false;
	u->sections = a->items;
	u->sections[a->n++] = s;
	u->n_sections = (uint32_t)a->n;
	u->bytes += size;
	return true;
}

/* Adds the sections of one kind in @o. The first kind that a module has bounds functions. */
static bool add_sections(struct fathom_unwind_tables *u, struct sections *a,
			 struct fathom_object *o, bool eh)
{
	const uint32_t before = u->n_sections;
	struct fathom_unwind_section s = { .object = o };
	uint32_t header;

	for (uint32_t i = 1; i < o->n_sections; i++) {
		if (!has_entries(&o->sections[i], eh))
			continue;
		if (u->n_sections == before)
			s.cfi = describe(o, eh);
		s.number = i;
		s.cfi.svma = o->sections[i].base;
		if (!add_section(u, a, s, o->sections[i].header.size))
			return false;
	}
	if (before)
		return true;
	u->n_bounding = u->n_sections;
	/* The table of one of several sections lacks the FDEs of the others. */
	header = eh && u->n_sections == 1 ? fathom_object_find(o, ".eh_frame_hdr") : 0;
	if (header) {
		u->header = fathom_image_section_bytes(&o->image, &o->sections[header].header);
		u->header_svma = o->sections[header].base;
	}
	return true;
}

/* Without section headers: PT_GNU_EH_FRAME leads to .eh_frame_hdr, and that to .eh_frame. */
static bool add_segment(struct fathom_unwind_tables *u, struct sections *a, struct fathom_object *o)
{
	struct fathom_unwind_section found = { .object = o };
	struct fathom_segment s;
	struct fathom_bytes header;

	for (uint32_t i = 0; i < o->image.phnum; i++) {
		if (!fathom_image_segment(&o->image, i, &s) || s.type != PT_GNU_EH_FRAME)
			continue;
		header = fathom_image_loaded_bytes(&o->image, s.vaddr, s.filesz);
		found.cfi = describe(o, true);
		if (fathom_cfi_section(&found.cfi, header, s.vaddr, &found.cfi.svma))
			return true;
		found.cfi.section = fathom_image_loaded_from(&o->image, found.cfi.svma);
		found.cfi.is_open = true;
		if (!found.cfi.section.size)
			return true;
		u->header = header;
		u->header_svma = s.vaddr;
		u->n_bounding = 1;
		return add_section(u, a, found, found.cfi.section.size);
	}
	return true;
}

struct fathom_cfi fathom_unwind_tables_section(const struct fathom_unwind_tables *u, uint32_t i)
{
	const struct fathom_unwind_section *s = &u->sections[i];
	struct fathom_cfi cfi = s->cfi;

	if (s->number)
		(void)fathom_object_load(s->object, s->number, &cfi.section, NULL);
	return cfi;
}

/* CIEs --------------------------------------------------------------------------------------- */

struct kept_cie {
	struct fathom_cie cie;
	struct kept_cie *next; /* of the same slot */
	uint32_t section;
};

/* A hash table of CIEs that never grows: one slot per BYTES_PER_SLOT bytes of the sections. */
#define BYTES_PER_SLOT 4096
#define LEAST_SLOTS    16
#define MOST_SLOTS     (1u << 14)

struct fathom_cie_table {
	uint32_t n; /* a power of 2 */
	_Atomic(struct kept_cie *) slot[];
};

static size_t cie_table_size(uint32_t n)
{
	return sizeof(struct fathom_cie_table) + n * sizeof(struct kept_cie *);
}

/* Returns the table of CIEs, made on first use; NULL if it does not fit memory. */
static struct fathom_cie_table *cie_table(struct fathom_unwind_tables *u)
{
	struct fathom_cie_table *t = atomic_load_explicit(&u->cies, memory_order_acquire);
	struct fathom_cie_table *expected = NULL;
	uint32_t n = LEAST_SLOTS;

	if (t)
		return t;
	while (n < MOST_SLOTS && n < u->bytes / BYTES_PER_SLOT)
		n *= 2;
	t = fathom_memory_fits(u->memory, cie_table_size(n))
		    ? fathom_memory_alloc(u->memory, cie_table_size(n))
		    : NULL;
	if (!t)
		return NULL;
	t->n = n;
	if (!atomic_compare_exchange_strong(&u->cies, &expected, t)) {
		fathom_memory_free(u->memory, t, cie_table_size(n));
		t = expected;
	}
	return t;
}

static void destroy_cies(struct fathom_memory *m, struct fathom_cie_table *t)
{
	struct kept_cie *next;

	if (!t)
		return;
	for (uint32_t i = 0; i < t->n; i++)
		for (struct kept_cie *k = atomic_load(&t->slot[i]); k; k = next) {
			next = k->next;
			fathom_memory_free(m, k, sizeof *k);
		}
	fathom_memory_free(m, t, cie_table_size(t->n));
}

static _Atomic(struct kept_cie *) *cie_slot(struct fathom_cie_table *t, uint32_t section,
					    uint64_t off)
{
	/* Entries start at multiples of 4, and CIEs are often equally far apart. */
	const uint64_t hash = (off / 4 + section) * UINT64_C(0x9e3779b97f4a7c15);

	return &t->slot[(hash >> 32) & (t->n - 1)];
}

static const struct fathom_cie *find_kept(const struct kept_cie *k, uint32_t section, uint64_t off)
{
	for (; k; k = k->next)
		if (k->cie.off == off && k->section == section)
			return &k->cie;
	return NULL;
}

/* Keeps @cie, or returns the one that another thread has kept; NULL if it does not fit memory. */
static const struct fathom_cie *keep_cie(struct fathom_unwind_tables *u,
					 _Atomic(struct kept_cie *) *slot, uint32_t section,
					 const struct fathom_cie *cie)
{
	const struct fathom_cie *same;
	struct kept_cie *k;

	k = fathom_memory_fits(u->memory, sizeof *k) ? fathom_memory_alloc(u->memory, sizeof *k)
						     : NULL;
	if (!k)
		return NULL;
	k->cie = *cie;
	k->section = section;
	k->next = atomic_load_explicit(slot, memory_order_acquire);
	do {
		same = find_kept(k->next, section, cie->off);
		if (same) {
			fathom_memory_free(u->memory, k, sizeof *k);
			return same;
		}
	} while (!atomic_compare_exchange_weak(slot, &k->next, k));
	return &k->cie;
}

/*
 * Reads the CIE at @off of @cfi, which is section number @section, or returns the one that was
 * kept. If it cannot be kept, puts it into @room; without @room, returns FATHOM_E_LIMIT.
 */
static fathom_err cie_at(struct fathom_unwind_tables *u, const struct fathom_cfi *cfi,
			 uint32_t section, uint64_t off, struct fathom_cie *room,
			 const struct fathom_cie **ret)
{
	struct fathom_cie_table *t = cie_table(u);
	_Atomic(struct kept_cie *) *slot = t ? cie_slot(t, section, off) : NULL;
	struct fathom_cie cie;

	*ret = slot ? find_kept(atomic_load_explicit(slot, memory_order_acquire), section, off)
		    : NULL;
	if (*ret)
		return FATHOM_OK;
	FATHOM_TRY(fathom_cie_read(cfi, off, &cie));
	*ret = slot ? keep_cie(u, slot, section, &cie) : NULL;
	if (!*ret && room) {
		*room = cie;
		*ret = room;
	}
	return *ret ? FATHOM_OK : FATHOM_E_LIMIT;
}

/* The index of all FDEs ---------------------------------------------------------------------- */

/* FDEs that have code, sorted by its address. */
struct fathom_fde_index {
	struct fathom_bounds_list list;
	uint32_t *off;     /* of each FDE in its section */
	uint32_t *section; /* number of its section; NULL: all in the first */
	uint32_t *outer; /* the last one before it that ends after it, or NONE; NULL: no overlaps */
	uint64_t bytes;
};

#define NONE UINT32_MAX

/* An FDE before sorting. */
struct found_fde {
	uint64_t high;
	uint32_t off;
	uint32_t section;
};

struct found_fdes {
	FATHOM_ARRAY_OF(struct found_fde);
};

struct collection {
	struct fathom_unwind_tables *u;
	struct fathom_keyed_array keyed; /* first address, and index in found */
	struct found_fdes found;
};

static bool add_found(struct collection *c, const struct fathom_fde *fde, uint32_t section)
{
	if (!fathom_array_room(&c->keyed, 1) || !fathom_array_room(&c->found, 1))
		return false;
	c->keyed.items[c->keyed.n++] = (struct fathom_keyed){ fde->low, c->found.n };
	c->found.items[c->found.n++] = (struct found_fde){ fde->high, (uint32_t)fde->off, section };
	return true;
}

/* Returns whether @fde, of section @s, describes code that is in the module. */
static bool has_code(const struct fathom_unwind_section *s, const struct fathom_fde *fde)
{
	return fde->low < fde->high &&
	       (s->cfi.is_eh || fathom_object_has_code(s->object, fde->low));
}

/* Collects the FDEs of section @i up to the first damage; returns false if out of memory. */
static bool collect_section(struct collection *c, uint32_t i)
{
	const struct fathom_cfi cfi = fathom_unwind_tables_section(c->u, i);
	const struct fathom_cie *cie = NULL;
	struct fathom_cfi_reader r;
	struct fathom_cfi_entry e;
	struct fathom_cie room;
	struct fathom_fde fde;
	uint64_t unsupported = UINT64_MAX;
	fathom_err err;

	fathom_cfi_reader_init(&r, &cfi);
	while (fathom_cfi_next(&r, &e, NULL) == FATHOM_OK && e.off <= UINT32_MAX) {
		if (e.is_cie || e.cie_off == unsupported)
			continue;
		if (!cie || cie->off != e.cie_off) {
			err = cie_at(c->u, &cfi, i, e.cie_off, &room, &cie);
			if (err == FATHOM_E_UNSUPPORTED) {
				unsupported = e.cie_off;
				cie = NULL;
				continue;
			}
			if (err)
				break;
		}
		if (fathom_fde_read(&e, cie, &fde))
			break;
		if (has_code(&c->u->sections[i], &fde) && !add_found(c, &fde, i))
			return false;
	}
	return true;
}

/* Sorts what was found into @x, whose ranges are made of c->keyed. */
static bool sort_found(struct collection *c, bool one_section, struct fathom_fde_index *x)
{
	const struct found_fde *found = c->found.items;
	const size_t n = c->keyed.n;
	struct fathom_keyed *ranges;

	/* The second half is scratch of the sort. */
	if (n >= NONE || !fathom_array_room(&c->keyed, n))
		return false;
	x->list.ranges = ranges = c->keyed.items;
	x->list.n = n;
	c->keyed = (struct fathom_keyed_array){ NULL, 0, 0 };
	x->off = malloc((n + 1) * sizeof *x->off);
	x->section = one_section ? NULL : malloc((n + 1) * sizeof *x->section);
	if (!x->off || (!one_section && !x->section))
		return false;
	fathom_sort_keyed(ranges, ranges + n, n);
	for (size_t i = 0; i < n; i++) {
		const struct found_fde *f = &found[ranges[i].value];

		ranges[i].value = f->high;
		x->off[i] = f->off;
		if (x->section)
			x->section[i] = f->section;
	}
	ranges = realloc(ranges, (n + 1) * sizeof *ranges);
	x->list.ranges = ranges ? ranges : x->list.ranges;
	x->bytes = n * (sizeof *ranges + sizeof *x->off + (x->section ? sizeof *x->section : 0));
	return true;
}

static bool overlap(const struct fathom_bounds_list *l)
{
	for (size_t i = 1; i < l->n; i++)
		if (l->ranges[i - 1].value > l->ranges[i].key)
			return true;
	return false;
}

/* Links each FDE to the last one before it that ends after it; returns false if out of memory. */
static bool link_overlaps(struct fathom_fde_index *x)
{
	const struct fathom_bounds_list *l = &x->list;
	uint32_t j;

	if (!overlap(l))
		return true;
	x->outer = malloc(l->n * sizeof *x->outer);
	if (!x->outer)
		return false;
	x->bytes += l->n * sizeof *x->outer;
	for (uint32_t i = 0; i < l->n; i++) {
		/* Each link is followed at most once: this is linear. */
		for (j = i ? i - 1 : NONE; j != NONE && l->ranges[j].value <= l->ranges[i].value;)
			j = x->outer[j];
		x->outer[i] = j;
	}
	return true;
}

static void destroy_index(struct fathom_memory *m, struct fathom_fde_index *x)
{
	if (!x)
		return;
	fathom_memory_uncount(m, x->bytes);
	free(x->list.ranges);
	free(x->off);
	free(x->section);
	free(x->outer);
	free(x);
}

/* Makes the index of the sections from @first to before @end; NULL if out of memory. */
static struct fathom_fde_index *create_index(struct fathom_unwind_tables *u, uint32_t first,
					     uint32_t end)
{
	struct fathom_fde_index *x = calloc(1, sizeof *x);
	struct collection c = { .u = u };
	bool done = x != NULL;

	for (uint32_t i = first; done && i < end; i++)
		done = collect_section(&c, i);
	done = done && sort_found(&c, end <= 1, x) && link_overlaps(x);
	fathom_array_free(&c.keyed);
	fathom_array_free(&c.found);
	if (!done) {
		if (x)
			x->bytes = 0; /* not counted yet */
		destroy_index(u->memory, x);
		return NULL;
	}
	fathom_memory_count(u->memory, x->bytes);
	return x;
}

/* Returns index @which, made on first use; NULL if out of memory. */
static const struct fathom_fde_index *index_of(struct fathom_unwind_tables *u, int which)
{
	_Atomic(struct fathom_fde_index *) *slot = &u->index[which];
	struct fathom_fde_index *x = atomic_load_explicit(slot, memory_order_acquire);
	struct fathom_fde_index *expected = NULL;

	if (x)
		return x;
	x = create_index(u, which ? u->n_bounding : 0, which ? u->n_sections : u->n_bounding);
	if (x && !atomic_compare_exchange_strong(slot, &expected, x)) {
		destroy_index(u->memory, x);
		x = expected;
	}
	return x;
}

/* Looking up --------------------------------------------------------------------------------- */

/*
 * Reads the FDE at @off of @cfi, which is section number @section. Returns FATHOM_END if it does
 * not cover @svma or cannot be read.
 */
static fathom_err read_fde(struct fathom_unwind_tables *u, const struct fathom_cfi *cfi,
			   uint32_t section, uint64_t off, uint64_t svma, struct fathom_cie *room,
			   struct fathom_fde *ret)
{
	struct fathom_cfi_entry e;
	const struct fathom_cie *cie;
	fathom_err err;

	if (fathom_cfi_at(cfi, off, &e) || e.is_cie)
		return FATHOM_END;
	err = cie_at(u, cfi, section, e.cie_off, room, &cie);
	if (err == FATHOM_E_LIMIT)
		return err;
	if (err || fathom_fde_read(&e, cie, ret) || svma < ret->low || svma >= ret->high)
		return FATHOM_END;
	return FATHOM_OK;
}

/*
 * Looks @svma up in .eh_frame_hdr. Returns FATHOM_END if the table leads to no FDE that covers it,
 * FATHOM_E_UNSUPPORTED if there is no table that can be used.
 */
static fathom_err find_by_header(struct fathom_unwind_tables *u, uint64_t svma,
				 struct fathom_cie *room, struct fathom_fde *ret)
{
	struct fathom_cfi cfi;
	uint64_t off;
	fathom_err err;

	if (!u->header.size)
		return FATHOM_E_UNSUPPORTED;
	cfi = fathom_unwind_tables_section(u, 0);
	err = fathom_cfi_search(&cfi, u->header, u->header_svma, svma, &off);
	if (err < 0)
		return FATHOM_E_UNSUPPORTED;
	return err ? err : read_fde(u, &cfi, 0, off, svma, room, ret);
}

/* Finds the last FDE of @x that starts at or before @svma and covers it. */
static fathom_err last_covering(const struct fathom_fde_index *x, uint64_t svma, uint32_t *ret)
{
	uint32_t i = (uint32_t)fathom_bounds_list_upto(&x->list, svma) - 1;

	for (int k = 0; k < FATHOM_MAX_FDE_OVERLAP; k++) {
		if (i == NONE)
			return FATHOM_END;
		if (x->list.ranges[i].value > svma) {
			*ret = i;
			return FATHOM_OK;
		}
		i = x->outer ? x->outer[i] : NONE;
	}
	return FATHOM_E_LIMIT;
}

static fathom_err find_in_index(struct fathom_unwind_tables *u, int which, uint64_t svma,
				struct fathom_fde *ret)
{
	const struct fathom_fde_index *x = index_of(u, which);
	struct fathom_cfi cfi;
	uint32_t section;
	uint32_t i = 0;
	fathom_err err;

	if (!x)
		return FATHOM_E_MEMORY;
	err = last_covering(x, svma, &i);
	if (err)
		return err;
	section = x->section ? x->section[i] : 0;
	cfi = fathom_unwind_tables_section(u, section);
	return read_fde(u, &cfi, section, x->off[i], svma, NULL, ret);
}

fathom_err fathom_unwind_tables_find(struct fathom_unwind_tables *u, uint64_t svma,
				     struct fathom_fde *ret)
{
	fathom_err err = find_by_header(u, svma, NULL, ret);

	/* The table may lack FDEs; the index has all. */
	if (err == FATHOM_E_UNSUPPORTED || err == FATHOM_END)
		err = u->n_bounding ? find_in_index(u, 0, svma, ret) : FATHOM_END;
	if (err == FATHOM_END && u->n_sections > u->n_bounding)
		err = find_in_index(u, 1, svma, ret);
	return err;
}

fathom_err fathom_unwind_tables_walk(struct fathom_unwind_tables *u, bool rest,
				     bool (*fn)(const struct fathom_fde *fde, void *data),
				     void *data)
{
	const bool any = rest ? u->n_sections > u->n_bounding : u->n_bounding != 0;
	const struct fathom_fde_index *x = any ? index_of(u, rest) : NULL;
	struct fathom_fde fde;
	bool more = true;

	if (any && !x)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; any && i < x->list.n && more; i++) {
		const uint32_t section = x->section ? x->section[i] : 0;
		const struct fathom_cfi cfi = fathom_unwind_tables_section(u, section);
		const fathom_err err =
			read_fde(u, &cfi, section, x->off[i], x->list.ranges[i].key, NULL, &fde);

		if (err == FATHOM_E_LIMIT)
			return err;
		more = err || fn(&fde, data);
	}
	return FATHOM_OK;
}

/* Bounds of functions ------------------------------------------------------------------------ */

static bool bounds_at(struct fathom_bounds *b, uint64_t svma, struct fathom_range *ret)
{
	struct fathom_unwind_tables *u = (struct fathom_unwind_tables *)b;
	const struct fathom_fde_index *x;
	struct fathom_cie room;
	struct fathom_fde fde;
	const fathom_err err = find_by_header(u, svma, &room, &fde);
	size_t i;

	if (!err) {
		*ret = (struct fathom_range){ fde.low, fde.high };
		return true;
	}
	/* The table may lack FDEs; the index has all. */
	if (!u->n_bounding)
		return false;
	x = index_of(u, 0);
	i = x ? fathom_bounds_list_at(&x->list, svma) : 0;
	if (!x || i == x->list.n)
		return false;
	*ret = (struct fathom_range){ x->list.ranges[i].key, x->list.ranges[i].value };
	return true;
}

static const struct fathom_bounds_list *bounds_all(struct fathom_bounds *b)
{
	const struct fathom_fde_index *x = index_of((struct fathom_unwind_tables *)b, 0);

	return x ? &x->list : NULL;
}

/* Setting up --------------------------------------------------------------------------------- */

bool fathom_unwind_tables_init(struct fathom_unwind_tables *u, struct fathom_object *main,
			       struct fathom_object *debug)
{
	struct sections sections = { 0 };
	void *fitting;
	bool done;

	u->bounds = (struct fathom_bounds){ bounds_at, bounds_all };
	u->memory = main->memory;
	done = add_sections(u, &sections, main, true) && add_sections(u, &sections, main, false);
	/* Without section headers, or without their names. */
	if (done && !u->n_sections)
		done = add_segment(u, &sections, main);
	/* Addresses in a debug file for another base are not moved. */
	if (done && debug && debug != main && !debug->bias)
		done = add_sections(u, &sections, debug, true) &&
		       add_sections(u, &sections, debug, false);
	fitting = u->sections ? realloc(u->sections, u->n_sections * sizeof *u->sections) : NULL;
	u->sections = fitting ? fitting : u->sections;
	return done;
}

void fathom_unwind_tables_deinit(struct fathom_unwind_tables *u)
{
	destroy_cies(u->memory, atomic_load(&u->cies));
	for (int i = 0; i < 2; i++)
		destroy_index(u->memory, atomic_load(&u->index[i]));
	free(u->sections);
}
