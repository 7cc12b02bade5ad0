/* SPDX-License-Identifier: MIT */
/* The dynamic linker's lookup order, which no interface exposes: see scope.c. */
#ifndef FATHOM_RUNTIME_SCOPE_H
#define FATHOM_RUNTIME_SCOPE_H

#include "host/runtime/runtime.h"

/*
 * Sets the order of the modules in the program's namespace from its links. FATHOM_E_NOT_FOUND: the
 * links are gone; FATHOM_E_MEMORY.
 */
fathom_err fathom_scope_read(struct fathom_runtime *r);

#endif
