/* SPDX-License-Identifier: MIT */
/*
 * Layout and location of glibc's structures in a program, as glibc describes them for debuggers:
 * _thread_db_STRUCT_MEMBER is three words, the member's size in bits, its count and its offset
 * (glibc's nptl_db/structs.def and db_info.c). From glibc 2.34 on.
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
	/* threads: members of _rtld_global, list_t and struct pthread */
	struct fathom_glibc_member stack_user, stack_used, next, list, tid;
	/* TLS: members of struct pthread, its dtv, an entry: its block, the dtv's first word */
	struct fathom_glibc_member dtvp, dtv, value, counter;
	/* module numbers: members of struct link_map, _rtld_global and struct dtv_slotinfo_list */
	struct fathom_glibc_member modid, slots, slot_len, slot_next, slot_info, slot_gen, slot_map;
	uint64_t slot_size; /* bytes of struct dtv_slotinfo */
	/*
	 * thread-specific data: members of struct pthread, of a block of values, of a value; the
	 * size of a value in bytes, 0: not described
	 */
	struct fathom_glibc_member specific, level2_data, key_seq, key_value;
	uint64_t key_data_size;
};

/* Finds the description and reads it once; sets NULL if the program has none. FATHOM_E_MEMORY. */
fathom_err fathom_glibc_read(struct fathom_runtime *r, const struct fathom_glibc **ret);

#endif
