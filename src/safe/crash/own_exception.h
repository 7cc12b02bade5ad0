/* SPDX-License-Identifier: MIT */
/*
 * The exception of the calling thread, from memory alone: nothing of the C++ library is called.
 * Libraries that the host has found before are known; those that the loader lists besides, as they
 * were loaded later, are looked into here.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_OWN_EXCEPTION_H
#define FATHOM_CRASH_OWN_EXCEPTION_H

#include "safe/cxx/thrown.h"

/*
 * Where a thread of this process has its own data, as the host has proven. The distances are from
 * the thread pointer.
 */
struct fathom_own_ways {
	uint8_t entry;    /* bytes of an entry of the table of TLS blocks; 0: not known */
	int16_t table;    /* of the word with that table's address */
	int16_t specific; /* of what pthread_setspecific() has for key 0; 0: not known */
	/* avma of pthread_getspecific() */
	uint64_t getspecific;
};

/* Finds block @module of the thread whose thread pointer is @tp; false if there is none yet. */
bool fathom_own_tls_block(const struct fathom_own_ways *w, uint64_t tp, uint32_t module,
			  uint64_t *ret);

/* The way to a thread's struct __cxa_eh_globals. */
enum fathom_own_cxx_way {
	FATHOM_OWN_CXX_NONE,
	FATHOM_OWN_CXX_TLS, /* a thread-local variable, by the thread's table of TLS blocks */
	FATHOM_OWN_CXX_SLOT /* a pointer to it, at a constant distance from the thread pointer */
};

/* A C++ library of the process. */
struct fathom_own_cxx {
	uint8_t way;       /* enum fathom_own_cxx_way */
	bool is_program;   /* it is a part of the program */
	int16_t distance;  /* SLOT */
	uint32_t module;   /* TLS: number of the library's block */
	uint64_t off;      /* TLS: in that block */
	uint64_t library;  /* avma at which its file is mapped */
	uint64_t unwinder; /* the same of the unwinder that it throws by */
	/* Addresses of what rtti.h and thrown.h name; 0: there is none. */
	uint64_t vtables[FATHOM_RTTI_KINDS];
	uint64_t whats[2 * FATHOM_THROWN_WHATS];
};

/* All of them that the host has found. */
struct fathom_own_libraries {
	struct fathom_own_ways ways;
	struct fathom_own_cxx linked; /* what dlsym() finds */
	struct fathom_own_cxx inside; /* within the program, which says so in its symbols only */
};

/*
 * Finds the struct __cxa_eh_globals of the thread whose thread pointer is @tp; returns false if it
 * has none.
 */
bool fathom_own_cxx_globals(const struct fathom_own_ways *w, const struct fathom_own_cxx *c,
			    uint64_t tp, uint64_t *ret);

/* The exception that a thread handles, or that nobody takes. */
struct fathom_own_exception {
	uint64_t type; /* address of its mangled name */
	uint64_t what; /* of the text that what() would return; 0: not known */
	uint64_t what_size;
	/* Addresses at which the library and the unwinder are mapped; 0: parts of the program. */
	uint64_t library;
	uint64_t unwinder;
};

/*
 * Finds that of the calling thread; returns false if there is none, if it is not proven, or if two
 * C++ libraries have one.
 */
bool fathom_own_exception_find(const struct fathom_own_libraries *l,
			       struct fathom_own_exception *ret);

#endif
