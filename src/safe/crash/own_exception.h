/* SPDX-License-Identifier: MIT */
/*
 * The exception of the calling thread, from memory alone: nothing of the C++ library is called.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_OWN_EXCEPTION_H
#define FATHOM_CRASH_OWN_EXCEPTION_H

#include "safe/cxx/thrown.h"

/* Ways to a thread's struct __cxa_eh_globals. */
enum fathom_own_cxx_way {
	FATHOM_OWN_CXX_NONE,
	FATHOM_OWN_CXX_TLS, /* a thread-local variable, by the thread's table of TLS blocks */
	FATHOM_OWN_CXX_SLOT /* a pointer to it, at a constant distance from the thread pointer */
};

/* The C++ library of the process, as the host has found it before. */
struct fathom_own_cxx {
	uint8_t way;      /* enum fathom_own_cxx_way */
	uint8_t entry;    /* TLS: bytes of an entry of the table */
	int16_t distance; /* from the thread pointer: TLS: of the table's address; SLOT */
	uint32_t module;  /* TLS: number of the library's block */
	uint64_t off;     /* TLS: in that block */
	/* Addresses of what rtti.h and thrown.h name; 0: there is none. */
	uint64_t vtables[FATHOM_RTTI_KINDS];
	uint64_t whats[2 * FATHOM_THROWN_WHATS];
	/* Addresses at which the library, and the unwinder that it throws by, are mapped. */
	uint64_t library;
	uint64_t unwinder;
};

/*
 * Finds the struct __cxa_eh_globals of the thread whose thread pointer is @tp; returns false if it
 * has none.
 */
bool fathom_own_cxx_globals(const struct fathom_own_cxx *c, uint64_t tp, uint64_t *ret);

/* The exception that a thread handles, or that nobody takes. */
struct fathom_own_exception {
	uint64_t type; /* address of its mangled name */
	uint64_t what; /* of the text that what() would return; 0: not known */
	uint64_t what_size;
};

/* Finds that of the calling thread; returns false if there is none, or it is not proven. */
bool fathom_own_exception_find(const struct fathom_own_cxx *c, struct fathom_own_exception *ret);

#endif
