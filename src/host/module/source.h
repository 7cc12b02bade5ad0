/* SPDX-License-Identifier: MIT */
/* Source texts that compilers embed in the debug information (DW_LNCT_LLVM_source). */
#ifndef FATHOM_MODULE_SOURCE_H
#define FATHOM_MODULE_SOURCE_H

#include "host/module/module.h"

/*
 * Finds the embedded text of the file that the unit of @svma knows as @path, as answers write it.
 * Returns FATHOM_E_NOT_FOUND if there is none; FATHOM_E_MEMORY. The text lives as long as @m.
 */
fathom_err fathom_source_find(struct fathom_module *m, uint64_t svma, struct fathom_str path,
			      struct fathom_str *ret);

#endif
