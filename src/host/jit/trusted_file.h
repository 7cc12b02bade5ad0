/* SPDX-License-Identifier: MIT */
/*
 * Files in which a process describes its JIT code. They are mostly in /tmp, where others may write
 * too: only a file that the process itself, or root, can have written is trusted.
 */
#ifndef FATHOM_JIT_TRUSTED_FILE_H
#define FATHOM_JIT_TRUSTED_FILE_H

#include <sys/stat.h>

#include "host/jit/jit.h"
#include "safe/base/error.h"

/* The owner of a process, from its directory below /proc or its core. */
struct fathom_jit_owner {
	uint32_t uid[4];    /* real, effective, saved, of the file system */
	uint64_t pid;       /* in our namespace */
	uint64_t inner_pid; /* in its own namespace */
	int64_t started;    /* earliest start, seconds of the real time clock; 0: unknown */
	int64_t ended;      /* when its core was written, same clock; 0: it runs */
};

/*
 * Where the path of a file starts: at the root of the process, or of its core's files, or at ours.
 */
enum fathom_jit_root { FATHOM_JIT_THEIRS, FATHOM_JIT_OURS };

/*
 * Opens the file at the absolute @path and stats it into *@ret_st; follows links only inside the
 * root, and the last name must not be a link. FATHOM_E_NOT_FOUND if there is no such file; for any
 * other error, @reterr says why the file, with its path, is rejected.
 */
fathom_err fathom_jit_file_open(const struct fathom_jit_process *p,
				const struct fathom_jit_owner *o, enum fathom_jit_root root,
				const char *path, int *ret_fd, struct stat *ret_st,
				struct fathom_errinfo *reterr);

/* Opens the very file of mapping @m likewise. */
fathom_err fathom_jit_file_open_mapped(const struct fathom_jit_process *p,
				       const struct fathom_jit_owner *o,
				       const struct fathom_mapping *m, int *ret_fd,
				       struct stat *ret_st, struct fathom_errinfo *reterr);

#endif
