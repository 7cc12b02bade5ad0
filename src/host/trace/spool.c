/* SPDX-License-Identifier: MIT */
#include "host/trace/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Bytes of a lap: whole pages, of up to 64 KiB. */
#define LAP_SIZE (FATHOM_TRACE_RECORDS * sizeof(struct fathom_trace_record))
_Static_assert(LAP_SIZE % 65536 == 0, "mapped by itself");

void fathom_spool_init(struct fathom_spool *s, const char *path, uint64_t size)
{
	struct statvfs fs;

	*s = (struct fathom_spool){ .fd = -1 };
	if (!path)
		return;
	s->fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd < 0 || fstatvfs(s->fd, &fs))
		return;
	s->most = (uint64_t)fs.f_bavail * fs.f_frsize / 4;
	s->most = (s->most < size ? s->most : size) / LAP_SIZE;
}

void fathom_spool_deinit(struct fathom_spool *s)
{
	for (size_t i = 0; i < s->laps.n; i++)
		munmap(s->laps.items[i], LAP_SIZE);
	fathom_array_free(&s->laps);
	fathom_array_free(&s->unused);
	if (s->fd >= 0)
		close(s->fd);
}

struct fathom_trace_record *fathom_spool_acquire(struct fathom_spool *s)
{
	const off_t off = (off_t)(s->laps.n * LAP_SIZE);
	void *lap;

	if (s->unused.n)
		return s->unused.items[--s->unused.n];
	/* There is always room for a lap to become unused. */
	if (s->laps.n >= s->most || !fathom_array_room(&s->laps, 1) ||
	    !fathom_array_room(&s->unused, s->laps.n + 1))
		return NULL;
	if (fallocate(s->fd, 0, off, LAP_SIZE)) {
		s->most = s->laps.n;
		return NULL;
	}
	lap = mmap(NULL, LAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, s->fd, off);
	if (lap == MAP_FAILED) {
		s->most = s->laps.n;
		return NULL;
	}
	s->laps.items[s->laps.n++] = lap;
	return lap;
}

void fathom_spool_release(struct fathom_spool *s, struct fathom_trace_record *lap)
{
	s->unused.items[s->unused.n++] = lap;
}
