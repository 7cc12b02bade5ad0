/* SPDX-License-Identifier: MIT */
/*
 * Indexes that answer alone: complete, in an order that depends on nothing but the files, and with
 * the names that otherwise come from the file itself. And modules that are such an index.
 */
#ifndef FATHOM_MODULE_INDEX_ALONE_H
#define FATHOM_MODULE_INDEX_ALONE_H

#include "host/module/module.h"
#include "safe/index/index.h"

/* Bits of how complete an index is: the higher number wins. */
#define FATHOM_INDEX_HAS_FILE   1u /* made from the file itself, not from its debug file alone */
#define FATHOM_INDEX_HAS_SYMTAB 2u /* has symbols that nobody needs to load the file */
#define FATHOM_INDEX_HAS_LINES  4u /* has debug information */

/* An index with its skeleton, and what is told of them. */
struct fathom_alone {
	struct fathom_bytes index;    /* free() */
	struct fathom_bytes skeleton; /* free() */
	uint64_t debug_size;          /* of the file with the debug information, or the symbols */
	uint64_t debug_check;         /* checksum of all of it */
	uint64_t debug_info_size;     /* bytes of its debug sections, decompressed */
	uint32_t level;               /* FATHOM_INDEX_HAS_ bits */
};

/*
 * Makes the index of @m, which no other thread uses, and which has a build-id.
 * FATHOM_E_UNSUPPORTED: it has none, or not all of it can be decoded.
 */
fathom_err fathom_alone_make(struct fathom_module *m, struct fathom_alone *ret,
			     struct fathom_errinfo *reterr);
void fathom_alone_deinit(struct fathom_alone *a);

#endif
