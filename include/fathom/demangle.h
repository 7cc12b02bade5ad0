/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Demangling by a chosen scheme, for programs that have the names already. Answers of
 * fathom_symbolize() are demangled without it.
 */
#ifndef FATHOM_DEMANGLE_PUBLIC_H
#define FATHOM_DEMANGLE_PUBLIC_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Schemes that names are mangled by. */
enum fathom_mangling {
	FATHOM_MANGLING_AUTO = 0, /**< C++ and Rust: what tells itself by the name */
	FATHOM_MANGLING_CXX = 1,  /**< C++ (Itanium ABI) */
	FATHOM_MANGLING_RUST = 2, /**< both of Rust's schemes */
	FATHOM_MANGLING_D = 3,
	FATHOM_MANGLING_JAVA = 4, /**< of the old gcj */
	FATHOM_MANGLING_ADA = 5   /**< of GNAT: what is none of its names comes in angle brackets */
};

/** Bits of the flags of fathom_demangle_name(). */
enum {
	/** Demangle names that are nested as deeply as only an attacker's are, too. */
	FATHOM_DEMANGLE_DEEP = 1u << 0
};

/**
 * Writes the demangled form of @name to @buf, with a NUL, when @cap is enough for both; else cut,
 * with a NUL. Names of more than 16,384 bytes, and what would become longer than 65,536, are not
 * demangled.
 *
 * Safety: mt-safe
 * Memory: writes at most @cap bytes to @buf
 * Returns: the length of the whole text, without the NUL; 0 when @name is not mangled by @mangling,
 *	one of enum fathom_mangling, or this build cannot demangle
 */
FATHOM_API size_t fathom_demangle_name(const char *name, uint32_t mangling, uint32_t flags,
				       char *buf, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
