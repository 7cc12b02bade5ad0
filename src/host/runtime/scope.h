/* SPDX-License-Identifier: MIT */
/* The order in which the dynamic linker looks for names. It is in no interface: see scope.c. */
#ifndef FATHOM_RUNTIME_SCOPE_H
#define FATHOM_RUNTIME_SCOPE_H

#include "host/runtime/runtime.h"

/*
 * Gives the modules of the program's namespace their order, by its links. FATHOM_E_NOT_FOUND: these
 * are gone; FATHOM_E_MEMORY.
 */
fathom_err fathom_scope_read(struct fathom_runtime *r);

#endif
