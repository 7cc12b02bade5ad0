/* SPDX-License-Identifier: MIT */
/* Where a C++ library keeps the exceptions of each thread. */
#ifndef FATHOM_DEATH_EH_GLOBALS_H
#define FATHOM_DEATH_EH_GLOBALS_H

#include "host/runtime/runtime.h"

/* Ways to a thread's struct __cxa_eh_globals. */
enum fathom_eh_method {
	FATHOM_EH_TLS, /* a thread-local variable */
	FATHOM_EH_KEY, /* pthread_getspecific() returns its address */
};

struct fathom_eh_globals {
	uint32_t module; /* number in the runtime */
	enum fathom_eh_method way;
	uint64_t off; /* FATHOM_EH_TLS: in the TLS block of the module */
	uint64_t key; /* FATHOM_EH_KEY: avma of the key, 4 bytes */
};

/*
 * Finds where module @module of @r, which defines __cxa_get_globals(), has the exceptions. Returns
 * false if the code of that function is not one of those that are known.
 */
bool fathom_eh_globals_find(struct fathom_runtime *r, uint32_t module,
			    struct fathom_eh_globals *ret);

/*
 * Finds the struct __cxa_eh_globals of thread @tid of process @pid, both as the program knows them;
 * 0: the thread has none. FATHOM_E_NOT_FOUND: libc does not list the threads by these numbers;
 * FATHOM_E_UNSUPPORTED: libc's lists are not known; FATHOM_E_MEMORY.
 */
fathom_err fathom_eh_globals_locate(struct fathom_runtime *r, const struct fathom_eh_globals *g,
				    int32_t pid, int32_t tid, uint64_t *ret);

#endif
