/* SPDX-License-Identifier: MIT */
#include "host/store/piece_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/base/path.h"
#include "host/file/file.h"
#include "safe/base/hex.h"
#include "safe/index/index.h"

char *fathom_piece_cache_path(const struct fathom *session, const struct fathom_container_header *h)
{
	char id[2 * sizeof h->build_id + 1];
	char *path = NULL;

	if (!session->cache_dir)
		return NULL;
	fathom_hex_put(id, h->build_id, h->build_id_size);
	/* The cache removes what ends like this when it is full. */
	if (asprintf(&path, "%s/%s-store-%016llx.fidx", session->cache_dir, id,
		     (unsigned long long)h->check) < 0)
		return NULL;
	return path;
}

/* Returns whether only this user and root can have written the file. */
static bool is_ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

size_t fathom_piece_cache_read(const char *path, uint64_t off, void *to, size_t size)
{
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	size_t got = 0;

	if (fd < 0)
		return 0;
	if (is_ours(fd))
		got = fathom_file_read_at(fd, off, to, size);
	(void)close(fd);
	return got;
}

void fathom_piece_cache_write(const char *path, uint64_t off, const void *from, size_t size)
{
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	int fd = open(path, flags, 0600);

	if (fd < 0 && errno == ENOENT) {
		(void)fathom_path_make_dirs(path, 0700);
		fd = open(path, flags, 0600);
	}
	if (fd < 0)
		return;
	if (is_ours(fd))
		(void)fathom_file_write_at(fd, off, from, size);
	(void)close(fd);
}
