/* SPDX-License-Identifier: MIT */
/*
 * Where the variables of a module are declared, by address.
 *
 * No index leads from an address of data to a unit, so all entries are read, once per module and
 * only when somebody asks; the names of files are read for the variables asked for. Only variables
 * with one fixed address count. References to other units are not followed.
 */
#ifndef FATHOM_MODULE_VARIABLES_H
#define FATHOM_MODULE_VARIABLES_H

#include "host/module/debug.h"
#include "host/module/worker.h"

struct fathom_variables;

/* Returns the variables of @d, read at the first call; NULL if out of memory. */
const struct fathom_variables *fathom_variables_get(struct fathom_debug *d,
						    struct fathom_worker *w);
void fathom_variables_free(struct fathom_variables *v, struct fathom_memory *m);

/*
 * Finds the declaration of the variable that starts last from @low, where its symbol starts, to
 * @svma: one symbol may stand for several merged variables. Returns false if none is known. With
 * @in_symbol, takes only a variable that starts at @svma and whose name is part of the name of the
 * symbol that GNU addr2line takes for it: in the file's own table, the first global one there or,
 * without one, the last. The path stays in the worker until that is used again.
 */
bool fathom_variables_find(const struct fathom_variables *v, struct fathom_worker *w, uint64_t low,
			   uint64_t svma, bool in_symbol, struct fathom_str *ret_path,
			   uint32_t *ret_line);

#endif
