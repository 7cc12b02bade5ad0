/* SPDX-License-Identifier: MIT */
/* The memory of a process, and ELF files put together from it. */
#ifndef FATHOM_PROCESS_IMAGE_H
#define FATHOM_PROCESS_IMAGE_H

#include "maps.h"
#include "object.h"

/* Reads up to @size bytes at @avma of process @pid; returns how many could be read. */
size_t fathom_process_read(int pid, uint64_t avma, void *to, size_t size);

enum fathom_sameness { FATHOM_DIFFERENT, FATHOM_SAME, FATHOM_UNREADABLE };

/*
 * Whether @o is the file of mapping @i, by what the process has of it in its memory: the first
 * page, and the build-id where that is mapped.
 */
enum fathom_sameness fathom_process_compare(int pid, const struct fathom_maps *maps, size_t i,
					    const struct fathom_object *o, uint64_t page);

/*
 * The file of mapping @i as its segments are in memory now: without section headers, so with the
 * symbols of its dynamic table only. [vdso] is there whole.
 */
fathom_err fathom_process_image(struct fathom_memory *m, int pid, const struct fathom_maps *maps,
				size_t i, uint64_t page, struct fathom_object **ret,
				struct fathom_errinfo *reterr);

#endif
