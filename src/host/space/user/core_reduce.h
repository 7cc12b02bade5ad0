/* SPDX-License-Identifier: MIT */
/*
 * Compressed cores that do not fit the memory budget. They are decompressed several times, in
 * pieces; what stacks and names need is kept, as far as half of the budget goes, and becomes a
 * smaller core:
 *
 *	1 the headers, and all notes
 *	2 of each thread's stack 64 KiB from the stack pointer on
 *	3 of each mapping the first page, where ELF files have their headers
 *	4 mappings of up to 1 MiB, the smallest first: data of programs, which has link maps
 *	5 up to 16 MiB of each stack
 *	6 all other mappings, the smallest first
 *
 * What is left out is in the smaller core as memory that was not stored.
 *
 * Not handled: cores of the other byte order.
 */
#ifndef FATHOM_USER_CORE_REDUCE_H
#define FATHOM_USER_CORE_REDUCE_H

#include "host/file/file.h"

/*
 * Opens the compressed core at @path as a smaller core; *@ret_note says what it lacks.
 * FATHOM_E_LIMIT if it is no core, or if even headers and notes do not fit.
 */
fathom_err fathom_core_reduce(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			      struct fathom_errinfo *ret_note, struct fathom_errinfo *reterr);

#endif
