/* SPDX-License-Identifier: MIT */
/*
 * The sizes that the kernel prints of its symbols. It knows none and prints how far the next symbol
 * is (kernel/kallsyms.c: get_symbol_pos(), kernel/module/kallsyms.c: find_kallsyms_symbol()), so
 * padding counts, and after the last symbol of a section more than that.
 */
#ifndef FATHOM_FILTER_KERNEL_SYMBOLS_H
#define FATHOM_FILTER_KERNEL_SYMBOLS_H

#include "host/base/array.h"
#include "host/module/module.h"

struct fathom_kernel_symbols {
	struct fathom_keyed_array starts; /* svma of each symbol; sorted */
};

/* Collects the symbols of @m. FATHOM_E_MEMORY; @ret can be freed in any case. */
fathom_err fathom_kernel_symbols_read(const struct fathom_module *m,
				      struct fathom_kernel_symbols *ret);
void fathom_kernel_symbols_deinit(struct fathom_kernel_symbols *k);

/*
 * Returns whether the kernel may print @size for the symbol at @svma of @m, of which the file
 * states @stated.
 */
bool fathom_kernel_symbols_agree(const struct fathom_kernel_symbols *k,
				 const struct fathom_module *m, uint64_t svma, uint64_t stated,
				 uint64_t size);

#endif
