/* SPDX-License-Identifier: MIT */
/*
 * All registries of published code in this process (safe/jit/registry.h): the library's own, and
 * those of objects that have a copy of the publisher, of which the host keeps a list. A crash
 * handler adds to it those of objects that were loaded later.
 *
 * What was unloaded is not read: the loader must know an object where a head is said to be, and
 * the head is copied by a checked read first. An object that publishes is not unloaded while its
 * code is on a stack.
 *
 * Not handled: objects of other dlmopen() namespaces that were loaded later.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_REGISTRIES_H
#define FATHOM_SELF_REGISTRIES_H

#include "safe/jit/registry.h"
#include "safe/self/table.h"

/* Does something with the function that was found; it stays until this returns. */
typedef void fathom_code_fn(const struct fathom_registry_code *code, void *data);

/*
 * Calls @fn for the function at @avma that a registry of this process has; returns false if none
 * has one.
 */
bool fathom_self_find_code(const struct fathom_self *self, uint64_t avma, fathom_code_fn *fn,
			   void *data);

/* Adds the registries of all objects that the loader lists. */
void fathom_self_add_registries(const struct fathom_self *self);

#endif
