/* SPDX-License-Identifier: MIT */
/*
 * How glibc's structures are laid out in a program, and where it keeps them. glibc tells debuggers:
 * _thread_db_STRUCT_MEMBER are three words, the size of the member in bits, how many there are, its
 * offset (glibc's nptl_db/structs.def and db_info.c). From glibc 2.34 on.
 */
#ifndef FATHOM_RUNTIME_GLIBC_H
#define FATHOM_RUNTIME_GLIBC_H

#include "host/runtime/runtime.h"

struct fathom_glibc_member {
	uint64_t size; /* bytes */
	uint64_t off;
};

struct fathom_glibc {
	const struct fathom_image *image; /* of the main program */
	uint64_t global;                  /* avma of _rtld_global */
	/* threads: of _rtld_global, of list_t, of struct pthread */
	struct fathom_glibc_member stack_user, stack_used, next, list, tid;
	/* TLS: of struct pthread, its vector, an entry, an entry's block, its first word */
	struct fathom_glibc_member dtvp, dtv, value, counter;
	/* numbers of modules: of struct link_map, of _rtld_global, of struct dtv_slotinfo_list */
	struct fathom_glibc_member modid, slots, slot_len, slot_next, slot_info, slot_gen, slot_map;
	uint64_t slot_size; /* bytes of struct dtv_slotinfo */
};

/* Finds the description, read once; NULL: the program has none. FATHOM_E_MEMORY. */
fathom_err fathom_glibc_read(struct fathom_runtime *r, const struct fathom_glibc **ret);

#endif
