/* SPDX-License-Identifier: MIT */
/*
 * Cores: ELF files of type ET_CORE (core(5); the Linux kernel's fs/binfmt_elf.c and gdb's gcore
 * write them), of either class and byte order.
 *
 * Each PT_LOAD is a mapping: p_filesz bytes of it were stored, the rest was not, and is not zero.
 * The note NT_FILE says which ranges were mapped from which files; gcore leaves the PT_LOAD of what
 * it does not store out, so that such mappings stand in NT_FILE only, without their rights. A core
 * has no device and inode numbers: files are told apart by their paths, and files of one path by
 * the first pages of theirs that were stored.
 *
 * Of a core that was cut short, as by a limit on file sizes, is read what is there. Where the list
 * of files is missing, core_link.c finds them.
 *
 * The threads and their registers are in NT_PRSTATUS: prstatus.h.
 *
 * Not handled: cores of other systems.
 */
#ifndef FATHOM_TARGET_SPACE_CORE_H
#define FATHOM_TARGET_SPACE_CORE_H

#include "host/base/notes.h"
#include "host/target/space/dump.h"

/* Whether the bytes are an ELF file of type ET_CORE. */
bool fathom_core_file_is(struct fathom_bytes bytes);

/*
 * Reads the core @file, which is taken over, also on failure. What is missing is added to @notes.
 * FATHOM_E_CORRUPT when it holds no memory, FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_core_file_read(struct fathom_file *file, struct fathom_notes *notes,
				 struct fathom_dump *ret, struct fathom_errinfo *reterr);

#endif
