/* SPDX-License-Identifier: MIT */
#include "host/jit/symbol_file.h"

#include <elf.h>

enum { ALL_MEMORY = 1, SYMBOLS, STRINGS, N_SECTIONS };

/* The offsets of the parts, in bytes. */
struct layout {
	uint64_t symbols;
	uint64_t strings;
	uint64_t sections;
	uint64_t size;
};

/* Lays out the file. String 0 is empty; offsets of names have 32 bits. */
static fathom_err lay_out(const struct fathom_jit_code_symbol *symbols, size_t n,
			  struct layout *ret)
{
	uint64_t strings = 1;

	for (size_t i = 0; i < n; i++)
		strings += (uint64_t)symbols[i].name.size + 1;
	if (n >= UINT32_MAX || strings > UINT32_MAX)
		return FATHOM_E_LIMIT;
	ret->symbols = sizeof(Elf64_Ehdr);
	ret->strings = ret->symbols + (n + 1) * sizeof(Elf64_Sym);
	ret->sections = (ret->strings + strings + 7) / 8 * 8;
	ret->size = ret->sections + N_SECTIONS * sizeof(Elf64_Shdr);
	return FATHOM_OK;
}

static void put_header(uint8_t *file, const struct layout *l)
{
	const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	const Elf64_Ehdr h = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			     little ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT },
		.e_type = ET_EXEC,
		/* Any machine without special symbols will do: no code is read. */
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = l->sections,
		.e_ehsize = sizeof h,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = N_SECTIONS,
	};

	memcpy(file, &h, sizeof h);
}

static void put_sections(uint8_t *file, const struct layout *l)
{
	const Elf64_Shdr s[N_SECTIONS] = {
		[ALL_MEMORY] = { .sh_type = SHT_NOBITS,
				 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				 .sh_size = INT64_MAX },
		[SYMBOLS] = { .sh_type = SHT_SYMTAB,
			      .sh_offset = l->symbols,
			      .sh_size = l->strings - l->symbols,
			      .sh_link = STRINGS,
			      .sh_info = 1,
			      .sh_entsize = sizeof(Elf64_Sym) },
		[STRINGS] = { .sh_type = SHT_STRTAB,
			      .sh_offset = l->strings,
			      .sh_size = l->sections - l->strings },
	};

	memcpy(file + l->sections, s, sizeof s);
}

/* Writes symbols and names into zeros, which provide symbol 0, string 0 and each terminator. */
static void put_symbols(uint8_t *file, const struct layout *l,
			const struct fathom_jit_code_symbol *symbols, size_t n)
{
	uint64_t name = 1;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_jit_code_symbol *s = &symbols[i];
		const Elf64_Sym sym = { .st_name = (Elf64_Word)name,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = ALL_MEMORY,
					.st_value = s->start,
					.st_size = s->size };

		memcpy(file + l->symbols + (i + 1) * sizeof sym, &sym, sizeof sym);
		memcpy(file + l->strings + name, s->name.data, s->name.size);
		name += (uint64_t)s->name.size + 1;
	}
}

fathom_err fathom_symbol_file_make(struct fathom_memory *m, const char *name,
				   const struct fathom_jit_code_symbol *symbols, size_t n,
				   struct fathom_object **ret)
{
	struct fathom_file *file;
	struct layout l;
	uint8_t *pages;

	FATHOM_TRY(lay_out(symbols, n, &l));
	if (!fathom_memory_fits(m, l.size))
		return FATHOM_E_LIMIT;
	pages = fathom_pages_alloc(l.size);
	if (!pages)
		return FATHOM_E_MEMORY;
	put_header(pages, &l);
	put_symbols(pages, &l, symbols, n);
	put_sections(pages, &l);
	if (fathom_file_wrap(m, name, pages, l.size, l.size, &file)) {
		fathom_pages_free(pages, l.size);
		return FATHOM_E_MEMORY;
	}
	return fathom_object_create(m, file, ret, NULL);
}
