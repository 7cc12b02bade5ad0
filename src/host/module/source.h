/* SPDX-License-Identifier: MIT */
/* Source texts in the debug information: embedded (DW_LNCT_LLVM_source), or their MD5. */
#ifndef FATHOM_MODULE_SOURCE_H
#define FATHOM_MODULE_SOURCE_H

#include "host/module/lines.h"
#include "host/module/module.h"

/*
 * Finds what the unit of @svma states of the text of @path, a file as answers write it. Returns
 * FATHOM_E_NOT_FOUND if that is nothing; FATHOM_E_MEMORY. The texts live as long as @m.
 */
fathom_err fathom_source_find(struct fathom_module *m, uint64_t svma, struct fathom_str path,
			      struct fathom_line_text *ret);

#endif
