/* SPDX-License-Identifier: MIT */
/*
 * Opens the mapped files of a space as modules. A mapping's file is looked for in this order:
 * 1. the very file through the kernel, even if deleted, replaced or nameless (/proc/PID/map_files,
 * which needs privilege); for a core or snapshot, the file that the user states.
 * 2. its path below the root of the space (for a core or snapshot, below the sysroot first): the
 * same file by device and inode, or one whose first page and build-id equal those in memory.
 * 3. the image in memory, for [vdso] and for files found nowhere else. If its symbols are not in
 * memory, it needs a debug file with its build-id.
 */
#ifndef FATHOM_USER_OPENED_FILE_H
#define FATHOM_USER_OPENED_FILE_H

#include "host/module/module.h"
#include "host/space/user/space.h"

/* How the map of a batch uses a file. */
enum fathom_file_use {
	FATHOM_FILE_UNUSED, /* it has no mapping */
	FATHOM_FILE_USED,
	FATHOM_FILE_SUPERSEDED /* it has a mapping, but a newer entry stands for the same file */
};

struct fathom_space_file {
	struct fathom_space_file *next;      /* next in the space's list */
	struct fathom_space_file *in_bucket; /* next in its bucket; older */
	enum fathom_file_use use;            /* valid while a batch ends */
	unsigned users; /* batches under way; the lock guards it and is_stale */
	bool is_stale;  /* must not be used again */
	bool is_file;   /* it is the very file; while open, its inode is not reused */
	bool is_image;  /* rebuilt from memory */
	char *name;     /* as in the map */
	uint64_t hash;  /* fathom_mapping_hash_file() */
	uint64_t device;
	uint64_t inode;               /* 0: [vdso] */
	struct fathom_module *module; /* NULL if it could not be opened; see reason */
	enum fathom_reason reason;
	enum fathom_reason no_file; /* why an image stands for the file; NONE: none does */
};

/* Returns whether the mapping may have a file, or an image that stands for one. */
bool fathom_space_may_be_file(const struct fathom_space *s, const struct fathom_mapping *m);

/*
 * Opens the file of mapping @i; if that fails, (*@ret)->reason is why. FATHOM_E_MEMORY;
 * FATHOM_E_UNSUPPORTED if @maps is a part of the map and does not suffice.
 */
fathom_err fathom_space_file_open(const struct fathom_space *s, const struct fathom_maps *maps,
				  size_t i, struct fathom_space_file **ret);
/*
 * Returns whether @id, from stat(), is the file of mapping @m. On layered file systems stat() and
 * the map may differ: the file is then not recognized, which does no harm.
 */
bool fathom_space_is_file(const struct fathom_space *s, const struct fathom_mapping *m,
			  const struct fathom_file_id *id);
/* Returns whether @id has the device and inode of mapping @m. */
bool fathom_mapping_is_inode(const struct fathom_mapping *m, const struct fathom_file_id *id);

/* Closes all files in the list @files. */
void fathom_space_files_close(struct fathom_space_file *files);

/* Returns whether @f was opened for a mapping of the same file as @m. */
bool fathom_space_file_fits(const struct fathom_space_file *f, const struct fathom_mapping *m);

/* Returns whether @f, which fits mapping @i, is unchanged since it was opened. */
bool fathom_space_file_is_current(const struct fathom_space *s, const struct fathom_maps *maps,
				  size_t i, const struct fathom_space_file *f);

#endif
