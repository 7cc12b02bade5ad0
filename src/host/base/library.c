/* SPDX-License-Identifier: MIT */
#include "host/base/library.h"

#include <dlfcn.h>
#include <string.h>

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
