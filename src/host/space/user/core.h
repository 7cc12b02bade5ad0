/* SPDX-License-Identifier: MIT */
/*
 * Cores: ELF files of type ET_CORE (core(5); the Linux kernel's fs/binfmt_elf.c and gdb's gcore
 * write them), of either class and byte order.
 *
 * Each PT_LOAD is a mapping: p_filesz bytes of it were stored; the rest is unknown, not zero. The
 * note NT_FILE says which ranges were mapped from which files; gcore omits the PT_LOAD of a mapping
 * that it does not store: such mappings are in NT_FILE only, without their rights. A core has no
 * device and inode numbers: files are distinguished by path, and files with the same path by their
 * stored first pages.
 *
 * A truncated core, cut by a limit on file sizes for example, is read as far as it goes. If NT_FILE
 * is missing, core_link.c finds the files.
 *
 * The threads and their registers are in NT_PRSTATUS: prstatus.h.
 *
 * Not handled: cores of other systems.
 */
#ifndef FATHOM_USER_CORE_H
#define FATHOM_USER_CORE_H

#include "host/base/notes.h"
#include "host/space/user/dump.h"

/* Returns whether the bytes are an ELF file of type ET_CORE. */
bool fathom_core_file_is(struct fathom_bytes bytes);

/*
 * Reads the core @file and takes it over, also on failure. Adds what is missing to @notes.
 * FATHOM_E_CORRUPT if it holds no memory, FATHOM_E_LIMIT, FATHOM_E_MEMORY.
 */
fathom_err fathom_core_file_read(struct fathom_file *file, struct fathom_notes *notes,
				 struct fathom_dump *ret, struct fathom_errinfo *reterr);

#endif
