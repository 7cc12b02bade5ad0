/* SPDX-License-Identifier: MIT */
/*
 * Finds which files were mapped where, for a core without the note NT_FILE. Linux omits the note if
 * there are more than 65,535 mappings (it would exceed core_file_note_size_limit); gcore writes it
 * last, where truncation hits first.
 *
 * Cores store the ELF headers of all programs and libraries; the program headers give their memory
 * ranges. Their names are in the dynamic linker's list for debuggers (<link.h>, struct r_debug, to
 * which the program's DT_DEBUG points); the program's own is in AT_EXECFN. An ELF file outside that
 * list counts only if its code is mapped executable: otherwise it was mapped to be read.
 */
#ifndef FATHOM_USER_CORE_LINK_H
#define FATHOM_USER_CORE_LINK_H

#include "host/space/user/core_range.h"
#include "host/space/user/dump.h"

/* The name of a program of which the core does not tell the path. */
#define FATHOM_CORE_UNNAMED "[unnamed]"

/* Facts from elsewhere in the core. */
struct fathom_core_facts {
	uint64_t vdso;   /* avma of its ELF header; it has no file */
	uint64_t execfn; /* avma of the path that was executed */
	uint64_t phdr;   /* avma of the program headers */
};

/*
 * Finds the ranges, unsorted; *@ret may stay empty. Sets @d->entry if unknown. @loads are the
 * PT_LOADs. FATHOM_E_MEMORY.
 */
fathom_err fathom_core_link_files(struct fathom_dump *d, const struct fathom_core_ranges *loads,
				  const struct fathom_core_facts *facts,
				  struct fathom_core_ranges *ret);

#endif
