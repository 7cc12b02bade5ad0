/* SPDX-License-Identifier: MIT */
#include "host/golang/go_made_file.h"

fathom_err fathom_go_part_room(struct fathom_go_part *p, size_t size)
{
	const size_t wanted = p->out.n + size;
	size_t cap = p->out.cap ? p->out.cap : (size_t)1 << 16;
	void *at;

	if (wanted <= p->out.cap)
		return FATHOM_OK;
	while (cap < wanted)
		cap *= 2;
	if (!fathom_memory_fits(p->memory, cap - p->out.cap))
		return FATHOM_E_LIMIT;
	at = fathom_pages_grow(p->out.at, p->out.cap, cap);
	if (!at)
		return FATHOM_E_MEMORY;
	fathom_memory_count(p->memory, cap - p->out.cap);
	p->out.at = at;
	p->out.cap = cap;
	return FATHOM_OK;
}

void fathom_go_part_free(struct fathom_go_part *p)
{
	fathom_memory_uncount(p->memory, p->out.cap);
	fathom_pages_free(p->out.at, p->out.cap);
	p->out = (struct fathom_out){ 0 };
}

uint32_t fathom_go_texts(const struct fathom_object *main)
{
	return main->n_code < FATHOM_GO_MOST_TEXTS ? main->n_code : FATHOM_GO_MOST_TEXTS;
}

uint32_t fathom_go_text_at(const struct fathom_object *main, uint64_t svma)
{
	const struct fathom_range *range = fathom_object_code_at(main, svma);
	const size_t number = range ? (size_t)(range - main->code) + 1 : 0;

	return number <= fathom_go_texts(main) ? (uint32_t)number : 0;
}

/* Appends the headers of all sections, whose bytes stand from @off on, and their names. */
static void put_headers(struct fathom_out *o, const struct fathom_object *main,
			const struct fathom_go_section *sections, size_t n, uint64_t off,
			Elf64_Ehdr *e)
{
	const uint32_t texts = fathom_go_texts(main);
	const Elf64_Shdr none = { 0 };
	const size_t names = o->n;
	Elf64_Shdr strings = { .sh_type = SHT_STRTAB, .sh_offset = names, .sh_addralign = 1 };
	uint32_t name = 1;

	fathom_out_u8(o, 0);
	for (size_t i = 0; i < n; i++)
		fathom_out_bytes(o, sections[i].name, strlen(sections[i].name) + 1);
	strings.sh_size = o->n - names;
	fathom_out_align(o, 8);
	e->e_shoff = o->n;
	e->e_shnum = (uint16_t)(1 + texts + n + 1);
	e->e_shstrndx = (uint16_t)(e->e_shnum - 1);
	fathom_out_bytes(o, &none, sizeof none);
	for (uint32_t i = 0; i < texts; i++) {
		const Elf64_Shdr text = { .sh_type = SHT_NOBITS,
					  .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					  .sh_addr = main->code[i].low,
					  .sh_size = main->code[i].high - main->code[i].low,
					  .sh_addralign = 1 };

		fathom_out_bytes(o, &text, sizeof text);
	}
	for (size_t i = 0; i < n; i++) {
		Elf64_Shdr s = sections[i].header;

		s.sh_name = name;
		s.sh_offset = off;
		s.sh_size = sections[i].part->out.n;
		fathom_out_bytes(o, &s, sizeof s);
		name += (uint32_t)strlen(sections[i].name) + 1;
		off += (s.sh_size + 7) & ~UINT64_C(7);
	}
	fathom_out_bytes(o, &strings, sizeof strings);
}

/* Room for the headers and names of sections. */
#define HEADERS_SIZE ((FATHOM_GO_MOST_TEXTS + 16) * sizeof(Elf64_Shdr) + 1024)

fathom_err fathom_go_file(struct fathom_memory *m, const struct fathom_object *main,
			  const struct fathom_go_section *sections, size_t n,
			  struct fathom_object **ret)
{
	struct fathom_go_part all = { .memory = m };
	struct fathom_file *file;
	Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = main->image.machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof e,
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	size_t size = sizeof e + HEADERS_SIZE;
	fathom_err err;

	for (size_t i = 0; i < n; i++)
		size += sections[i].part->out.n + 8;
	FATHOM_TRY(fathom_go_part_room(&all, size));
	fathom_out_bytes(&all.out, &e, sizeof e);
	for (size_t i = 0; i < n; i++) {
		fathom_out_bytes(&all.out, sections[i].part->out.at, sections[i].part->out.n);
		fathom_out_align(&all.out, 8);
	}
	put_headers(&all.out, main, sections, n, sizeof e, &e);
	memcpy(all.out.at, &e, sizeof e);
	err = fathom_file_wrap(m, main->file->path, all.out.at, all.out.n, all.out.cap, &file);
	if (err) {
		fathom_go_part_free(&all);
		return err;
	}
	/* The file counts its pages, too. */
	fathom_memory_uncount(m, all.out.cap);
	return fathom_object_create(m, file, ret, NULL);
}
