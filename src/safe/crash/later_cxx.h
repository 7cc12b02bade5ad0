/* SPDX-License-Identifier: MIT */
/*
 * C++ libraries that were loaded after the crash handler was installed: shared objects that define
 * __cxa_get_globals(). The way to the exceptions of a thread is what that function's code says
 * (safe/cxx/globals_code.h).
 *
 * Not handled: machines other than x86-64; libraries that hide that function.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_LATER_CXX_H
#define FATHOM_CRASH_LATER_CXX_H

#include "safe/crash/own_exception.h"
#include "safe/self/objects.h"

/*
 * Reads what is known of the C++ library @o; @c->unwinder is not set. Returns false if it is none,
 * or if its form is unknown.
 */
bool fathom_later_cxx_read(const struct fathom_self_object *o, const struct fathom_link_map *link,
			   const struct fathom_own_ways *w, struct fathom_own_cxx *c);

/* Returns whether @o is an unwinder that throws exceptions. */
bool fathom_later_cxx_is_unwinder(const struct fathom_self_object *o,
				  const struct fathom_link_map *link);

#endif
