/* SPDX-License-Identifier: MIT */
#include "host/trace/spool.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/file/file.h"

/* Bytes of a lap. */
#define LAP_SIZE (FATHOM_TRACE_RECORDS * sizeof(struct fathom_trace_record))

/* Bytes of a spool that is in memory, at most. */
#define MOST_IN_MEMORY (UINT64_C(256) << 20)

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void fathom_spool_init(struct fathom_spool *s, const char *path, uint64_t size)
{
	struct rlimit limit;
	struct statfs fs;

	*s = (struct fathom_spool){ .fd = -1 };
	if (!path)
		return;
	s->fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd < 0 || fstatfs(s->fd, &fs))
		return;
	size = min(size, (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize / 4);
	if (fs.f_type == TMPFS_MAGIC)
		size = min(size, MOST_IN_MEMORY);
	/* A larger file would end this process by SIGXFSZ. */
	if (!getrlimit(RLIMIT_FSIZE, &limit))
		size = min(size, limit.rlim_cur);
	s->most = min(size / LAP_SIZE, UINT32_MAX);
}

void fathom_spool_deinit(struct fathom_spool *s)
{
	fathom_array_free(&s->unused);
	if (s->fd >= 0)
		close(s->fd);
}

bool fathom_spool_acquire(struct fathom_spool *s, uint32_t *ret)
{
	if (s->unused.n) {
		*ret = s->unused.items[--s->unused.n];
		return true;
	}
	/* There is always room to note that one is unused. */
	if (s->n >= s->most || !fathom_array_room(&s->unused, (size_t)s->n + 1))
		return false;
	*ret = s->n++;
	return true;
}

void fathom_spool_release(struct fathom_spool *s, uint32_t lap)
{
	s->unused.items[s->unused.n++] = lap;
}

/* Where record @i of lap @lap is in the file. */
static uint64_t offset_of(uint32_t lap, uint64_t i)
{
	return lap * LAP_SIZE + i * sizeof(struct fathom_trace_record);
}

bool fathom_spool_write(struct fathom_spool *s, uint32_t lap, uint64_t i,
			const struct fathom_trace_record *records, uint64_t n)
{
	if (fathom_file_write_at(s->fd, offset_of(lap, i), records, n * sizeof *records))
		return true;
	s->most = 0;
	return false;
}

bool fathom_spool_read(const struct fathom_spool *s, uint32_t lap, uint64_t i,
		       struct fathom_trace_record *ret, uint64_t n)
{
	return fathom_file_read_at(s->fd, offset_of(lap, i), ret, n * sizeof *ret) ==
	       n * sizeof *ret;
}
