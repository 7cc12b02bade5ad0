/* SPDX-License-Identifier: MIT */
/*
 * Exceptions of C++ in memory.
 *
 * Safety: as-safe, if the functions of struct fathom_cxx_memory are.
 */
#ifndef FATHOM_CXX_THROWN_H
#define FATHOM_CXX_THROWN_H

#include "safe/cxx/rtti.h"

/* An exception that was found. */
struct fathom_thrown {
	uint64_t object;
	struct fathom_rtti type;
};

/*
 * Mangled names of the functions what() that return the text of std::runtime_error or
 * std::logic_error.
 */
#define FATHOM_THROWN_WHATS 5
extern const char *const fathom_thrown_whats[FATHOM_THROWN_WHATS];

/* Reads the exception whose header is at @at; returns false if there is none. 64 bits only. */
bool fathom_thrown_read(const struct fathom_cxx_memory *m, uint64_t at, struct fathom_thrown *ret);

/*
 * Finds the text that what() of @e would return, and its bytes without the NUL. Returns false if
 * that is not proven.
 */
bool fathom_thrown_text(const struct fathom_cxx_memory *m, const struct fathom_thrown *e,
			uint64_t *ret_avma, uint64_t *ret_size);

#endif
