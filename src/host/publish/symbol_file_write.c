/* SPDX-License-Identifier: MIT */
#include <elf.h>

#include "host/publish/frame_image.h"
#include "safe/jit/registry.h"

/* Sections, in their order. The last three are there if there are lines. */
enum {
	TEXT = FATHOM_REGISTRY_TEXT,
	EH_FRAME = FATHOM_REGISTRY_FRAMES,
	SYMTAB = FATHOM_REGISTRY_SYMBOLS,
	STRTAB = FATHOM_REGISTRY_STRINGS,
	FUNCTIONS = FATHOM_REGISTRY_FUNCTIONS,
	SHSTRTAB = FATHOM_REGISTRY_N,
	N_WITHOUT_LINES,
	DEBUG_ABBREV = N_WITHOUT_LINES,
	DEBUG_LINE,
	DEBUG_INFO,
	N_WITH_LINES
};

static const char *const section_names[] = {
	"",
	".text",
	".eh_frame",
	".symtab",
	".strtab",
	FATHOM_REGISTRY_SECTION,
	".shstrtab",
	".debug_abbrev",
	".debug_line",
	".debug_info",
};

/* .text of one file; what is beyond is in the last one. */
#define MOST_TEXTS 4096

/*
 * Functions of one arena, which follow each other in a leaf, and their .text. gdb finds who is at
 * an address by loaded sections (SHF_ALLOC), and takes them not to overlap: one that reached from
 * one arena to another, or lay within a file's, would hide the names there.
 */
struct run {
	size_t first;
	size_t end;
	uint16_t section;
};

/*
 * Makes @r the next run of @leaf, or, if it is all zero, the first; false: there is none. @others:
 * sections before the second .text.
 */
static bool next_run(const struct fathom_jit_leaf *leaf, uint16_t others, struct run *r)
{
	if (r->end == leaf->n)
		return false;
	r->first = r->end;
	r->section = !r->section ? TEXT : r->section == TEXT ? others : (uint16_t)(r->section + 1);
	do
		r->end++;
	while (r->end < leaf->n &&
	       (r->section - others == MOST_TEXTS ||
		leaf->entries[r->end]->arena == leaf->entries[r->first]->arena));
	return true;
}

static Elf64_Shdr text_of(const struct fathom_jit_leaf *leaf, const struct run *r)
{
	const struct fathom_jit_entry *first = leaf->entries[r->first];

	return (Elf64_Shdr){ .sh_type = SHT_NOBITS,
			     .sh_flags = first->arena->is_within_file ? SHF_EXECINSTR
								      : SHF_ALLOC | SHF_EXECINSTR,
			     .sh_addr = first->low,
			     .sh_size = fathom_jit_high(leaf->entries[r->end - 1]) - first->low,
			     .sh_addralign = 1 };
}

/* Where a section was written. */
static void note(Elf64_Shdr *s, const struct fathom_out *o, size_t from)
{
	s->sh_offset = from;
	s->sh_size = o->n - from;
}

/* Appends the names of all sections, and says where they stand. */
static void put_section_names(struct fathom_out *o, Elf64_Shdr *s)
{
	const size_t from = o->n;

	for (size_t i = 0; i < N_WITH_LINES; i++) {
		s[i].sh_name = (uint32_t)(o->n - from);
		fathom_out_bytes(o, section_names[i], strlen(section_names[i]) + 1);
	}
	note(&s[SHSTRTAB], o, from);
}

static void put_symbols(struct fathom_out *o, const struct fathom_jit_leaf *leaf, uint16_t others)
{
	struct run r = { 0 };
	Elf64_Sym sym = { 0 };
	uint32_t name = 1;

	fathom_out_bytes(o, &sym, sizeof sym);
	sym.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_jit_entry *e = leaf->entries[i];

		if (i == r.end)
			(void)next_run(leaf, others, &r);
		sym.st_shndx = r.section;
		sym.st_name = name;
		sym.st_value = e->low;
		sym.st_size = e->body->size;
		fathom_out_bytes(o, &sym, sizeof sym);
		name += e->body->n_name + 1;
	}
}

static void put_names(struct fathom_out *o, const struct fathom_jit_leaf *leaf)
{
	fathom_out_u8(o, 0);
	for (size_t i = 0; i < leaf->n; i++)
		fathom_out_bytes(o, leaf->entries[i]->body->name,
				 leaf->entries[i]->body->n_name + 1);
}

static void put_functions(const struct fathom_jit_registry *r, struct fathom_out *o,
			  const struct fathom_jit_leaf *leaf)
{
	for (size_t i = 0; i < leaf->n; i++) {
		const struct fathom_jit_entry *e = leaf->entries[i];
		const struct fathom_registry_function f = { e->since, r->fdes.items[i],
							    e->body->n_name };

		fathom_out_bytes(o, &f, sizeof f);
	}
}

static void put_debug(struct fathom_jit_registry *r, struct fathom_out *o,
		      const struct fathom_jit_leaf *leaf, Elf64_Shdr *s)
{
	size_t from = o->n;

	fathom_jit_abbrevs_write(o);
	note(&s[DEBUG_ABBREV], o, from);
	from = o->n;
	fathom_jit_lines_write(r, o, leaf);
	note(&s[DEBUG_LINE], o, from);
	from = o->n;
	fathom_jit_info_write(o, leaf);
	note(&s[DEBUG_INFO], o, from);
}

static void put_sections(struct fathom_jit_registry *r, struct fathom_out *o,
			 const struct fathom_jit_leaf *leaf, struct fathom_jit_image *image,
			 Elf64_Shdr *s, uint16_t n)
{
	size_t from = o->n;

	fathom_jit_image_write(r, o, leaf, image);
	note(&s[EH_FRAME], o, from);
	fathom_out_align(o, 8);
	from = o->n;
	put_symbols(o, leaf, n);
	note(&s[SYMTAB], o, from);
	from = o->n;
	put_functions(r, o, leaf);
	note(&s[FUNCTIONS], o, from);
	from = o->n;
	put_names(o, leaf);
	note(&s[STRTAB], o, from);
	put_section_names(o, s);
	if (n == N_WITH_LINES)
		put_debug(r, o, leaf, s);
	fathom_out_align(o, 8);
}

static void describe_sections(Elf64_Shdr *s, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		s[i].sh_type = SHT_PROGBITS;
		s[i].sh_addralign = 1;
	}
	s[EH_FRAME].sh_addralign = 8;
	s[SYMTAB].sh_type = SHT_SYMTAB;
	s[SYMTAB].sh_link = STRTAB;
	s[SYMTAB].sh_info = 1;
	s[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	s[SYMTAB].sh_addralign = 8;
	s[STRTAB].sh_type = SHT_STRTAB;
	s[FUNCTIONS].sh_entsize = sizeof(struct fathom_registry_function);
	s[FUNCTIONS].sh_addralign = 8;
	s[SHSTRTAB].sh_type = SHT_STRTAB;
}

/* Appends the headers of all sections; returns their number. */
static Elf64_Half put_headers(struct fathom_out *o, const struct fathom_jit_leaf *leaf,
			      Elf64_Shdr *s, uint16_t n)
{
	const uint64_t off = o->n;
	const uint32_t name = s[TEXT].sh_name;
	struct run r = { 0 };
	Elf64_Half n_all = n;

	describe_sections(s, n);
	while (next_run(leaf, n, &r)) {
		Elf64_Shdr text = text_of(leaf, &r);

		text.sh_name = name;
		text.sh_offset = off;
		if (r.section == TEXT) {
			s[TEXT] = text;
			fathom_out_bytes(o, s, n * sizeof *s);
			continue;
		}
		fathom_out_bytes(o, &text, sizeof text);
		n_all++;
	}
	return n_all;
}

void fathom_jit_symbol_file_write(struct fathom_jit_registry *r, struct fathom_out *o,
				  const struct fathom_jit_leaf *leaf,
				  struct fathom_jit_image *image)
{
	const uint16_t n = fathom_jit_leaf_has_lines(leaf) ? N_WITH_LINES : N_WITHOUT_LINES;
	Elf64_Shdr s[N_WITH_LINES] = { 0 };
	Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = r->machine->elf,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof e,
		.e_shentsize = sizeof *s,
		.e_shstrndx = SHSTRTAB,
	};

	fathom_out_bytes(o, &e, sizeof e);
	put_sections(r, o, leaf, image, s, n);
	e.e_shoff = o->n;
	e.e_shnum = put_headers(o, leaf, s, n);
	if (o->n <= o->cap)
		memcpy(o->at, &e, sizeof e);
}
