/* SPDX-License-Identifier: MIT */
/*
 * Demangling. Names of C++, Rust (legacy and v0) and D tell their scheme. Ada's look like any other
 * name: only the unit's language tells.
 */
#ifndef FATHOM_BASE_DEMANGLE_H
#define FATHOM_BASE_DEMANGLE_H

#include "host/base/array.h"
#include "host/base/memory.h"
#include "safe/base/bytes.h"

/*
 * Appends the demangled form of @name to @out. Returns FATHOM_E_MEMORY, or FATHOM_END, with @out
 * unchanged, if it is not mangled, cannot be demangled, or would become unreasonably long.
 */
fathom_err fathom_demangle(struct fathom_str name, bool ada, struct fathom_bytes_array *out);

/* Demangles by the scheme @mangling (enum fathom_mangling) only, with FATHOM_DEMANGLE_ flags. */
fathom_err fathom_demangle_as(struct fathom_str name, uint32_t mangling, uint32_t flags,
			      struct fathom_bytes_array *out);

/*
 * Returns where in @name a compiler's clone suffix (".cold", ".part.0", ".constprop.0.isra.0")
 * starts; its size if there is none.
 */
uint32_t fathom_clone_suffix(struct fathom_str name);

#endif
