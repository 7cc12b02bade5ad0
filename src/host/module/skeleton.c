/* SPDX-License-Identifier: MIT */
/*
 * Skeletons of ELF files (System V gABI, chapters 4 and 5): the ELF header, the loaded segments,
 * all section headers, and a table of their names. Sections keep their numbers. Not kept: segments
 * that are not loaded, since their content is not there either.
 */
#include "host/module/skeleton.h"

#include <stdlib.h>

#include "host/base/array.h"

/* The largest skeleton, and the most section headers. */
#define MAX_BYTES    ((uint64_t)64 << 20)
#define MAX_SECTIONS (1u << 20)
#define MAX_SEGMENTS 0xfffeu

/* A skeleton that is being written, in the byte order and class of its file. */
struct skeleton {
	const struct fathom_object *o;
	uint8_t *data;
	uint64_t at;
	struct fathom_bytes_array names;
};

static void put(struct skeleton *k, uint64_t value, unsigned size)
{
	const bool little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != k->o->image.swap;

	for (unsigned i = 0; i < size; i++)
		k->data[k->at + (little ? i : size - 1 - i)] = (uint8_t)(value >> 8 * i);
	k->at += size;
}

/* Writes an address, offset or size. */
static void put_word(struct skeleton *k, uint64_t value)
{
	put(k, value, fathom_image_address_size(&k->o->image));
}

/* Where the parts are. */
struct places {
	uint64_t ehsize;
	uint64_t phentsize;
	uint64_t shentsize;
	uint32_t phnum;
	uint32_t shnum;
	uint64_t shoff;
	uint64_t names_off;
	uint64_t size;
};

static struct places places_of(const struct skeleton *k)
{
	const struct fathom_image *image = &k->o->image;
	struct places p = {
		.ehsize = image->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr),
		.phentsize = image->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr),
		.shentsize = image->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr),
		.shnum = k->o->n_sections,
	};
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++)
		p.phnum += fathom_image_segment(image, i, &s) && s.type == PT_LOAD;
	p.shoff = (p.ehsize + p.phnum * p.phentsize + 7) & ~UINT64_C(7);
	p.names_off = p.shoff + p.shnum * p.shentsize;
	p.size = p.names_off + k->names.n;
	return p;
}

static void put_header(struct skeleton *k, const struct places *p)
{
	const struct fathom_image *image = &k->o->image;

	memcpy(k->data, image->bytes.data, EI_NIDENT);
	k->at = EI_NIDENT;
	put(k, image->type, 2);
	put(k, image->machine, 2);
	put(k, EV_CURRENT, 4);
	put_word(k, image->entry);
	put_word(k, p->phnum ? p->ehsize : 0);
	put_word(k, p->shnum ? p->shoff : 0);
	put(k, image->flags, 4);
	put(k, p->ehsize, 2);
	put(k, p->phentsize, 2);
	put(k, p->phnum, 2);
	put(k, p->shentsize, 2);
	/* Section 0 has numbers that are too large. */
	put(k, p->shnum < SHN_LORESERVE ? p->shnum : 0, 2);
	put(k, image->shstrndx < SHN_LORESERVE ? image->shstrndx : SHN_XINDEX, 2);
}

static void put_segments(struct skeleton *k)
{
	const struct fathom_image *image = &k->o->image;
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++) {
		if (!fathom_image_segment(image, i, &s) || s.type != PT_LOAD)
			continue;
		put(k, s.type, 4);
		if (image->is64)
			put(k, s.flags, 4);
		put_word(k, s.off);
		put_word(k, s.vaddr);
		put_word(k, s.vaddr);
		put_word(k, s.filesz);
		put_word(k, s.memsz);
		if (!image->is64)
			put(k, s.flags, 4);
		put_word(k, s.align);
	}
}

/* Returns the header of a section, as the skeleton has it: without content. */
static struct fathom_section header_of(const struct skeleton *k, uint32_t i, const struct places *p)
{
	struct fathom_section s = k->o->sections[i].header;
	const bool relocates = s.type == SHT_RELA || s.type == SHT_REL;

	s.off = 0;
	if (!i) {
		s = (struct fathom_section){
			.size = p->shnum < SHN_LORESERVE ? 0 : p->shnum,
			.link = k->o->image.shstrndx < SHN_LORESERVE ? 0 : k->o->image.shstrndx,
		};
	} else if (i == k->o->image.shstrndx) {
		s = (struct fathom_section){
			.type = SHT_STRTAB, .off = p->names_off, .size = k->names.n, .align = 1
		};
	} else if (relocates && k->o->image.type == ET_REL) {
		/* Which sections are relocated decides how they are laid out. */
		s.size = 0;
	} else if (s.type != SHT_NULL && !((s.flags & SHF_TLS) && s.type != SHT_NOBITS)) {
		s.type = SHT_NOBITS;
	}
	return s;
}

static void put_sections(struct skeleton *k, const struct places *p)
{
	const bool is64 = k->o->image.is64;
	uint32_t name = 1;

	for (uint32_t i = 0; i < p->shnum; i++) {
		const struct fathom_section s = header_of(k, i, p);
		const struct fathom_str text = k->o->sections[i].header.name;

		put(k, text.data ? name : 0, 4);
		name += text.data ? text.size + 1 : 0;
		put(k, s.type, 4);
		put_word(k, s.flags);
		put_word(k, s.addr);
		put_word(k, s.off);
		put_word(k, s.size);
		put(k, s.link, 4);
		put(k, s.info, 4);
		put_word(k, s.align);
		put(k, s.entsize, is64 ? 8 : 4);
	}
}

/* Collects the names of the sections, in their order. */
static fathom_err collect_names(struct skeleton *k)
{
	if (!fathom_array_push(&k->names, '\0'))
		return FATHOM_E_MEMORY;
	for (uint32_t i = 0; i < k->o->n_sections; i++) {
		const struct fathom_str name = k->o->sections[i].header.name;

		if (!name.data)
			continue;
		if (k->names.n + name.size > MAX_BYTES / 2)
			return FATHOM_E_LIMIT;
		if (!fathom_array_room(&k->names, (size_t)name.size + 1))
			return FATHOM_E_MEMORY;
		memcpy(k->names.items + k->names.n, name.data, name.size);
		k->names.n += name.size;
		k->names.items[k->names.n++] = '\0';
	}
	return FATHOM_OK;
}

static fathom_err write_skeleton(struct skeleton *k, struct fathom_bytes *ret)
{
	struct places p;

	FATHOM_TRY(collect_names(k));
	p = places_of(k);
	if (p.size > MAX_BYTES || p.shnum > MAX_SECTIONS || p.phnum > MAX_SEGMENTS)
		return FATHOM_E_LIMIT;
	k->data = calloc(1, (size_t)p.size);
	if (!k->data)
		return FATHOM_E_MEMORY;
	put_header(k, &p);
	put_segments(k);
	k->at = p.shoff;
	put_sections(k, &p);
	memcpy(k->data + p.names_off, k->names.items, k->names.n);
	*ret = (struct fathom_bytes){ k->data, p.size };
	return FATHOM_OK;
}

fathom_err fathom_skeleton_make(const struct fathom_object *o, struct fathom_bytes *ret)
{
	struct skeleton k = { .o = o };
	const fathom_err err = write_skeleton(&k, ret);

	fathom_array_free(&k.names);
	return err;
}
