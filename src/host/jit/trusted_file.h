/* SPDX-License-Identifier: MIT */
/*
 * Files in which a process says what code it has made. They lie where others may write, too, in
 * /tmp mostly: only what the process itself, or root, can have written is believed.
 */
#ifndef FATHOM_JIT_TRUSTED_FILE_H
#define FATHOM_JIT_TRUSTED_FILE_H

#include <sys/stat.h>

#include "host/jit/jit.h"
#include "safe/base/error.h"

/* The process, as its directory below /proc or its core tells. */
struct fathom_jit_owner {
	uint32_t uid[4];    /* real, effective, saved, of the file system */
	uint64_t pid;       /* as it is known to us */
	uint64_t inner_pid; /* as it knows itself, in its own namespace */
	int64_t started;    /* not before, seconds of the real time clock; 0: not known */
	int64_t ended;      /* when its core was written, likewise; 0: it runs */
};

/* Where the path of a file starts: what a core's files are below is theirs, too. */
enum fathom_jit_root { FATHOM_JIT_THEIRS, FATHOM_JIT_OURS };

/*
 * Opens the file at @path, an absolute one, and says in *@ret_st what it is; links are followed
 * inside of the root only, and the last name must be no link. FATHOM_E_NOT_FOUND when there is no
 * such file; all other errors say in @reterr, with the path in it, why it is not to be used.
 */
fathom_err fathom_jit_file_open(const struct fathom_jit_process *p,
				const struct fathom_jit_owner *o, enum fathom_jit_root root,
				const char *path, int *ret_fd, struct stat *ret_st,
				struct fathom_errinfo *reterr);

/* The same for the very file of mapping @m. */
fathom_err fathom_jit_file_open_mapped(const struct fathom_jit_process *p,
				       const struct fathom_jit_owner *o,
				       const struct fathom_mapping *m, int *ret_fd,
				       struct stat *ret_st, struct fathom_errinfo *reterr);

#endif
