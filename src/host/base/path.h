/* SPDX-License-Identifier: MIT */
/* Paths of files: one under construction, and the parts of one. */
#ifndef FATHOM_BASE_PATH_H
#define FATHOM_BASE_PATH_H

#include <limits.h>
#include <stdbool.h>

struct fathom_path {
	char text[PATH_MAX];
};

/* Formats a path. Returns false if it is too long for the system: there is no such file. */
__attribute__((format(printf, 2, 3))) bool fathom_path_format(struct fathom_path *p,
							      const char *format, ...);

/* Returns what stands behind the last '/' of @path: all of it if that is its end. NULL has none. */
const char *fathom_path_last_part(const char *path);

/*
 * Makes the directories above @path, with @mode and the umask. Returns the errno of the last one
 * that could not be made, or 0.
 */
int fathom_path_make_dirs(const char *path, unsigned mode);

#endif
