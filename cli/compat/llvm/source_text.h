/* SPDX-License-Identifier: MIT */
/* Lines of source files around a place, as llvm-symbolizer shows them. */
#ifndef FATHOM_CLI_COMPAT_LLVM_SOURCE_TEXT_H
#define FATHOM_CLI_COMPAT_LLVM_SOURCE_TEXT_H

#include "cli/compat/llvm/request.h"
#include "cli/out.h"

/* The file that was shown last: places follow one another in the same file. */
struct llvm_source {
	char *path;
	char *text;
	size_t size;
};

/*
 * Writes @n lines of @embedded or, where its data is NULL, of the file at @path, with their
 * numbers, @line in the middle and marked. Writes nothing when the file cannot be read.
 */
void llvm_source_write(struct llvm_source *s, struct out *o, struct llvm_text embedded,
		       const char *path, uint64_t line, uint64_t n);
void llvm_source_deinit(struct llvm_source *s);

#endif
