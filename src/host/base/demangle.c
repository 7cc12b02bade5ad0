/* SPDX-License-Identifier: MIT */
/* The public calls of demangling; demangle_iberty.c does the work. */
#include "host/base/demangle.h"

#include "fathom/compat.h"

size_t fathom_demangle_name(const char *name, uint32_t mangling, uint32_t flags, char *buf,
			    size_t cap)
{
	const struct fathom_str mangled = { name, (uint32_t)strnlen(name, UINT32_MAX) };
	struct fathom_bytes_array out = { 0 };
	size_t size = 0;

	if (!fathom_demangle_as(mangled, mangling, flags, &out))
		size = out.n;
	if (cap) {
		const size_t n = size < cap ? size : cap - 1;

		if (n)
			memcpy(buf, out.items, n);
		buf[n] = '\0';
	}
	fathom_array_free(&out);
	return size;
}
