/* SPDX-License-Identifier: MIT */
/* ELF files in the memory of a space: compares them with files, or rebuilds files from them. */
#ifndef FATHOM_USER_MEMORY_IMAGE_H
#define FATHOM_USER_MEMORY_IMAGE_H

#include "host/file/object.h"
#include "host/space/user/space.h"

enum fathom_sameness { FATHOM_DIFFERENT, FATHOM_SAME, FATHOM_UNREADABLE };

/*
 * Compares @o with the memory of mapping @i: by first page and build-id. If those do not decide and
 * the memory cannot change, compares all code; otherwise the result is FATHOM_UNREADABLE. errno is
 * why memory could not be read, or 0.
 */
enum fathom_sameness fathom_space_compare(const struct fathom_space *s,
					  const struct fathom_maps *maps, size_t i,
					  const struct fathom_object *o);

/*
 * Rebuilds the file of mapping @i from its segments in memory. It has no section headers, so only
 * the symbols of its dynamic table; [vdso] is complete. If a segment is not fully readable, the
 * symbol and unwind tables in it are omitted; *@ret_bare tells that none is left.
 */
fathom_err fathom_space_image(const struct fathom_space *s, const struct fathom_maps *maps,
			      size_t i, struct fathom_object **ret, bool *ret_bare,
			      struct fathom_errinfo *reterr);

#endif
