/* SPDX-License-Identifier: MIT */
/*
 * The relocations of a file by the address they change: what the loader will write into a slot
 * (those that are loaded, as .rela.dyn), and what the linker will write into code and data of a
 * relocatable file. Types: x86-64, i386 and aarch64 psABIs. What is not handled: tables that only
 * DT_ entries describe.
 */
#ifndef FATHOM_FILE_FIXUPS_H
#define FATHOM_FILE_FIXUPS_H

#include "host/file/object.h"

enum fathom_fixup_kind {
	FATHOM_FIXUP_OTHER,    /* nothing that names an address */
	FATHOM_FIXUP_ADDRESS,  /* symbol + addend */
	FATHOM_FIXUP_PCREL,    /* symbol + addend - place */
	FATHOM_FIXUP_BRANCH,   /* symbol + addend, where an instruction goes */
	FATHOM_FIXUP_PAGE,     /* a part of symbol + addend, to be completed */
	FATHOM_FIXUP_LOW,      /* the other part of it */
	FATHOM_FIXUP_GOT,      /* the distance to a slot that holds the symbol's address */
	FATHOM_FIXUP_GOT_PAGE, /* a part of such a slot's address */
	FATHOM_FIXUP_GOT_LOW,  /* the other part of it */
	FATHOM_FIXUP_BASE,     /* the addend, an address of the file itself */
};

struct fathom_fixup {
	uint64_t svma; /* of what it changes */
	uint64_t addend;
	struct fathom_str name; /* of the symbol, without version; data NULL: none */
	uint64_t value;         /* svma of the symbol, where defined */
	uint8_t kind;           /* enum fathom_fixup_kind */
	bool defined;           /* the symbol is in this file */
};

/* All of one file, sorted. */
struct fathom_fixups;

/* Views of @o, which must stay; NULL without memory. */
struct fathom_fixups *fathom_fixups_create(const struct fathom_object *o);
void fathom_fixups_destroy(struct fathom_fixups *f);

/*
 * The first, from number *@i on, that changes something in [@low, @high); *@i is then its number.
 * The search starts with *@i = 0.
 */
bool fathom_fixups_find(const struct fathom_fixups *f, uint64_t low, uint64_t high, size_t *i,
			struct fathom_fixup *ret);

#endif
