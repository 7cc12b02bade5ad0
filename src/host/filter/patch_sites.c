/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel patches its own code (x86-64 and arm64). Its tables are sections of modules. In
 * vmlinux some are parts of larger sections, between two symbols (asm-generic/vmlinux.lds.h,
 * arch/x86/kernel/vmlinux.lds.S):
 *
 *	.altinstructions               struct alt_instr, of 12, 13 or 14 bytes by version
 *	                               (arch/{x86,arm64}/include/asm/alternative.h)
 *	__jump_table                   struct jump_entry, relative since 4.19 (linux/jump_label.h)
 *	.static_call_sites             struct static_call_site (linux/static_call_types.h)
 *	.static_call.text              trampolines (arch/x86/include/asm/static_call.h)
 *	__mcount_loc                   addresses of calls (linux/ftrace.h, kernel/trace/ftrace.c)
 *	__patchable_function_entries   the same, of gcc's -fpatchable-function-entry
 *	.parainstructions              struct paravirt_patch_site (asm/paravirt_types.h)
 *	.smp_locks                     lock prefixes (asm/alternative.h)
 *	.retpoline_sites, .return_sites, .call_sites, .ibt_endbr_seal, .cfi_sites
 *	                               (objtool; arch/x86/kernel/alternative.c)
 *	runtime_ptr_*, runtime_shift_* constants (asm-generic/runtime-const.h)
 *
 * Not handled: 32-bit kernels; the tables of other machines. The bytes of their files prove
 * nothing.
 */
#include "host/filter/patch_sites.h"

#include <elf.h>

#include "host/file/fixups.h"

/* Bytes of the longest site: a length of one byte, or a site with what is around it. */
#define MAX_SITE 256

/* How an entry refers to its site, in its first member. */
enum reference {
	RELATIVE, /* 32 bits, from the member */
	ABSOLUTE, /* 64 bits */
	WHOLE     /* the section is the site */
};

struct layout {
	uint8_t size; /* of an entry; 0: there is no other layout */
	uint8_t reference;
	uint8_t length_at; /* of its byte that has the length of the site; 0: none has */
	bool has_target;   /* the next member refers to code, too */
};

struct table {
	const char *section;
	const char *start; /* symbols of vmlinux; NULL: it is a section there, too */
	const char *end;
	struct layout layouts[3];
	uint8_t length;   /* of the site, unless the entry tells */
	uint8_t with_cfi; /* bytes before it that belong to the site if there is .cfi_sites */
	bool is_prefix;   /* so begin the names of several sections */
	bool is_needed;   /* every vmlinux has it: one without it was stripped */
};

static const struct table tables[] = {
	{ .section = ".altinstructions",
	  .start = "__alt_instructions",
	  .end = "__alt_instructions_end",
	  .layouts = { { 12, RELATIVE, 10, true },
		       { 14, RELATIVE, 12, true },
		       { 13, RELATIVE, 10, true } },
	  .is_needed = true },
	{ .section = "__jump_table",
	  .start = "__start___jump_table",
	  .end = "__stop___jump_table",
	  .layouts = { { 16, RELATIVE, 0, true }, { 24, ABSOLUTE, 0, true } },
	  .length = 5,
	  .is_needed = true },
	{ .section = ".static_call_sites",
	  .start = "__start_static_call_sites",
	  .end = "__stop_static_call_sites",
	  .layouts = { { 8, RELATIVE, 0, false } },
	  .length = 6 },
	{ .section = ".static_call.text",
	  .start = "__static_call_text_start",
	  .end = "__static_call_text_end",
	  .layouts = { { 1, WHOLE, 0, false } } },
	{ .section = "__mcount_loc",
	  .start = "__start_mcount_loc",
	  .end = "__stop_mcount_loc",
	  .layouts = { { 8, ABSOLUTE, 0, false } },
	  .length = 8 },
	{ .section = "__patchable_function_entries",
	  .layouts = { { 8, ABSOLUTE, 0, false } },
	  .length = 24 },
	{ .section = ".parainstructions", .layouts = { { 16, ABSOLUTE, 9, false } } },
	{ .section = ".smp_locks", .layouts = { { 4, RELATIVE, 0, false } }, .length = 1 },
	/* FineIBT also rewrites the 14 bytes before a call (arch/x86/kernel/alternative.c). */
	{ .section = ".retpoline_sites",
	  .layouts = { { 4, RELATIVE, 0, false } },
	  .length = 6,
	  .with_cfi = 14 },
	{ .section = ".return_sites", .layouts = { { 4, RELATIVE, 0, false } }, .length = 5 },
	{ .section = ".call_sites", .layouts = { { 4, RELATIVE, 0, false } }, .length = 5 },
	{ .section = ".ibt_endbr_seal", .layouts = { { 4, RELATIVE, 0, false } }, .length = 4 },
	{ .section = ".cfi_sites", .layouts = { { 4, RELATIVE, 0, false } }, .length = 24 },
	{ .section = "runtime_",
	  .layouts = { { 4, RELATIVE, 0, false } },
	  .length = 16,
	  .is_prefix = true },
};

/* A table of the file. */
struct part {
	const struct table *table;
	uint64_t svma;
	uint64_t size;
};

struct collector {
	const struct fathom_object *object;
	const struct fathom_fixups *fixups;
	struct fathom_patch_sites *sites;
	fathom_err err;
};

static void add(struct collector *c, uint64_t svma, uint64_t before, uint64_t size)
{
	if (!c->err && !fathom_array_push(&c->sites->sites,
					  (struct fathom_keyed){ svma - before, before + size }))
		c->err = FATHOM_E_MEMORY;
}

/* Reads what the member at @svma refers to: a relocation fills it, or the file has it. */
static bool read_reference(const struct collector *c, uint64_t svma, enum reference reference,
			   uint64_t *ret)
{
	const uint64_t size = reference == ABSOLUTE ? 8 : 4;
	const bool swap = c->object->image.swap;
	struct fathom_fixup fixup;
	uint8_t bytes[8];
	size_t i = 0;

	if (fathom_fixups_find(c->fixups, svma, svma + 1, &i, &fixup)) {
		*ret = fixup.value + fixup.addend;
		return fixup.defined || fixup.kind == FATHOM_FIXUP_BASE;
	}
	if (fathom_object_read(c->object, svma, bytes, size) != size)
		return false;
	*ret = reference == ABSOLUTE ? load_u64(bytes, swap)
				     : svma + (uint64_t)(int32_t)load_u32(bytes, swap);
	return true;
}

/* Returns whether @svma is code, or where code ends. */
static bool is_code(const struct collector *c, uint64_t svma)
{
	return fathom_object_has_code(c->object, svma) ||
	       fathom_object_has_code(c->object, svma - 1);
}

/* Reads the site of the entry at @svma; returns whether it leads into code. */
static bool read_entry(const struct collector *c, const struct layout *l, uint64_t svma,
		       uint64_t *ret)
{
	const uint64_t member = l->reference == ABSOLUTE ? 8 : 4;
	uint64_t target;

	return read_reference(c, svma, l->reference, ret) && is_code(c, *ret) &&
	       (!l->has_target ||
		(read_reference(c, svma + member, l->reference, &target) && is_code(c, target)));
}

/* Returns whether @l is the layout of @p: all entries lead into code. */
static bool fits(const struct collector *c, const struct part *p, const struct layout *l)
{
	uint64_t site;

	if (!l->size || p->size % l->size)
		return false;
	for (uint64_t at = 0; at < p->size; at += l->size)
		if (!read_entry(c, l, p->svma + at, &site))
			return false;
	return true;
}

/* Finds the layout of @p; NULL: none is known. A table of one layout may have unused entries. */
static const struct layout *layout_of(const struct collector *c, const struct part *p)
{
	const struct layout *layouts = p->table->layouts;

	if (!layouts[1].size)
		return layouts;
	for (size_t i = 0; i < sizeof p->table->layouts / sizeof *layouts; i++)
		if (fits(c, p, &layouts[i]))
			return &layouts[i];
	return NULL;
}

/* Adds the sites of @p; returns false if it cannot be read. */
static bool add_part(struct collector *c, const struct part *p)
{
	const uint64_t before =
		fathom_object_find(c->object, ".cfi_sites") ? p->table->with_cfi : 0;
	const struct layout *l = layout_of(c, p);
	uint64_t n_outside = 0;
	uint64_t n = 0;

	if (!l)
		return false;
	if (l->reference == WHOLE) {
		for (uint64_t at = 0; at < p->size; at += MAX_SITE)
			add(c, p->svma + at, 0, p->size - at < MAX_SITE ? p->size - at : MAX_SITE);
		return true;
	}
	/* The last entry may lack its padding. */
	for (uint64_t at = 0; at < p->size && !c->err; at += l->size, n++) {
		uint8_t length = p->table->length;
		uint64_t site;

		if (!read_entry(c, l, p->svma + at, &site))
			n_outside++;
		else if (l->length_at &&
			 !fathom_object_read(c->object, p->svma + at + l->length_at, &length, 1))
			return false;
		else
			add(c, site, before, length);
	}
	return n_outside <= n / 2;
}

/* Adds the sections of @t; returns false if one cannot be read. Counts them in *@ret_n. */
static bool add_sections(struct collector *c, const struct table *t, uint32_t *ret_n)
{
	const struct fathom_object *o = c->object;

	*ret_n = 0;
	for (uint32_t i = 1; i < o->n_sections; i++) {
		const struct fathom_section *s = &o->sections[i].header;
		const struct part p = { t, o->sections[i].base, s->size };

		if (!(s->flags & SHF_ALLOC) || !s->name.data ||
		    !(t->is_prefix ? str_starts(s->name, t->section) : str_is(s->name, t->section)))
			continue;
		++*ret_n;
		if (fathom_image_section_bytes(&o->image, s).size != s->size || !add_part(c, &p))
			return false;
	}
	return true;
}

/* Adds table @t of @m; returns false if it cannot be read, or is missing. */
static bool add_table(struct collector *c, const struct fathom_module *m, const struct table *t)
{
	struct part p = { .table = t };
	uint64_t end;
	uint32_t n;

	if (!add_sections(c, t, &n))
		return false;
	if (n || m->main->image.type == ET_REL)
		return true;
	if (!t->start || !fathom_symbols_find(&m->symbols, t->start, &p.svma) ||
	    !fathom_symbols_find(&m->symbols, t->end, &end) || end < p.svma ||
	    end - p.svma > m->main->image.bytes.size)
		return !t->is_needed;
	p.size = end - p.svma;
	return add_part(c, &p);
}

/* Adds the places that relocations change. */
static void add_fixups(struct collector *c)
{
	const struct fathom_object *o = c->object;
	struct fathom_fixup fixup;

	for (uint32_t k = 0; k < o->n_code; k++)
		for (size_t i = 0;
		     fathom_fixups_find(c->fixups, o->code[k].low, o->code[k].high, &i, &fixup);
		     i++) {
			const bool may_be_long = fixup.kind == FATHOM_FIXUP_ADDRESS ||
						 fixup.kind == FATHOM_FIXUP_BASE ||
						 fixup.kind == FATHOM_FIXUP_OTHER;

			add(c, fixup.svma, 0, may_be_long ? 8 : 4);
		}
}

static void sort(struct collector *c)
{
	struct fathom_keyed_array *a = &c->sites->sites;

	if (!fathom_array_room(a, a->n)) {
		c->err = FATHOM_E_MEMORY;
		return;
	}
	fathom_sort_keyed(a->items, a->items + a->n, a->n);
}

fathom_err fathom_patch_sites_read(const struct fathom_module *m, bool is_kernel,
				   struct fathom_patch_sites *ret)
{
	const uint16_t machine = m->main->image.machine;
	struct collector c = { .object = m->main, .sites = ret };
	struct fathom_fixups *fixups;

	*ret = (struct fathom_patch_sites){ .is_kernel = is_kernel };
	fixups = fathom_fixups_create(m->main);
	if (!fixups)
		return FATHOM_E_MEMORY;
	c.fixups = fixups;
	add_fixups(&c);
	ret->is_complete = machine == EM_X86_64 || machine == EM_AARCH64;
	for (size_t i = 0; is_kernel && ret->is_complete && i < sizeof tables / sizeof *tables; i++)
		ret->is_complete = add_table(&c, m, &tables[i]);
	sort(&c);
	fathom_fixups_destroy(fixups);
	return c.err;
}

void fathom_patch_sites_deinit(struct fathom_patch_sites *p)
{
	fathom_array_free(&p->sites);
}

void fathom_patch_sites_mark(const struct fathom_patch_sites *p, uint64_t svma, bool *marks,
			     size_t size)
{
	const struct fathom_keyed_array *a = &p->sites;

	for (size_t i = FATHOM_BISECT(a->n, k, a->items[k].key + MAX_SITE + UINT8_MAX <= svma);
	     i < a->n && a->items[i].key < svma + size; i++) {
		const struct fathom_keyed *site = &a->items[i];

		for (uint64_t k = 0; k < site->value; k++)
			if (site->key + k - svma < size)
				marks[site->key + k - svma] = true;
	}
}
