/* SPDX-License-Identifier: MIT */
/*
 * Which modules the dynamic linker has loaded: its interface for debuggers (glibc's <link.h>:
 * struct r_debug, and struct link_map, whose first five members all C libraries have).
 */
#ifndef FATHOM_RUNTIME_LINK_MAP_H
#define FATHOM_RUNTIME_LINK_MAP_H

#include "host/runtime/runtime.h"

/* A struct link_map that was read. */
struct fathom_link {
	uint64_t at; /* avma */
	uint64_t bias;
	uint64_t dynamic; /* avma of its PT_DYNAMIC */
	uint32_t module;  /* number in the runtime; FATHOM_NONE: it is none of these */
	uint32_t space;   /* namespace of dlmopen(); 0: the program's */
};

/*
 * Reads the lists of all namespaces, at a moment when the dynamic linker does not change them, and
 * finds the main program by them. FATHOM_E_NOT_FOUND: there are none, or they are always being
 * changed, which is_unsettled says; FATHOM_E_MEMORY.
 */
fathom_err fathom_links_read(struct fathom_runtime *r);

/* Reads the lists again, for the main program that was found. */
fathom_err fathom_links_read_again(struct fathom_runtime *r);

/* Returns the link at @avma, or NULL. */
const struct fathom_link *fathom_links_at(const struct fathom_runtime *r, uint64_t avma);

/* Returns the link of module @module; NULL if the dynamic linker does not know it. */
const struct fathom_link *fathom_link_of(const struct fathom_runtime *r, uint32_t module);

#endif
