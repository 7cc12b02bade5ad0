/* SPDX-License-Identifier: MIT */
/*
 * Mappings of this process and stack pointers of its threads, from /proc (proc(5)), by system
 * calls.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_OWN_MAPS_H
#define FATHOM_CRASH_OWN_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a path that are kept, with its NUL. */
#define FATHOM_OWN_PATH 1024

/* A mapping; end 0: there is none. */
struct fathom_own_mapping {
	uint64_t start;
	uint64_t end;
	uint64_t off;
	uint64_t inode; /* 0: of no file */
	bool readable;
	bool writable;
	bool executable;
	char path[FATHOM_OWN_PATH]; /* cut to fit */
};

/*
 * Finds the mapping that holds @address and the first one that begins above it. Returns false if
 * the map cannot be read.
 */
bool fathom_own_maps_find(uint64_t address, struct fathom_own_mapping *ret,
			  struct fathom_own_mapping *ret_above);

/*
 * Returns the only thread whose stack pointer lies in [@start, @end), @but excepted; 0: none, or
 * several. The stack pointers of threads that run at the moment are not known.
 */
int32_t fathom_own_thread_in(uint64_t start, uint64_t end, int32_t but);

/* Returns the number of threads; 0: unknown. */
uint32_t fathom_own_thread_count(void);

#endif
