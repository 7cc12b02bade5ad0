/* SPDX-License-Identifier: MIT */
/*
 * The modules that the dynamic linker has loaded, by its debugger interface (glibc's <link.h>:
 * struct r_debug, and struct link_map, whose first five members all C libraries share).
 */
#ifndef FATHOM_RUNTIME_LINK_MAP_H
#define FATHOM_RUNTIME_LINK_MAP_H

#include "host/runtime/runtime.h"

/* A struct link_map that was read. */
struct fathom_link {
	uint64_t at; /* avma */
	uint64_t bias;
	uint64_t dynamic; /* avma of its PT_DYNAMIC */
	uint32_t module;  /* index in the runtime; FATHOM_NONE: unknown module */
	uint32_t space;   /* dlmopen() namespace; 0: the program's */
};

/*
 * Reads a consistent snapshot of the lists of all namespaces and finds the main program in them.
 * FATHOM_E_NOT_FOUND: there are none, or they keep changing (is_unsettled); FATHOM_E_MEMORY.
 */
fathom_err fathom_links_read(struct fathom_runtime *r);

/* Reads the lists again, for the known main program. */
fathom_err fathom_links_read_again(struct fathom_runtime *r);

/* Returns the link at @avma, or NULL. */
const struct fathom_link *fathom_links_at(const struct fathom_runtime *r, uint64_t avma);

/* Returns the link of module @module; NULL if the dynamic linker does not know it. */
const struct fathom_link *fathom_link_of(const struct fathom_runtime *r, uint32_t module);

#endif
