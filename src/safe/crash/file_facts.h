/* SPDX-License-Identifier: MIT */
/* Opens files, and tells whose an open file is, by system calls. Safety: as-safe. */
#ifndef FATHOM_CRASH_FILE_FACTS_H
#define FATHOM_CRASH_FILE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct fathom_file_facts {
	uint32_t links;
	uint32_t user;
	bool is_device; /* of characters */
	bool is_file;
};

/*
 * Reads the facts of descriptor @fd: by statx(2), or where that is forbidden or not known,
 * fstat(2).
 */
bool fathom_file_facts_read(long fd, struct fathom_file_facts *ret);

/* Opens @path as open(2) does. Returns a descriptor, or a negative errno. */
long fathom_open_path(const char *path, long flags, long mode);

/* Returns the effective user of the calling thread. */
uint32_t fathom_file_user(void);

#endif
