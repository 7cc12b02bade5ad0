/* SPDX-License-Identifier: MIT */
/*
 * Which files were mapped where, for a core without the note NT_FILE: Linux leaves it out when
 * there are more than 65,535 mappings (it would be larger than core_file_note_size_limit), and
 * gcore writes it last, where a core is cut first.
 *
 * ELF headers are stored of all programs and libraries; their program headers say which memory is
 * theirs. What they are called stands in the list that the dynamic linker keeps for debuggers
 * (<link.h>, struct r_debug, which DT_DEBUG of the program leads to), and, of the program itself,
 * in AT_EXECFN. An ELF file that is in no such list must have code that may be run: else it was
 * mapped to be read.
 */
#ifndef FATHOM_TARGET_SPACE_CORE_LINK_H
#define FATHOM_TARGET_SPACE_CORE_LINK_H

#include "host/target/space/core_range.h"
#include "host/target/space/dump.h"

/* What the core says otherwise. */
struct fathom_core_facts {
	uint64_t vdso;   /* avma of its ELF header, which is of no file */
	uint64_t execfn; /* avma of the path that was executed */
};

/*
 * Finds the ranges, not sorted; *@ret may stay without any. Sets @d->entry where that is not known.
 * @loads are the PT_LOADs. FATHOM_E_MEMORY.
 */
fathom_err fathom_core_link_files(struct fathom_dump *d, const struct fathom_core_ranges *loads,
				  const struct fathom_core_facts *facts,
				  struct fathom_core_ranges *ret);

#endif
