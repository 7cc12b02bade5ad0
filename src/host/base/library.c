/* SPDX-License-Identifier: MIT */
#include "host/base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* States of what is kept. Nobody waits for who fills it in. */
enum { EMPTY, IN_WORK, FULL, MISSING };

bool fathom_library_open(const char *soname, const struct fathom_library_symbol *symbols, size_t n,
			 void *table)
{
	void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return false;
	for (size_t i = 0; i < n; i++) {
		void *function = dlsym(handle, symbols[i].name);

		if (!function)
			return false;
		memcpy((char *)table + symbols[i].place, &function, sizeof function);
	}
	return true;
}

/* Sets the error that @l is missing. */
static fathom_err fail_missing(const struct fathom_library *l, struct fathom_errinfo *reterr)
{
	(void)fathom_fail_by(reterr, FATHOM_E_UNSUPPORTED, FATHOM_CAUSE_NOT_INSTALLED, l->missing);
	if (reterr)
		(void)snprintf(reterr->file, sizeof reterr->file, "%s", l->soname);
	return FATHOM_E_UNSUPPORTED;
}

fathom_err fathom_library_get(const struct fathom_library *l, struct fathom_library_kept *kept,
			      void *table, struct fathom_errinfo *reterr)
{
	const size_t size = l->n * sizeof kept->functions[0];
	struct fathom_library_kept *k = kept ? &kept[l->place] : NULL;
	const int state = k ? atomic_load_explicit(&k->state, memory_order_acquire) : EMPTY;
	int empty = EMPTY;

	if (l->linked || state == FULL) {
		memcpy(table, l->linked ? l->linked : k->functions, size);
		return FATHOM_OK;
	}
	if (state == MISSING)
		return fail_missing(l, reterr);
	if (!fathom_library_open(l->soname, l->symbols, l->n, table)) {
		if (k)
			(void)atomic_compare_exchange_strong(&k->state, &empty, MISSING);
		return fail_missing(l, reterr);
	}
	if (k && atomic_compare_exchange_strong(&k->state, &empty, IN_WORK)) {
		memcpy(k->functions, table, size);
		atomic_store_explicit(&k->state, FULL, memory_order_release);
	}
	return FATHOM_OK;
}
