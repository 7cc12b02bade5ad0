/* SPDX-License-Identifier: MIT */
/*
 * Whole files as byte ranges: mapped, or decompressed (.gz, .xz, .zst, .lz4).
 *
 * No descriptor stays open. Mappings are read at random, so read-ahead is off: one address must not
 * pull in what lies around it. Code that is about to read a range calls fathom_file_will_read()
 * first. If a file is truncated while it is mapped, its reader gets SIGBUS: see mapped.h.
 */
#ifndef FATHOM_FILE_FILE_H
#define FATHOM_FILE_FILE_H

#include "host/base/memory.h"

/* Identifies a file, and its version, without reading it. */
struct fathom_file_id {
	uint64_t device;
	uint64_t inode;
	uint64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns; /* last change; nobody can set it back */
};

struct fathom_file {
	char *path;
	size_t root_size; /* bytes of path that name another process's root; 0: ours */
	struct fathom_bytes bytes;
	struct fathom_file_id id;
	uint64_t allocated;           /* bytes of pages that are ours; 0 if the file is mapped */
	struct fathom_mapped *mapped; /* NULL if the file is not mapped */
	struct fathom_memory *memory;
	bool is_short;  /* of a compressed file, only the first part is there */
	bool is_placed; /* all sections are where they say, even in a relocatable file */
};

/*
 * Opens the regular file at @path. On failure @reterr names it, and the remedy for common cases (a
 * directory, an empty file, no permission).
 */
fathom_err fathom_file_open(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			    struct fathom_errinfo *reterr);

/*
 * The same; a compressed file that was cut short is opened as far as it goes (is_short). A
 * compressed one that does not fit the budget fails with FATHOM_E_LIMIT.
 */
fathom_err fathom_file_open_cut(struct fathom_memory *m, const char *path, struct fathom_file **ret,
				struct fathom_errinfo *reterr);

/* Maps the file as it is: a compressed one stays compressed. Its file system must answer. */
fathom_err fathom_file_map(struct fathom_memory *m, const char *path, struct fathom_file **ret,
			   struct fathom_errinfo *reterr);

/* Returns FATHOM_E_TIMEOUT if the file system of @path does not answer. */
fathom_err fathom_file_reach(struct fathom_memory *m, const char *path,
			     struct fathom_errinfo *reterr);

/* Sets the error that the file system of @path does not answer. Returns FATHOM_E_TIMEOUT. */
fathom_err fathom_fail_reach(struct fathom_errinfo *reterr, const char *path);

/* Identifies the file at @path; false if there is none. */
bool fathom_file_identify(const char *path, struct fathom_file_id *ret);

/* Makes a file of pages from fathom_pages_alloc(), which it takes over. */
fathom_err fathom_file_wrap(struct fathom_memory *m, const char *path, uint8_t *pages,
			    uint64_t size, uint64_t cap, struct fathom_file **ret);

/* Renames the file to @root followed by @path. */
fathom_err fathom_file_rename(struct fathom_file *f, const char *root, const char *path);

void fathom_file_close(struct fathom_file *f);

/* Announces that @bytes, a part of the file, will be read whole: one request, few page faults. */
void fathom_file_will_read(const struct fathom_file *f, struct fathom_bytes bytes);

/* Returns whether bytes of the file were lost to a SIGBUS and replaced by zeros. */
bool fathom_file_is_cut(const struct fathom_file *f);

/* Returns whether the file was written to since it was opened; false if another took its path. */
bool fathom_file_is_overwritten(const struct fathom_file *f);

/* Sets the error that @path, a compressed file, is damaged. Returns FATHOM_E_CORRUPT. */
fathom_err fathom_fail_damaged(struct fathom_errinfo *reterr, const char *path);

/* Sets the error that @path was cut. Returns FATHOM_E_CHANGED. */
fathom_err fathom_fail_cut(struct fathom_errinfo *reterr, const char *path);

/* Gives the pages inside @bytes back. They can be read again. */
void fathom_file_give_back(const struct fathom_file *f, struct fathom_bytes bytes);

/*
 * Reads up to @size bytes at @off of @fd. Returns how many there are; errno says why there are no
 * more, and is 0 at the end of the file.
 */
size_t fathom_file_read_at(int fd, uint64_t off, void *to, size_t size);

/* Writes all @size bytes to @off of @fd; false with errno, which is 0 if nothing was written. */
bool fathom_file_write_at(int fd, uint64_t off, const void *from, size_t size);

/* Sets the error that reading @path failed with errno. */
fathom_err fathom_fail_os(struct fathom_errinfo *reterr, const char *path);

/* Sets the error that writing @path failed with errno. */
fathom_err fathom_fail_write(struct fathom_errinfo *reterr, const char *path);

/* Puts @path into @info, whose other fields are set. */
void fathom_errinfo_set_file(struct fathom_errinfo *info, const char *path);

#endif
