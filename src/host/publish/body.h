/* SPDX-License-Identifier: MIT */
/* Copies of published functions. */
#ifndef FATHOM_PUBLISH_BODY_H
#define FATHOM_PUBLISH_BODY_H

#include "host/publish/publish.h"

/*
 * Checks @from and copies it. FATHOM_E_ARGUMENT, FATHOM_E_LIMIT or those of its rule, of which
 * @ret_blame says why; FATHOM_E_MEMORY.
 */
fathom_err fathom_jit_body_make(struct fathom_jit_registry *r, const struct fathom_jit_arena *arena,
				const struct fathom_jit_function *from,
				struct fathom_jit_body **ret, struct fathom_jit_blame *ret_blame);

/* Frees @b when its last function goes. */
void fathom_jit_body_release(struct fathom_jit_registry *r, struct fathom_jit_body *b);

/* Returns the CIE that says what @form says; NULL without memory. */
const struct fathom_jit_cie *fathom_jit_cie_find(struct fathom_jit_registry *r,
						 const struct fathom_cie_form *form);

#endif
