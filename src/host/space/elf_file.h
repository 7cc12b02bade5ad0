/* SPDX-License-Identifier: MIT */
/*
 * A file as a target: an address space of one module, with the addresses stated in the file (svma).
 */
#ifndef FATHOM_SPACE_ELF_FILE_H
#define FATHOM_SPACE_ELF_FILE_H

#include "host/file/file.h"
#include "host/space/target.h"

/* Opens @file and takes it over, also on failure. */
fathom_err fathom_elf_file_open(struct fathom_search_paths *paths, struct fathom_file *file,
				struct fathom_target **ret, struct fathom_errinfo *reterr);

struct fathom_cache_file;
struct fathom_object;

/*
 * Opens a target of @main, a skeleton, whose index @cache answers without the file. Takes both
 * over, also on failure.
 */
fathom_err fathom_elf_stored_open(struct fathom_search_paths *paths, struct fathom_object *main,
				  struct fathom_cache_file *cache, struct fathom_target **ret,
				  struct fathom_errinfo *reterr);

#endif
