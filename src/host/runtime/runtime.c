/* SPDX-License-Identifier: MIT */
#include "host/runtime/runtime.h"

#include <stdlib.h>

#include "host/runtime/link_map.h"
#include "host/runtime/scope.h"

void fathom_runtime_init(struct fathom_runtime *r, const struct fathom_reader *reader,
			 struct fathom_budget *budget, bool is_live)
{
	*r = (struct fathom_runtime){
		.reader = reader, .budget = budget, .is_live = is_live, .main_program = FATHOM_NONE
	};
}

void fathom_runtime_deinit(struct fathom_runtime *r)
{
	fathom_array_free(&r->links);
	fathom_array_free(&r->dynamics);
	fathom_array_free(&r->places);
	fathom_array_free(&r->slots);
	free(r->glibc);
	free(r->modules);
}

fathom_err fathom_runtime_add(struct fathom_runtime *r, struct fathom_module *module,
			      const char *path, uint64_t bias)
{
	const struct fathom_dynsym *dynsym = fathom_module_dynsym(module);

	if (!dynsym)
		return FATHOM_E_MEMORY;
	if (r->n_modules == r->cap_modules) {
		const size_t cap = 2 * r->cap_modules + 16;
		struct fathom_runtime_module *larger = realloc(r->modules, cap * sizeof *larger);

		if (!larger)
			return FATHOM_E_MEMORY;
		r->modules = larger;
		r->cap_modules = cap;
	}
	r->modules[r->n_modules++] = (struct fathom_runtime_module){ .module = module,
								     .dynsym = dynsym,
								     .path = path,
								     .bias = bias,
								     .order = FATHOM_NONE,
								     .link = FATHOM_NONE };
	return FATHOM_OK;
}

fathom_err fathom_runtime_read(struct fathom_runtime *r)
{
	fathom_err err = fathom_links_read(r);

	if (!err)
		err = fathom_scope_read(r);
	return err == FATHOM_E_NOT_FOUND ? FATHOM_OK : err;
}
