/* SPDX-License-Identifier: MIT */
/*
 * The files that a process has mapped, each opened as a module. A mapping's file is looked for in
 * this order:
 * 1. /proc/PID/map_files: the very file, also when it is deleted, replaced or has no name. Needs
 *    privilege.
 * 2. its path, below /proc/PID/root where it is mounted for the process only: the same file by
 * device and inode, or one whose first page and build-id are those in the process's memory.
 * 3. the image in memory, for [vdso] and for what cannot be had otherwise.
 */
#ifndef FATHOM_PROCESS_FILE_H
#define FATHOM_PROCESS_FILE_H

#include "context.h"
#include "fathom/symbolize.h"
#include "maps.h"
#include "module.h"

/* Where a process is to be found. */
struct fathom_process_place {
	struct fathom *session;
	struct fathom_notes *notes;
	uint64_t page; /* bytes */
	/* "/proc/self/fd/N", its directory: another process with its number is not found there */
	char dir[40];
	char root[48]; /* what stands before its paths: dir/root, or "" when they are ours */
};

struct fathom_process_file {
	char *name; /* as the map has it */
	uint64_t device;
	uint64_t inode;               /* 0: [vdso] */
	struct fathom_module *module; /* NULL: it cannot be had, because of */
	enum fathom_reason reason;
	bool is_file;  /* the very file; while it is open, its inode cannot become another's */
	bool is_image; /* put together from memory */
};

/* Whether a file, or what stands for one, may be behind the mapping. */
bool fathom_process_may_be_file(const struct fathom_mapping *m);

/* Opens the file of mapping @i. Fails without memory only: else the file says why it is not had. */
fathom_err fathom_process_file_open(const struct fathom_process_place *place,
				    const struct fathom_maps *maps, size_t i,
				    struct fathom_process_file *ret);
void fathom_process_file_close(struct fathom_process_file *f);

/* Whether @f was opened for a mapping as @m is. */
bool fathom_process_file_fits(const struct fathom_process_file *f, const struct fathom_mapping *m);

/* Whether @f, which fits mapping @i, is as it was when it was opened. */
bool fathom_process_file_is_current(const struct fathom_process_place *place,
				    const struct fathom_maps *maps, size_t i,
				    const struct fathom_process_file *f);

#endif
