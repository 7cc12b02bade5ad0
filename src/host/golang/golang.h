/* SPDX-License-Identifier: MIT */
/*
 * The table of a Go program (pclntab.h) as the files that everything else reads: one with symbols,
 * one with debug information. They are made in memory, when they are first asked for.
 */
#ifndef FATHOM_GOLANG_GOLANG_H
#define FATHOM_GOLANG_GOLANG_H

#include "host/base/context.h"
#include "host/file/object.h"

/*
 * Makes a file with a symbol for each function of @main. FATHOM_E_NOT_FOUND: @main has no table of
 * Go; FATHOM_E_MEMORY, FATHOM_E_LIMIT.
 */
fathom_err fathom_go_symbols(struct fathom *session, const struct fathom_object *main,
			     struct fathom_object **ret);

/*
 * Makes a file with the lines and inlined calls of @main (DWARF 4). Likewise; FATHOM_E_CANCELLED.
 */
fathom_err fathom_go_debug(struct fathom *session, const struct fathom_object *main,
			   struct fathom_object **ret);

#endif
