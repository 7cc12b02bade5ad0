/* SPDX-License-Identifier: MIT */
/* Lines of source files around a place, as llvm-symbolizer shows them. */
#ifndef FATHOM_CLI_COMPAT_LLVM_SOURCE_TEXT_H
#define FATHOM_CLI_COMPAT_LLVM_SOURCE_TEXT_H

#include "cli/compat/llvm/request.h"
#include "cli/out.h"

/* Cache of the last file shown: consecutive places are often in the same file. */
struct llvm_source {
	char *path;
	char *text;
	size_t size;
};

/*
 * Writes @n lines of @embedded or, if its data is NULL, of the file at @path, with their numbers,
 * and @line marked in the middle. Writes nothing if the file cannot be read.
 */
void llvm_source_write(struct llvm_source *s, struct out *o, struct llvm_text embedded,
		       const char *path, uint64_t line, uint64_t n);
void llvm_source_deinit(struct llvm_source *s);

#endif
