/* SPDX-License-Identifier: MIT */
/*
 * Where the variables of a module are declared, by their addresses.
 *
 * Nothing leads from an address of data to a unit, so all entries are read, once per module and
 * only when somebody asks; the names of files are read for those that are asked for. Variables
 * count whose place is one fixed address. What stands in other units than the variable itself is
 * not followed.
 */
#ifndef FATHOM_MODULE_VARIABLES_H
#define FATHOM_MODULE_VARIABLES_H

#include "host/module/debug.h"
#include "host/module/worker.h"

struct fathom_variables;

/* The variables of @d, read at the first call. NULL without memory. */
const struct fathom_variables *fathom_variables_get(struct fathom_debug *d,
						    struct fathom_worker *w);
void fathom_variables_free(struct fathom_variables *v, struct fathom_memory *m);

/*
 * Finds where the variable is declared that starts last from @low, where its symbol starts, to
 * @svma: one symbol stands for several variables that were merged. False when that is not known.
 * With @in_symbol only one that starts at svma, and whose name stands in that of the symbol that
 * GNU addr2line takes for it: the first global one there or, without one, the last, in the file's
 * own table. The path is in the worker until that is used again.
 */
bool fathom_variables_find(const struct fathom_variables *v, struct fathom_worker *w, uint64_t low,
			   uint64_t svma, bool in_symbol, struct fathom_str *ret_path,
			   uint32_t *ret_line);

#endif
