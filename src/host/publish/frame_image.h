/* SPDX-License-Identifier: MIT */
/* Images of call frame information, and the symbol files of leaves. */
#ifndef FATHOM_PUBLISH_FRAME_IMAGE_H
#define FATHOM_PUBLISH_FRAME_IMAGE_H

#include <elf.h>

#include "host/publish/publish.h"

/* Where .eh_frame begins in symbol files. */
#define FATHOM_JIT_FRAMES_OFF sizeof(Elf64_Ehdr)

/*
 * Makes the image of @e alone, if something is said of it and it has none, or of all of @arena.
 * False without memory.
 */
bool fathom_jit_image_of_entry(struct fathom_jit_registry *r, struct fathom_jit_entry *e);
bool fathom_jit_image_of_arena(struct fathom_jit_registry *r, struct fathom_jit_arena *arena);

/* Frees @image, which may be NULL. No unwinder may know it. */
void fathom_jit_image_free(struct fathom_jit_registry *r, struct fathom_jit_image *image);

/*
 * Makes what consumers are told of @leaf: the image and, if @symbols, the symbol file around it.
 * False without memory.
 */
bool fathom_jit_leaf_build(struct fathom_jit_registry *r, struct fathom_jit_leaf *leaf,
			   bool symbols);
void fathom_jit_leaf_free(struct fathom_jit_registry *r, struct fathom_jit_leaf *leaf);

/* Appends CIEs and FDEs of the functions of @leaf, and a terminator. */
void fathom_jit_image_write(struct fathom_jit_registry *r, struct fathom_out *o,
			    const struct fathom_jit_leaf *leaf, struct fathom_jit_image *image);

/*
 * Appends the symbol file of @leaf: an ELF file (System V ABI, chapter 4) that has a .text where
 * each arena has code, without bytes, with .eh_frame, .symtab, FATHOM_REGISTRY_SECTION
 * and, if there are lines, DWARF 4 (.debug_info,
 * .debug_line, .debug_abbrev). *image is what .eh_frame has, which begins at FATHOM_JIT_FRAMES_OFF.
 */
void fathom_jit_symbol_file_write(struct fathom_jit_registry *r, struct fathom_out *o,
				  const struct fathom_jit_leaf *leaf,
				  struct fathom_jit_image *image);

/* Returns whether a function of @leaf has lines or inlined calls. */
bool fathom_jit_leaf_has_lines(const struct fathom_jit_leaf *leaf);

/* Appends .debug_abbrev, .debug_line and .debug_info of @leaf (DWARF 4, 7.5 and 6.2). */
void fathom_jit_abbrevs_write(struct fathom_out *o);
void fathom_jit_lines_write(struct fathom_jit_registry *r, struct fathom_out *o,
			    const struct fathom_jit_leaf *leaf);
void fathom_jit_info_write(struct fathom_out *o, const struct fathom_jit_leaf *leaf);

#endif
