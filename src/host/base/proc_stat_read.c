/* SPDX-License-Identifier: MIT */
#include "host/base/proc_stat_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool fathom_proc_stat_read(int dir, const char *path, struct fathom_proc_stat *ret)
{
	const int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	char text[FATHOM_PROC_STAT_SIZE];
	ssize_t got;
	int number;

	if (fd < 0) {
		errno = errno == ENOENT ? ESRCH : errno;
		return false;
	}
	do
		got = read(fd, text, sizeof text);
	while (got < 0 && errno == EINTR);
	if (!got)
		errno = ESRCH;
	if (got > 0 && !fathom_proc_stat_parse(text, (size_t)got, ret)) {
		errno = EPROTO;
		got = 0;
	}
	number = errno;
	close(fd);
	errno = number;
	return got > 0;
}

bool fathom_proc_stat_of(int pid, struct fathom_proc_stat *ret)
{
	char path[32];

	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	return fathom_proc_stat_read(AT_FDCWD, path, ret);
}
