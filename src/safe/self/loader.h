/* SPDX-License-Identifier: MIT */
/*
 * Asks the loader about an address, where a handler may: by _dl_find_object() of glibc 2.35 and
 * later. Other C libraries have nothing like it: then only the build-id tells whether a prepared
 * module is still loaded, and modules that were not prepared are unknown.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_LOADER_H
#define FATHOM_SELF_LOADER_H

#include "safe/base/bytes.h"

/* A loaded object, as the loader has it. */
struct fathom_self_object {
	uintptr_t start; /* avma; of all that is mapped, gaps included */
	uintptr_t end;
	uintptr_t link_map; /* struct link_map * */
	uintptr_t header;   /* .eh_frame_hdr; 0 if there is none */
};

/* The first fields of struct link_map (link.h), whose layout the loader guarantees. */
struct fathom_link_map {
	uintptr_t bias;
	uintptr_t name;
	uintptr_t dynamic;
	uintptr_t next;
	uintptr_t previous;
};

/* Finds the object that @avma is in. Returns false if there is none, or no _dl_find_object(). */
bool fathom_self_object_at(uintptr_t avma, struct fathom_self_object *ret);

/* Returns whether there is a _dl_find_object(). */
bool fathom_self_has_loader(void);

#endif
