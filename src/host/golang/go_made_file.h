/* SPDX-License-Identifier: MIT */
/* An ELF file of sections that are made in memory. */
#ifndef FATHOM_GOLANG_GO_MADE_FILE_H
#define FATHOM_GOLANG_GO_MADE_FILE_H

#include <elf.h>

#include "host/file/object.h"
#include "safe/dwarf/cfi_write.h"

/* The bytes of a section, in pages, which grow, and are counted against the budget. */
struct fathom_go_part {
	struct fathom_memory *memory;
	struct fathom_out out;
};

/* Makes room for @size more bytes. FATHOM_E_MEMORY, or FATHOM_E_LIMIT beyond the budget. */
fathom_err fathom_go_part_room(struct fathom_go_part *p, size_t size);
void fathom_go_part_free(struct fathom_go_part *p);

struct fathom_go_section {
	const char *name;
	Elf64_Shdr header; /* without name, offset and size */
	const struct fathom_go_part *part;
};

/* Ranges of code that sections are made of, as symbols need them. */
#define FATHOM_GO_MOST_TEXTS 64

/*
 * Makes a file called as @main is, of @n sections after those of its code, which have the numbers
 * from 1 on (fathom_go_text_at()).
 */
fathom_err fathom_go_file(struct fathom_memory *m, const struct fathom_object *main,
			  const struct fathom_go_section *sections, size_t n,
			  struct fathom_object **ret);

/* Returns the number of sections of code that a file made of @main has. */
uint32_t fathom_go_texts(const struct fathom_object *main);

/* Returns the number of the section that has the code at @svma, or 0. */
uint32_t fathom_go_text_at(const struct fathom_object *main, uint64_t svma);

#endif
