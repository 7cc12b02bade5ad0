/* SPDX-License-Identifier: MIT */
#include "host/fleet/download_turn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/path.h"
#include "host/base/progress.h"
#include "safe/base/error.h"

#define PAUSE_NS 20000000
#define MS_NS    INT64_C(1000000)

static int open_lock(const struct fathom *session)
{
	char *path = NULL;
	int fd = -1;

	if (!session->cache_dir || asprintf(&path, "%s/download.lock", session->cache_dir) < 0)
		return -1;
	(void)fathom_path_make_dirs(path, 0700);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	free(path);
	return fd;
}

fathom_err fathom_download_turn_begin(struct fathom *session, struct fathom_download_turn *ret,
				      struct fathom_errinfo *reterr)
{
	const int64_t deadline = fathom_now_ns() + (int64_t)session->debuginfod_timeout_ms * MS_NS;
	struct fathom_download_turn t = { .fd = open_lock(session) };

	while (t.fd >= 0 && flock(t.fd, LOCK_EX | LOCK_NB)) {
		const struct timespec pause = { 0, PAUSE_NS };

		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		t.has_waited = true;
		if (!fathom_goes_on(session, FATHOM_PHASE_DOWNLOAD, 0, 0)) {
			fathom_download_turn_end(&t);
			return fathom_fail(reterr, FATHOM_E_CANCELLED, "", 0, "cancelled");
		}
		/* Whoever has it is slow: better twice than not at all. */
		if (fathom_now_ns() >= deadline)
			break;
		(void)nanosleep(&pause, NULL);
	}
	*ret = t;
	return FATHOM_OK;
}

void fathom_download_turn_end(struct fathom_download_turn *t)
{
	if (t->fd >= 0)
		(void)close(t->fd);
	t->fd = -1;
}
