/* SPDX-License-Identifier: MIT */
/* The memory of a process, and ELF files put together from it. */
#ifndef FATHOM_PROCESS_IMAGE_H
#define FATHOM_PROCESS_IMAGE_H

#include "maps.h"
#include "object.h"

/*
 * Reads up to @size bytes at @avma of the process whose directory below /proc is @dir; returns how
 * many could be read, with errno for those that could not.
 */
size_t fathom_process_read(const char *dir, uint64_t avma, void *to, size_t size);

enum fathom_sameness { FATHOM_DIFFERENT, FATHOM_SAME, FATHOM_UNREADABLE };

/*
 * Whether @o is the file of mapping @i, by what the process has of it in its memory: the first page
 * and the build-id. Without a build-id there is no telling; where memory cannot be read, errno says
 * why, or is 0.
 */
enum fathom_sameness fathom_process_compare(const char *dir, const struct fathom_maps *maps,
					    size_t i, const struct fathom_object *o, uint64_t page);

/*
 * The file of mapping @i as its segments are in memory now: without section headers, so with the
 * symbols of its dynamic table only. [vdso] is there whole.
 */
fathom_err fathom_process_image(struct fathom_memory *m, const char *dir,
				const struct fathom_maps *maps, size_t i, uint64_t page,
				struct fathom_object **ret, struct fathom_errinfo *reterr);

#endif
