/* SPDX-License-Identifier: MIT */
/*
 * Part of the C source of fathom._fathom (build_ffi.py): functions that the library calls within a
 * long call. Python is asked only now and then, because each time waits for the GIL.
 */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ASK_EVERY_NS INT64_C(100000000)

static int fathom_python_progress(void *data, const struct fathom_progress *p);
static int fathom_python_is_done(void *data);

/* Returns whether ASK_EVERY_NS have passed since *@last_ns, which becomes now then. */
static int is_time(int64_t *last_ns)
{
	struct timespec t;
	int64_t now_ns;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	now_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	if (now_ns - *last_ns < ASK_EVERY_NS)
		return 0;
	*last_ns = now_ns;
	return 1;
}

static int python_progress(void *data, const struct fathom_progress *p)
{
	static _Thread_local int64_t last_ns;

	return is_time(&last_ns) ? fathom_python_progress(data, p) : FATHOM_GO_ON;
}

struct python_output {
	int fd;
	int has_begun;
	int64_t asked_ns;
	void *asked;
};

/* Writes to the file, whose older content stays until then. */
static int python_write(void *data, const void *bytes, size_t n)
{
	struct python_output *o = data;
	const char *at = bytes;
	struct stat s;

	if (!o->has_begun && !fstat(o->fd, &s) && S_ISREG(s.st_mode) && ftruncate(o->fd, 0))
		return 0;
	o->has_begun = 1;
	while (n) {
		const ssize_t written = write(o->fd, at, n);

		if (written < 0 && errno != EINTR)
			return 0;
		at += written > 0 ? written : 0;
		n -= written > 0 ? (size_t)written : 0;
	}
	return 1;
}

static int python_is_done(void *data)
{
	struct python_output *o = data;

	return is_time(&o->asked_ns) ? fathom_python_is_done(o->asked) : 0;
}

struct python_samples {
	struct fathom_profile_sample *items;
	size_t n;
	size_t room;
};

static int python_take_sample(void *data, const struct fathom_profile_sample *sample)
{
	struct python_samples *samples = data;

	if (samples->n == samples->room)
		return 1;
	samples->items[samples->n++] = *sample;
	return 0;
}
