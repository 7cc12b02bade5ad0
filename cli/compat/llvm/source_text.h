/* SPDX-License-Identifier: MIT */
/* Lines of source files around a place, as llvm-symbolizer shows them. */
#ifndef FATHOM_CLI_COMPAT_LLVM_SOURCE_TEXT_H
#define FATHOM_CLI_COMPAT_LLVM_SOURCE_TEXT_H

#include <fathom/source.h>

#include "cli/compat/llvm/request.h"
#include "cli/out.h"

/*
 * Writes @n lines of @embedded or, if its data is NULL, of the file at @path, which @files keeps,
 * with their numbers, and @line marked in the middle. Writes nothing if the file cannot be read.
 */
void llvm_source_write(struct fathom_source_files *files, struct out *o, struct llvm_text embedded,
		       const char *path, uint64_t line, uint64_t n);

#endif
