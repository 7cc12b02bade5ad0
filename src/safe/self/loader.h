/* SPDX-License-Identifier: MIT */
/*
 * What the loader says of an address, where a handler may ask it: _dl_find_object() of glibc 2.35
 * and later. Other C libraries have nothing like it; then what was prepared and may have been
 * unloaded is believed by its build-id alone, and what was not prepared is not known.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_LOADER_H
#define FATHOM_SELF_LOADER_H

#include "safe/base/bytes.h"

/* An object as the loader has it. */
struct fathom_self_object {
	uintptr_t start; /* avma; what it has mapped, gaps included */
	uintptr_t end;
	uintptr_t link_map; /* struct link_map * */
};

/* The object that @avma is in; false when there is none, or nobody to be asked. */
bool fathom_self_object_at(uintptr_t avma, struct fathom_self_object *ret);

/* Whether there is somebody to be asked. */
bool fathom_self_has_loader(void);

#endif
