/* SPDX-License-Identifier: MIT */
#include "host/space/user/core_link.h"

#include <stdlib.h>

#include "safe/base/limits.h"
#include "safe/base/sort.h"
#include "safe/elf/image.h"

/* A program or library whose ELF header is in memory. */
struct linked {
	struct fathom_image image;
	uint64_t start; /* avma of the header */
	uint64_t bias;
	struct fathom_str name;
	bool listed; /* is in the dynamic linker's list */
};

struct link {
	const struct fathom_dump *dump;
	struct fathom_reader memory; /* of dump */
	const struct fathom_core_ranges *loads;
	struct linked *items;
	struct fathom_keyed *by_bias; /* sorted: bias -> index in items */
	size_t n;
	uint64_t debug; /* avma of struct r_debug, or 0 */
	size_t program; /* index of the program with DT_DEBUG; n: none */
	uint8_t word;   /* bytes */
	bool swap;
};

/* Returns the word at @avma; 0 if it was not stored. */
static uint64_t word_at(const struct link *l, uint64_t avma)
{
	uint64_t word;

	return fathom_reader_uint(&l->memory, avma, l->word, l->swap, &word) ? word : 0;
}

/* Returns the text at @avma, which stays in the core; empty if it does not end in its piece. */
static struct fathom_str text_at(const struct link *l, uint64_t avma)
{
	struct fathom_bytes b = fathom_dump_from(l->dump, avma);

	b.size = b.size < FATHOM_MAX_SECTION_NAME ? b.size : FATHOM_MAX_SECTION_NAME;
	return fathom_bytes_str(b, 0);
}

/*
 * Reads the ELF header at @avma and finds its bias; returns false if there is no program or
 * library.
 */
static bool read_header(const struct link *l, uint64_t avma, struct linked *ret)
{
	struct fathom_segment s;

	*ret = (struct linked){ .start = avma };
	if (fathom_image_init(fathom_dump_from(l->dump, avma), &ret->image, NULL) ||
	    (ret->image.type != ET_EXEC && ret->image.type != ET_DYN) ||
	    fathom_image_address_size(&ret->image) != l->word || ret->image.swap != l->swap)
		return false;
	for (uint32_t i = 0; i < ret->image.phnum; i++)
		if (fathom_image_segment(&ret->image, i, &s) && s.type == PT_LOAD &&
		    s.off < l->dump->page) {
			ret->bias = avma - (s.vaddr & ~(l->dump->page - 1));
			return true;
		}
	return false;
}

/*
 * Returns DT_DEBUG, which the dynamic linker sets in the program, from the dynamic section of @size
 * bytes at @avma; 0 if there is none.
 */
static uint64_t debug_in(const struct link *l, uint64_t avma, uint64_t size)
{
	const uint64_t entry = 2 * (uint64_t)l->word;

	/* An entry for each library, and some more. What was not stored reads as DT_NULL. */
	for (uint64_t off = 0; off < FATHOM_MAX_LINK_MAPS * entry && size - off >= entry;
	     off += entry) {
		const uint64_t tag = word_at(l, avma + off);

		if (tag == DT_NULL)
			break;
		if (tag == DT_DEBUG)
			return word_at(l, avma + off + l->word);
	}
	return 0;
}

/* Returns DT_DEBUG of @k; 0 if there is none. */
static uint64_t find_debug(const struct link *l, const struct linked *k)
{
	struct fathom_segment s;
	uint64_t debug = 0;

	for (uint32_t i = 0; i < k->image.phnum && !debug; i++)
		if (fathom_image_segment(&k->image, i, &s) && s.type == PT_DYNAMIC)
			debug = debug_in(l, k->bias + s.vaddr, s.memsz);
	return debug;
}

/* Finds the ELF headers at the starts of mappings. */
static bool find_headers(struct link *l, uint64_t vdso)
{
	l->items = malloc((l->loads->n + 1) * sizeof *l->items);
	l->by_bias = malloc((2 * l->loads->n + 1) * sizeof *l->by_bias);
	if (!l->items || !l->by_bias)
		return false;
	for (size_t i = 0; i < l->loads->n; i++) {
		const uint64_t start = l->loads->items[i].start;

		if (start == vdso || !read_header(l, start, &l->items[l->n]))
			continue;
		l->by_bias[l->n] = (struct fathom_keyed){ l->items[l->n].bias, l->n };
		l->n++;
	}
	fathom_sort_keyed(l->by_bias, l->by_bias + l->n, l->n);
	l->program = l->n;
	for (size_t i = 0; i < l->n && !l->debug; i++) {
		l->debug = find_debug(l, &l->items[i]);
		l->program = l->debug ? i : l->n;
	}
	return true;
}

/* Returns whether the program's dynamic section is at @avma. */
static bool has_dynamic_at(const struct linked *k, uint64_t avma)
{
	struct fathom_segment s;

	for (uint32_t i = 0; i < k->image.phnum; i++)
		if (fathom_image_segment(&k->image, i, &s) && s.type == PT_DYNAMIC)
			return k->bias + s.vaddr == avma;
	return false;
}

/* The most files tried at one bias: fixed-address programs all have 0. */
#define MAX_SAME_BIAS 16

/* Follows struct link_map: l_addr, l_name, l_ld, l_next. */
static void read_link_map(struct link *l, uint64_t avma)
{
	const uint64_t bias = word_at(l, avma);
	const uint64_t dynamic = word_at(l, avma + 2 * (uint64_t)l->word);
	const size_t first = FATHOM_BISECT(l->n, k, l->by_bias[k].key < bias);

	for (size_t i = first; i < l->n && i - first < MAX_SAME_BIAS && l->by_bias[i].key == bias;
	     i++) {
		struct linked *k = &l->items[l->by_bias[i].value];

		if (!has_dynamic_at(k, dynamic))
			continue;
		k->listed = true;
		k->name = text_at(l, word_at(l, avma + l->word));
	}
}

/* Namespaces of dlmopen(); glibc allows 16. */
#define MAX_NAMESPACES 16

/*
 * Reads struct r_debug: r_version, padded to a word, r_map, r_brk, r_state, padded, r_ldbase; from
 * version 2 on, r_next points to the next namespace.
 */
static void read_lists(struct link *l)
{
	uint64_t debug = l->debug;
	size_t left = FATHOM_MAX_LINK_MAPS;

	for (int i = 0; i < MAX_NAMESPACES && debug; i++) {
		uint64_t map = word_at(l, debug + l->word);

		for (; map && left; left--) {
			read_link_map(l, map);
			map = word_at(l, map + 3 * (uint64_t)l->word);
		}
		debug = (uint32_t)word_at(l, debug) >= 2 ? word_at(l, debug + 5 * (uint64_t)l->word)
							 : 0;
	}
}

/* Names the program, which has no name in the list. */
static void name_program(struct link *l, struct fathom_dump *d, uint64_t execfn)
{
	const struct fathom_str path = text_at(l, execfn);

	for (size_t i = 0; i < l->n; i++) {
		struct linked *k = &l->items[i];
		const uint64_t entry = k->bias + k->image.entry;

		if (d->entry ? entry != d->entry : i != l->program)
			continue;
		d->entry = entry;
		k->listed = true;
		if (!k->name.size && str_starts(path, "/"))
			k->name = path;
	}
}

/* Returns the flags of the mapping at @avma; 0, so not executable, if there is none. */
static uint32_t flags_at(const struct link *l, uint64_t avma)
{
	const size_t low = FATHOM_BISECT(l->loads->n, i, l->loads->items[i].end <= avma);

	return low < l->loads->n && l->loads->items[low].start <= avma ? l->loads->items[low].flags
								       : 0;
}

/* Returns whether the file was loaded: it is listed, or its code is mapped executable. */
static bool was_loaded(const struct link *l, const struct linked *k)
{
	struct fathom_segment s;

	for (uint32_t i = 0; !k->listed && i < k->image.phnum; i++)
		if (fathom_image_segment(&k->image, i, &s) && s.type == PT_LOAD && (s.flags & PF_X))
			return (flags_at(l, k->bias + s.vaddr) & PF_X) != 0;
	return k->listed;
}

/* Finds the pages of segment @s that come from the file. */
static bool range_of(const struct link *l, const struct linked *k, const struct fathom_segment *s,
		     struct fathom_core_range *ret)
{
	const uint64_t mask = l->dump->page - 1;
	const uint64_t avma = k->bias + s->vaddr;
	uint64_t end;

	if (s->type != PT_LOAD || !s->filesz || __builtin_add_overflow(avma, s->filesz, &end) ||
	    end > UINT64_MAX - mask)
		return false;
	*ret = (struct fathom_core_range){ .start = avma & ~mask,
					   .end = (end + mask) & ~mask,
					   .off = s->off & ~mask,
					   .name = k->name };
	if (!k->name.size) {
		ret->name =
			(struct fathom_str){ FATHOM_CORE_UNNAMED, sizeof FATHOM_CORE_UNNAMED - 1 };
		ret->number = k->start;
	}
	return true;
}

static fathom_err make_ranges(const struct link *l, struct fathom_core_ranges *ret)
{
	struct fathom_core_ranges r = { NULL, 0 };
	struct fathom_segment s;
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->items[i].image.phnum;
	if (n > FATHOM_MAX_DUMP_MAPPINGS)
		return FATHOM_OK;
	r.items = malloc((n + 1) * sizeof *r.items);
	if (!r.items)
		return FATHOM_E_MEMORY;
	for (size_t i = 0; i < l->n; i++) {
		const struct linked *k = &l->items[i];

		for (uint32_t p = 0; was_loaded(l, k) && p < k->image.phnum; p++)
			if (fathom_image_segment(&k->image, p, &s))
				r.n += range_of(l, k, &s, &r.items[r.n]);
	}
	*ret = r;
	return FATHOM_OK;
}

static bool covers(const struct fathom_core_ranges *r, uint64_t avma)
{
	for (size_t i = 0; i < r->n; i++)
		if (avma - r->items[i].start < r->items[i].end - r->items[i].start)
			return true;
	return false;
}

/*
 * Adds the program by its program headers, which are in the first page of its file, if no other
 * range has its entry: qemu's cores hold none of its code. The mappings after that are not
 * writable are its, too. @ret has room for one more.
 */
static void add_program(const struct link *l, const struct fathom_core_facts *facts,
			struct fathom_core_ranges *ret)
{
	const struct fathom_core_range *load = l->loads->items;
	const struct fathom_core_range *last = load + l->loads->n;
	const struct fathom_str path = text_at(l, facts->execfn);
	struct fathom_core_range r = { .name = { FATHOM_CORE_UNNAMED,
						 sizeof FATHOM_CORE_UNNAMED - 1 } };

	while (load < last && load->end <= facts->phdr)
		load++;
	if (load == last || facts->phdr - load->start >= l->dump->page ||
	    covers(ret, l->dump->entry))
		return;
	r.start = load->start;
	for (r.end = r.start; load < last && load->start == r.end && !(load->flags & PF_W); load++)
		r.end = load->end;
	if (str_starts(path, "/"))
		r.name = path;
	else
		r.number = r.start;
	if (r.start < r.end)
		ret->items[ret->n++] = r;
}

fathom_err fathom_core_link_files(struct fathom_dump *d, const struct fathom_core_ranges *loads,
				  const struct fathom_core_facts *facts,
				  struct fathom_core_ranges *ret)
{
	struct link l = { .dump = d, .memory = fathom_dump_reader(d), .loads = loads };
	fathom_err err = FATHOM_E_MEMORY;
	struct fathom_image core;

	FATHOM_TRY(fathom_image_init(d->file->bytes, &core, NULL));
	l.word = fathom_image_address_size(&core);
	l.swap = core.swap;
	if (find_headers(&l, facts->vdso)) {
		read_lists(&l);
		name_program(&l, d, facts->execfn);
		err = make_ranges(&l, ret);
		if (!err && ret->items && facts->phdr)
			add_program(&l, facts, ret);
	}
	free(l.items);
	free(l.by_bias);
	return err;
}
