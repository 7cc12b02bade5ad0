/* SPDX-License-Identifier: MIT */
/* Preloaded: the memory of processes may not be read, as where Yama or a container forbid it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

int open64(const char *path, int flags, ...)
{
	int (*next)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
	const size_t length = strlen(path);

	if (length > 4 && strcmp(path + length - 4, "/mem") == 0) {
		errno = EACCES;
		return -1;
	}
	return next(path, flags, 0);
}
