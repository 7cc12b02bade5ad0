/* SPDX-License-Identifier: MIT */
/*
 * The relocations of a file by the address that they change: loaded tables (.rela.dyn), by which
 * the loader fills slots, and in relocatable files those by which the linker changes code and data.
 * Types: x86-64, i386 and aarch64 psABIs. Not handled: tables that only DT_ entries describe.
 */
#ifndef FATHOM_FILE_FIXUPS_H
#define FATHOM_FILE_FIXUPS_H

#include "host/file/object.h"

enum fathom_fixup_kind {
	FATHOM_FIXUP_OTHER,    /* names no address */
	FATHOM_FIXUP_ADDRESS,  /* symbol + addend */
	FATHOM_FIXUP_PCREL,    /* symbol + addend - place */
	FATHOM_FIXUP_BRANCH,   /* symbol + addend, the target of a branch */
	FATHOM_FIXUP_PAGE,     /* the upper part of symbol + addend */
	FATHOM_FIXUP_LOW,      /* its lower part */
	FATHOM_FIXUP_GOT,      /* distance to a slot with the symbol's address */
	FATHOM_FIXUP_GOT_PAGE, /* the upper part of such a slot's address */
	FATHOM_FIXUP_GOT_LOW,  /* its lower part */
	FATHOM_FIXUP_BASE,     /* the addend, an address of this file */
};

struct fathom_fixup {
	uint64_t svma; /* of the change */
	uint64_t addend;
	struct fathom_str name; /* symbol without version; data is NULL if it has none */
	uint64_t value;         /* svma of the symbol, if defined */
	uint8_t kind;           /* enum fathom_fixup_kind */
	bool defined;           /* the symbol is in this file */
};

/* All relocations of one file, sorted. */
struct fathom_fixups;

/* Indexes the relocations of @o, which must stay open; NULL without memory. */
struct fathom_fixups *fathom_fixups_create(const struct fathom_object *o);
void fathom_fixups_destroy(struct fathom_fixups *f);

/*
 * Finds the first one from index *@i on that changes something in [@low, @high), and sets *@i to
 * its index. Start with *@i = 0.
 */
bool fathom_fixups_find(const struct fathom_fixups *f, uint64_t low, uint64_t high, size_t *i,
			struct fathom_fixup *ret);

#endif
