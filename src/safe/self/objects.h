/* SPDX-License-Identifier: MIT */
/*
 * The objects that the loader lists, in the list that this library is in: as they are now, whether
 * or not they were prepared. Each is copied by reads that cannot fault.
 *
 * Not handled: objects of other dlmopen() namespaces; C libraries without _dl_find_object(), which
 * have no list here.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_OBJECTS_H
#define FATHOM_SELF_OBJECTS_H

#include "safe/self/loader.h"

/* Does something with an object. */
typedef void fathom_object_fn(const struct fathom_self_object *o,
			      const struct fathom_link_map *link, void *data);

/* Calls @fn for each object, the program first. */
void fathom_self_each_object(fathom_object_fn *fn, void *data);

#endif
