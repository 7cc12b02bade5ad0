/* SPDX-License-Identifier: MIT */
/* Lines of source files around a place, as llvm-symbolizer shows them. */
#ifndef FATHOM_LLVM_SOURCE_H
#define FATHOM_LLVM_SOURCE_H

#include "out.h"

/* The file that was shown last: places follow one another in the same file. */
struct llvm_source {
	char *path;
	char *text;
	size_t size;
};

/*
 * Writes @n lines of the file at @path, with their numbers, @line in the middle and marked; nothing
 * when it cannot be read.
 */
void llvm_source_write(struct llvm_source *s, struct out *o, const char *path, uint64_t line,
		       uint64_t n);
void llvm_source_deinit(struct llvm_source *s);

#endif
