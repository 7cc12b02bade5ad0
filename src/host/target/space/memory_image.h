/* SPDX-License-Identifier: MIT */
/* ELF files in the memory of a space: compared with a file, or put together from it. */
#ifndef FATHOM_TARGET_SPACE_MEMORY_IMAGE_H
#define FATHOM_TARGET_SPACE_MEMORY_IMAGE_H

#include "host/file/object.h"
#include "host/target/space/space.h"

enum fathom_sameness { FATHOM_DIFFERENT, FATHOM_SAME, FATHOM_UNREADABLE };

/*
 * Whether @o is the file of mapping @i, by what is of it in memory: the first page and the
 * build-id. Where those cannot tell, memory that does not change is compared by all of its code;
 * else there is no telling. Where memory cannot be read, errno says why, or is 0.
 */
enum fathom_sameness fathom_space_compare(const struct fathom_space *s,
					  const struct fathom_maps *maps, size_t i,
					  const struct fathom_object *o);

/*
 * The file of mapping @i as its segments are in memory: without section headers, so with the
 * symbols of its dynamic table only. [vdso] is there whole. Where not all of a segment can be read,
 * what is said about symbols or unwinding in it is left out; *@ret_bare says that nothing is left.
 */
fathom_err fathom_space_image(const struct fathom_space *s, const struct fathom_maps *maps,
			      size_t i, struct fathom_object **ret, bool *ret_bare,
			      struct fathom_errinfo *reterr);

#endif
