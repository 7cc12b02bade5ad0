/* SPDX-License-Identifier: MIT */
/*
 * Demangling. C++, Rust (legacy and v0) and D are told by the name itself; Ada's encoding looks
 * like any other name, so only the language of the unit can say so.
 */
#ifndef FATHOM_BASE_DEMANGLE_H
#define FATHOM_BASE_DEMANGLE_H

#include "host/base/memory.h"
#include "safe/base/bytes.h"

/*
 * Appends the demangled form of @name to @out. FATHOM_END, with @out as it was, when it is not
 * mangled, cannot be demangled, or would become unreasonably long; FATHOM_E_MEMORY.
 */
fathom_err fathom_demangle(struct fathom_str name, bool ada, struct fathom_array *out);

/* The same by the scheme @mangling (enum fathom_mangling) only, with FATHOM_DEMANGLE_ flags. */
fathom_err fathom_demangle_as(struct fathom_str name, uint32_t mangling, uint32_t flags,
			      struct fathom_array *out);

/*
 * Where the suffix that a compiler gives to a clone (".cold", ".part.0", ".constprop.0.isra.0")
 * starts in @name; its size when there is none.
 */
uint32_t fathom_clone_suffix(struct fathom_str name);

#endif
