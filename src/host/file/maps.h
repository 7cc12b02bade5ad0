/* SPDX-License-Identifier: MIT */
/*
 * The memory map of a process, from /proc/PID/maps (proc_pid_maps(5)).
 *
 * One text is read and taken apart where it stands. The kernel makes it piece by piece: each line
 * was true when it was made, but not all at the same moment.
 */
#ifndef FATHOM_FILE_MAPS_H
#define FATHOM_FILE_MAPS_H

#include "safe/base/bytes.h"
#include "safe/base/error.h"

struct fathom_mapping {
	uint64_t start; /* avma */
	uint64_t end;
	uint64_t off;           /* in the file */
	uint64_t device;        /* as the line has it: major << 32 | minor */
	uint64_t inode;         /* 0: no file */
	struct fathom_str name; /* of the file, or as in "[vdso]"; data is NULL for none */
	bool readable;
	bool writable;
	bool executable;
	bool deleted;   /* the line says so; a file may be called so, too */
	uint32_t first; /* number of the first mapping of the same file */
	uint32_t next;  /* number of the next one; that of all mappings: there is none */
};

struct fathom_maps {
	char *text;                   /* with the names */
	struct fathom_mapping *items; /* sorted, as the kernel makes them */
	size_t n;
	bool is_part; /* those mappings only that were asked for: there may be others */
};

/*
 * Takes @text, of @size bytes from malloc(), apart, and keeps it. Lines that are no mappings are
 * left out, and so is the part of a mapping that is not after the one before. FATHOM_E_MEMORY.
 */
fathom_err fathom_maps_parse(char *text, size_t size, struct fathom_maps *ret);

/*
 * Reads the map at @path. FATHOM_E_OS when the process is not there or not ours to look at;
 * FATHOM_E_NOT_FOUND when it has no memory: a kernel thread, or it has ended.
 */
fathom_err fathom_maps_read(const char *path, struct fathom_maps *ret,
			    struct fathom_errinfo *reterr);
/* Checks that the map at @path can be read now; fails as fathom_maps_read() would. */
fathom_err fathom_maps_check(const char *path, struct fathom_errinfo *reterr);
/* The most addresses that fathom_maps_query() takes: for more the whole map is read sooner. */
#define FATHOM_MAPS_QUERIES 8

/*
 * Asks the kernel for the mappings that hold @addresses, of which there are @n, through the map at
 * @path. Each was so at one moment. Fails, without more, where the kernel has no such question, or
 * the process no memory.
 */
fathom_err fathom_maps_query(const char *path, const uint64_t *addresses, size_t n,
			     struct fathom_maps *ret);
/*
 * Links the mappings of each file, which fathom_maps_parse() does, too: one that walks over the
 * mappings of a file need not look at all others. FATHOM_E_MEMORY; FATHOM_E_LIMIT.
 */
fathom_err fathom_maps_link(struct fathom_maps *maps);
/* Copies @maps, but for the text that has their names. FATHOM_E_MEMORY. */
fathom_err fathom_maps_copy(const struct fathom_maps *maps, struct fathom_maps *ret);
void fathom_maps_deinit(struct fathom_maps *maps);

/* The number of the mapping that holds @avma; maps->n when none does. */
size_t fathom_maps_at(const struct fathom_maps *maps, uint64_t avma);

/* Returns whether the mapping can be read, written or run: one that cannot is a reservation. */
bool fathom_mapping_is_usable(const struct fathom_mapping *m);

/* A hash of what tells files apart. */
uint64_t fathom_mapping_hash_file(const struct fathom_mapping *m);

/* Returns whether both mappings are of one file, of two maps maybe. */
bool fathom_mapping_same_file(const struct fathom_mapping *a, const struct fathom_mapping *b);

#endif
