/* SPDX-License-Identifier: MIT */
/*
 * Whole files as byte ranges: mapped, or decompressed when the file is a .gz, .xz, .zst or .lz4.
 *
 * No descriptor stays open. The mapping is read at random, so read-ahead is off: one address must
 * not pull in what lies around it; whoever is about to read a range says so with
 * fathom_file_will_read(). A file that is truncated while it is mapped raises SIGBUS in its reader,
 * as with any mapping: see mapped.h.
 */
#ifndef FATHOM_FILE_FILE_H
#define FATHOM_FILE_FILE_H

#include "host/base/memory.h"

/* What tells whether a file is still the same without reading it. */
struct fathom_file_id {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns; /* of the last change, which cannot be set back */
};

struct fathom_file {
	char *path;
	size_t root_size; /* bytes of path: the root directory of who sees it so; 0: ours */
	struct fathom_bytes bytes;
	struct fathom_file_id id;
	uint64_t allocated;           /* of bytes when they are pages of ours, else 0: mapped */
	struct fathom_mapped *mapped; /* NULL: it is not mapped */
	struct fathom_memory *memory;
	bool is_placed; /* its sections stand where they say, even if it is a relocatable file */
};

/*
 * Opens the regular file at @path. On failure @reterr names it; the remedy for what people meet
 * most (a directory, an empty file, no permission) stands in its text.
 */
fathom_err fathom_file_open(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			    struct fathom_errinfo *reterr);

/* The same for the file as it is, on a file system that answers: a compressed one stays so. */
fathom_err fathom_file_map(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			   struct fathom_errinfo *reterr);

/* Fails with FATHOM_E_TIMEOUT when the file system that @path leads to does not answer. */
fathom_err fathom_file_reach(struct fathom_memory *m, const char *path,
			     struct fathom_errinfo *reterr);

/* Notes that the file system of the file called @path does not answer; FATHOM_E_TIMEOUT. */
fathom_err fathom_fail_reach(struct fathom_errinfo *reterr, const char *path);

/* What tells whether the file at @path is still the same; false when there is none. */
bool fathom_file_identify(const char *path, struct fathom_file_id *ret);

/* A file whose bytes are pages from fathom_pages_alloc(), which it takes over. */
fathom_err fathom_file_wrap(struct fathom_memory *m, const char *path, uint8_t *pages,
			    uint64_t size, uint64_t cap, struct fathom_file **ret);

/* Calls the file @root followed by @path from now on, instead of as it was opened. */
fathom_err fathom_file_rename(struct fathom_file *f, const char *root, const char *path);

void fathom_file_close(struct fathom_file *f);

/* Says that @bytes, a part of the file, will be read whole: one request instead of page faults. */
void fathom_file_will_read(const struct fathom_file *f, struct fathom_bytes bytes);

/* Whether bytes of the file were lost to a SIGBUS: zeros are in their place. */
bool fathom_file_is_cut(const struct fathom_file *f);

/* Whether the file was written to since it was opened; another may have taken its path. */
bool fathom_file_is_overwritten(const struct fathom_file *f);

/* Notes that @path was cut; returns FATHOM_E_CHANGED. */
fathom_err fathom_fail_cut(struct fathom_errinfo *reterr, const char *path);

/* Gives the pages that lie whole inside @bytes back; they can be read again. */
void fathom_file_give_back(const struct fathom_file *f, struct fathom_bytes bytes);

/*
 * Reads up to @size bytes at @off of @fd; returns how many there are. errno says why there are no
 * more, and is 0 where the file ends.
 */
size_t fathom_file_read_at(int fd, uint64_t off, void *to, size_t size);

/* Notes errno as what failed with @path. */
fathom_err fathom_fail_os(struct fathom_errinfo *reterr, const char *path);

/* The same of a file that was to be written. */
fathom_err fathom_fail_write(struct fathom_errinfo *reterr, const char *path);

/* Puts @path in @info, whose other fields are set. */
void fathom_errinfo_set_file(struct fathom_errinfo *info, const char *path);

#endif
