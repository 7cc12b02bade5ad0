/* SPDX-License-Identifier: MIT */
/*
 * The files that a space has mapped, each opened as a module. A mapping's file is looked for in
 * this order:
 * 1. what the kernel keeps of it: the very file, also when it is deleted, replaced or has no name
 *    (/proc/PID/map_files, which needs privilege); of what was stored, what the user says it is.
 * 2. its path, below the root that the space says (of what was stored, below the sysroot first):
 * the same file by device and inode, or one whose first page and build-id are those in the memory
 * of the space.
 * 3. the image in memory, for [vdso] and for what cannot be had otherwise. Where its symbols are
 * not in memory, it needs a debug file with its build-id.
 */
#ifndef FATHOM_TARGET_SPACE_OPENED_FILE_H
#define FATHOM_TARGET_SPACE_OPENED_FILE_H

#include "host/module/module.h"
#include "host/target/space/space.h"

/* What the map of a batch says of a file. */
enum fathom_file_use {
	FATHOM_FILE_UNUSED, /* no mapping is of it */
	FATHOM_FILE_USED,
	FATHOM_FILE_SUPERSEDED /* a mapping is of it, but a newer entry is for the same */
};

struct fathom_space_file {
	struct fathom_space_file *next;      /* in the space's list */
	struct fathom_space_file *in_bucket; /* the next in its bucket; older */
	enum fathom_file_use use;            /* while a batch ends */
	unsigned users;                      /* batches under way; like is_stale, under the lock */
	bool is_stale;                       /* not to be used again */
	bool is_file;  /* the very file; while it is open, its inode cannot become another's */
	bool is_image; /* put together from memory */
	char *name;    /* as the map has it */
	uint64_t hash; /* fathom_mapping_hash_file() */
	uint64_t device;
	uint64_t inode;               /* 0: [vdso] */
	struct fathom_module *module; /* NULL: it cannot be had, because of */
	enum fathom_reason reason;
};

/* Whether a file, or what stands for one, may be behind the mapping. */
bool fathom_space_may_be_file(const struct fathom_space *s, const struct fathom_mapping *m);

/*
 * Opens the file of mapping @i; if it cannot be had, it says why. FATHOM_E_MEMORY;
 * FATHOM_E_UNSUPPORTED when @maps is a part, and does not suffice.
 */
fathom_err fathom_space_file_open(const struct fathom_space *s, const struct fathom_maps *maps,
				  size_t i, struct fathom_space_file **ret);
/*
 * Whether what stat() says of a file tells that it is the one of mapping @m. What it says and what
 * the map says may differ on layered file systems: then it is not told, which does no harm.
 */
bool fathom_space_is_file(const struct fathom_space *s, const struct fathom_mapping *m,
			  const struct fathom_file_id *id);
/* The same, by device and inode. */
bool fathom_mapping_is_inode(const struct fathom_mapping *m, const struct fathom_file_id *id);

/* Closes all of the list @files. */
void fathom_space_files_close(struct fathom_space_file *files);

/* Whether @f was opened for a mapping as @m is. */
bool fathom_space_file_fits(const struct fathom_space_file *f, const struct fathom_mapping *m);

/* Whether @f, which fits mapping @i, is as it was when it was opened. */
bool fathom_space_file_is_current(const struct fathom_space *s, const struct fathom_maps *maps,
				  size_t i, const struct fathom_space_file *f);

#endif
