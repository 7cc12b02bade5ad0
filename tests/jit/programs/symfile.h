/* SPDX-License-Identifier: MIT */
/* The smallest symbol file that GDB's JIT interface can be given. */
#ifndef SYMFILE_H
#define SYMFILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CODE_SIZE 64

/* A relocatable file with one function, its section where the code is. */
struct symfile {
	Elf64_Ehdr header;
	Elf64_Sym symbols[2];
	char strings[16]; /* "", "f0000000" */
	char names[32];
	Elf64_Shdr sections[5];
};

static void make_symfile(struct symfile *f, uint32_t number, uint64_t code)
{
	memset(f, 0, sizeof *f);
	memcpy(f->header.e_ident, ELFMAG "\2\1\1", 7);
	f->header.e_type = ET_REL;
	f->header.e_machine = EM_X86_64;
	f->header.e_version = 1;
	f->header.e_ehsize = sizeof f->header;
	f->header.e_shoff = offsetof(struct symfile, sections);
	f->header.e_shentsize = sizeof *f->sections;
	f->header.e_shnum = 5;
	f->header.e_shstrndx = 4;
	snprintf(f->strings + 1, sizeof f->strings - 1, "f%07u", number);
	memcpy(f->names, "\0.text\0.symtab\0.strtab", 23);
	f->symbols[1].st_name = 1;
	f->symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	f->symbols[1].st_shndx = 1;
	f->symbols[1].st_size = CODE_SIZE;
	f->sections[1] = (Elf64_Shdr){ .sh_name = 1,
				       .sh_type = SHT_NOBITS,
				       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				       .sh_addr = code,
				       .sh_size = CODE_SIZE };
	f->sections[2] = (Elf64_Shdr){ .sh_name = 7,
				       .sh_type = SHT_SYMTAB,
				       .sh_offset = offsetof(struct symfile, symbols),
				       .sh_size = sizeof f->symbols,
				       .sh_entsize = sizeof *f->symbols,
				       .sh_link = 3,
				       .sh_info = 1 };
	f->sections[3] = (Elf64_Shdr){ .sh_name = 15,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct symfile, strings),
				       .sh_size = sizeof f->strings };
	f->sections[4] = (Elf64_Shdr){ .sh_name = 15,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct symfile, names),
				       .sh_size = sizeof f->names };
}

#endif
