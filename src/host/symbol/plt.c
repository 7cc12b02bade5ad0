/* SPDX-License-Identifier: MIT */
#include "host/symbol/plt.h"

#include "safe/elf/relocation.h"

/* Where to look for names of functions. */
struct names {
	const struct fathom_symbol_set *set;
	const struct fathom_symbol_index *index; /* of set, or NULL */
};

/* Reads one of the relocations that fill the GOT; its addend is an address. */
static void read_relocation(struct fathom_cursor *c, const struct fathom_image *image, bool rela,
			    struct fathom_relocation *ret)
{
	fathom_relocation_read(c, image, rela, ret);
	if (!image->is64)
		ret->addend = (uint32_t)ret->addend;
}

/* A relocation without an addend of its own (REL) has it in the slot. */
static void read_addend(struct fathom_relocation *r, const struct fathom_image *image,
			uint32_t type)
{
	const uint8_t word = fathom_image_address_size(image);
	struct fathom_cursor c;

	if (type != SHT_REL)
		return;
	c = cur_init(fathom_image_loaded_bytes(image, r->off, word), image->swap);
	r->addend = cur_uint(&c, word);
}

/* Returns the name of symbol @i of the table in section @link. */
static struct fathom_str symbol_name(const struct fathom_object *o, uint32_t link, uint32_t i)
{
	struct fathom_str version;
	struct fathom_symtab t;
	struct fathom_symbol symbol;

	if (!i || link >= o->n_sections)
		return (struct fathom_str){ NULL, 0 };
	t = fathom_object_symtab(o, link);
	if (i >= t.count)
		return (struct fathom_str){ NULL, 0 };
	fathom_symtab_get(&t, i, &symbol);
	return fathom_symbol_base_name(fathom_symtab_name(&t, &symbol), &version);
}

/* Names what relocation @r puts in its slot: a function by name, or an IFUNC by its resolver. */
static bool name_of_relocation(const struct names *n, uint32_t table,
			       const struct fathom_relocation *r, struct fathom_str *ret)
{
	const struct fathom_object *o = n->set->main;
	struct fathom_symbol_hit hit;
	uint32_t number;

	*ret = symbol_name(o, o->sections[table].header.link, r->symbol);
	if (ret->data)
		return true;
	if (r->symbol || !r->addend)
		return false;
	if (n->index) {
		number = fathom_symbol_index_at(n->index, r->addend);
		if (number != FATHOM_NONE)
			*ret = fathom_symbol_index_name(n->index, number);
		return number != FATHOM_NONE;
	}
	if (!fathom_symbols_scan(n->set, r->addend, NULL, &hit))
		return false;
	*ret = hit.name;
	return true;
}

static bool is_loaded_relocations(const struct fathom_section *s)
{
	return (s->type == SHT_RELA || s->type == SHT_REL) && (s->flags & SHF_ALLOC);
}

/* Names the function whose address the loader puts in the GOT slot at @slot. */
static bool name_of_slot(const struct names *n, uint64_t slot, struct fathom_str *ret)
{
	const struct fathom_object *o = n->set->main;

	for (uint32_t t = 1; t < o->n_sections; t++) {
		const struct fathom_section *s = &o->sections[t].header;
		struct fathom_cursor c;
		struct fathom_relocation r;

		if (!is_loaded_relocations(s))
			continue;
		c = cur_init(fathom_image_section_bytes(&o->image, s), o->image.swap);
		while (cur_left(&c)) {
			read_relocation(&c, &o->image, s->type == SHT_RELA, &r);
			if (!cur_ok(&c) || r.off != slot)
				continue;
			read_addend(&r, &o->image, s->type);
			return name_of_relocation(n, t, &r, ret);
		}
	}
	return false;
}

/* Names the function of relocation @i of .rela.plt, which lazy stubs push. */
static bool name_of_index(const struct names *n, uint32_t i, struct fathom_str *ret)
{
	const struct fathom_object *o = n->set->main;
	uint32_t table = fathom_object_find(o, ".rela.plt");
	struct fathom_relocation r;
	struct fathom_cursor c;
	uint64_t size;

	if (!table)
		table = fathom_object_find(o, ".rel.plt");
	if (!table)
		return false;
	size = o->sections[table].header.entsize;
	c = cur_init(bytes_slice(fathom_image_section_bytes(&o->image, &o->sections[table].header),
				 (uint64_t)i * size, size),
		     o->image.swap);
	read_relocation(&c, &o->image, o->sections[table].header.type == SHT_RELA, &r);
	return cur_ok(&c) && name_of_relocation(n, table, &r, ret);
}

/* Finds the slot of `jmp *disp(%rip)`, `jmp *abs` (i386) or `jmp *disp(%ebx)` (i386, PIC). */
static bool slot_of_x86_stub(const struct fathom_object *o, struct fathom_bytes stub, uint64_t svma,
			     uint64_t *ret)
{
	const uint32_t got = fathom_object_find(o, ".got.plt");
	const uint8_t *p = stub.data;

	for (uint64_t i = 0; i + 6 <= stub.size; i++) {
		const uint64_t disp = (uint64_t)(int32_t)load_u32(p + i + 2, o->image.swap);
		const bool is_based = p[i + 1] == 0xa3 && !o->image.is64 && got;

		if (p[i] != 0xff || (p[i + 1] != 0x25 && !is_based))
			continue;
		*ret = is_based        ? o->sections[got].base + disp
		       : o->image.is64 ? svma + i + 6 + disp
				       : (uint32_t)disp;
		return true;
	}
	return false;
}

/* Names `push $index`. */
static bool name_pushed(const struct names *n, struct fathom_bytes stub, struct fathom_str *ret)
{
	for (uint64_t i = 0; i + 5 <= stub.size; i++)
		if (stub.data[i] == 0x68)
			return name_of_index(
				n, load_u32(stub.data + i + 1, n->set->main->image.swap), ret);
	return false;
}

#define ADRP_X16 0x90000010

/* Finds the slot of `adrp x16, page; ldr x17, [x16, #off]`. */
static bool slot_of_aarch64_stub(struct fathom_bytes stub, uint64_t svma, uint64_t *ret)
{
	for (uint64_t i = 0; i + 8 <= stub.size; i += 4) {
		/* Instructions are little-endian on either byte order. */
		const bool swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
		const uint32_t adrp = load_u32(stub.data + i, swap);
		const uint32_t ldr = load_u32(stub.data + i + 4, swap);
		uint64_t page;

		if ((adrp & 0x9f00001f) != ADRP_X16 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		page = (uint64_t)((adrp >> 5) & 0x7ffff) << 2 | ((adrp >> 29) & 3);
		page = (page ^ (UINT64_C(1) << 20)) - (UINT64_C(1) << 20);
		*ret = ((svma + i) & ~UINT64_C(0xfff)) + (page << 12) +
		       (uint64_t)((ldr >> 10) & 0xfff) * 8;
		return true;
	}
	return false;
}

/* The layout of stubs in a section. */
struct layout {
	uint64_t header; /* bytes of the first, special stub */
	uint64_t size;   /* bytes of each other stub */
};

/*
 * Returns the size of aarch64 stubs, which linkers do not state: four instructions, or six if
 * branches are protected. It is the distance of their adrp, before which only some have a `bti c`.
 */
static uint64_t aarch64_stub_size(struct fathom_bytes stubs)
{
	const bool swap = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	uint64_t first = UINT64_MAX;

	for (uint64_t i = 0; i + 4 <= stubs.size && i < 64; i += 4) {
		if ((load_u32(stubs.data + i, swap) & 0x9f00001f) != ADRP_X16)
			continue;
		if (first != UINT64_MAX)
			return i - first > 16 ? 24 : 16;
		first = i;
	}
	return stubs.size > 16 ? 24 : 16;
}

/*
 * Returns whether stubs are a jump and two bytes of padding, as in .plt.got, and in the .plt of
 * static programs, for which the linker does not state it.
 */
static bool has_short_x86_stubs(struct fathom_bytes stubs)
{
	const uint8_t *p = stubs.data;

	return stubs.size >= 8 && p[0] == 0xff && p[1] == 0x25 && p[6] == 0x66 && p[7] == 0x90;
}

static struct layout layout_of(const struct fathom_image *image, const struct fathom_section *s)
{
	struct layout l = { 0, s->entsize == 8 ? 8 : 16 };

	if (image->machine == EM_AARCH64) {
		l.header = str_is(s->name, ".plt") ? 32 : 0;
		l.size = aarch64_stub_size(
			bytes_from(fathom_image_section_bytes(image, s), l.header));
	} else if (s->entsize != 16 &&
		   (str_is(s->name, ".plt.got") ||
		    has_short_x86_stubs(fathom_image_section_bytes(image, s)))) {
		l.size = 8;
	}
	return l;
}

static bool is_of_stubs(const struct fathom_section *s)
{
	return s->name.data && (str_starts(s->name, ".plt") || str_starts(s->name, ".iplt"));
}

bool fathom_plt_holds(const struct fathom_object *o, uint64_t svma)
{
	const uint32_t i = fathom_object_section_at(o, svma);

	return i && is_of_stubs(&o->sections[i].header);
}

/* A stub, and its bytes. */
struct stub {
	uint64_t svma;
	uint64_t size;
	struct fathom_bytes bytes; /* none if they are not in the file */
};

/* Finds the bounds of the stub at @svma. */
static bool find_stub(const struct fathom_object *o, uint64_t svma, struct stub *ret)
{
	const uint32_t i = fathom_object_section_at(o, svma);
	const struct fathom_section *s = &o->sections[i].header;
	struct layout l;
	uint64_t off;

	if (!i || !is_of_stubs(s))
		return false;
	l = layout_of(&o->image, s);
	off = svma - o->sections[i].base;
	if (off < l.header)
		return false;
	off -= (off - l.header) % l.size;
	ret->svma = o->sections[i].base + off;
	ret->size = l.size;
	ret->bytes = bytes_slice(fathom_image_section_bytes(&o->image, s), off, l.size);
	return true;
}

static bool is_x86(const struct fathom_object *o)
{
	return o->image.machine == EM_X86_64 || o->image.machine == EM_386;
}

/* Finds the slot that stub @s jumps through. */
static bool slot_of_stub(const struct fathom_object *o, const struct stub *s, uint64_t *ret)
{
	if (is_x86(o))
		return slot_of_x86_stub(o, s->bytes, s->svma, ret);
	return o->image.machine == EM_AARCH64 && slot_of_aarch64_stub(s->bytes, s->svma, ret);
}

bool fathom_plt_slot(const struct fathom_object *o, uint64_t svma, uint64_t *ret_slot)
{
	struct stub s;

	return find_stub(o, svma, &s) && s.svma == svma && slot_of_stub(o, &s, ret_slot);
}

bool fathom_plt_at(const struct fathom_symbol_set *set, const struct fathom_symbol_index *symbols,
		   uint64_t svma, struct fathom_symbol_hit *ret)
{
	const struct names n = { set, symbols };
	const struct fathom_object *o = set->main;
	struct stub s;
	uint64_t slot;
	bool found;

	if (!find_stub(o, svma, &s))
		return false;
	ret->start = s.svma;
	ret->size = s.size;
	ret->source = FATHOM_SOURCE_PLT;
	if (slot_of_stub(o, &s, &slot))
		found = name_of_slot(&n, slot, &ret->name);
	else
		found = is_x86(o) && name_pushed(&n, s.bytes, &ret->name);
	return found && ret->name.data;
}
