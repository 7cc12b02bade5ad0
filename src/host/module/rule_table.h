/* SPDX-License-Identifier: MIT */
/* The unwind rules of a module, as a table (fathom/unwind.h). */
#ifndef FATHOM_MODULE_RULE_TABLE_H
#define FATHOM_MODULE_RULE_TABLE_H

#include "fathom/unwind.h"

struct fathom_module;

/*
 * Makes the table of @module, in one allocation, to be freed with free(). Where FDEs overlap, the
 * rules are those of the one that fathom_unwind_tables_find() finds. FATHOM_E_UNSUPPORTED for
 * another machine; FATHOM_E_LIMIT if it does not fit the budget; FATHOM_E_MEMORY.
 */
fathom_err fathom_rule_table_make(struct fathom_module *module, struct fathom_unwind_table **ret);

#endif
