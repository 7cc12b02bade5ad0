/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "safe/crash/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "fathom/self.h"
#include "safe/base/own_thread.h"
#include "safe/base/text.h"
#include "safe/crash/file_facts.h"

#define STDERR 2

/* How long one report waits for readers of pipes and terminals: so many times so long. */
#define WAITS   20
#define WAIT_NS 100000000

/* struct timespec of ppoll(2), whose seconds are of this size on 32 bits, too */
struct interval {
	long seconds;
	long nanoseconds;
};

/*
 * Returns whether what was opened as @fd is a place for a report: a device, or what belongs to this
 * user or root; a file has no second name, by which another user may have linked it here.
 */
static bool is_ours(long fd)
{
	struct fathom_file_facts f;

	if (!fathom_file_facts_read(fd, &f))
		return false;
	return f.is_device ||
	       ((!f.user || f.user == fathom_file_user()) && (!f.is_file || f.links == 1));
}

/* Waits until @fd takes a piece; returns false if it does not within what is left of the bound. */
static bool wait_for(struct fathom_report_sink *s)
{
	for (;;) {
		const struct interval wait = { 0, WAIT_NS };
		struct pollfd p = { .fd = s->fd, .events = POLLOUT };
		const long n = fathom_sys(SYS_ppoll, (long)(uintptr_t)&p, 1, (long)(uintptr_t)&wait,
					  0, 8, 0);

		if (n != 0) /* Also an error: write() will say it. */
			return true;
		if (!s->waits)
			return false;
		s->waits--;
	}
}

/* The kernel's set of SIGPIPE alone. */
static const uint64_t sigpipe = UINT64_C(1) << (SIGPIPE - 1);

/* Returns whether SIGPIPE, which is blocked, is pending. */
static bool is_sigpipe_pending(void)
{
	uint64_t set = 0;

	(void)fathom_sys(SYS_rt_sigpending, (long)(uintptr_t)&set, sizeof set, 0, 0, 0, 0);
	return set & sigpipe;
}

/* Takes the SIGPIPE of a write back. */
static void take_sigpipe(const struct fathom_report_sink *s)
{
	const struct interval none = { 0, 0 };

	if (!s->has_sigpipe)
		(void)fathom_sys(SYS_rt_sigtimedwait, (long)(uintptr_t)&sigpipe, 0,
				 (long)(uintptr_t)&none, sizeof sigpipe, 0, 0);
}

/* Writes @size bytes; returns how many were taken. */
static size_t write_all(struct fathom_report_sink *s, const char *from, size_t size)
{
	size_t done = 0;

	while (done < size && wait_for(s)) {
		const long n = fathom_sys(SYS_write, s->fd, (long)(uintptr_t)(from + done),
					  (long)(size - done), 0, 0, 0);

		if (n > 0) {
			done += (size_t)n;
		} else if ((n == -EINTR || n == -EAGAIN) && s->waits) {
			s->waits--;
		} else {
			if (n == -EPIPE)
				take_sigpipe(s);
			break;
		}
	}
	return done;
}

static void leave(struct fathom_report_sink *s)
{
	if (s->is_opened)
		(void)fathom_sys(SYS_close, s->fd, 0, 0, 0, 0, 0);
	s->fd = s->fd == STDERR ? -1 : STDERR;
	s->is_opened = false;
}

/* Writes the @size bytes at @from, if need be to standard error. */
static void put(struct fathom_report_sink *s, const char *from, size_t size)
{
	size_t done = 0;

	while (s->fd >= 0 && done < size) {
		done += write_all(s, from + done, size - done);
		if (done < size)
			leave(s);
	}
}

void fathom_sink_flush(struct fathom_report_sink *s)
{
	put(s, s->text, s->n);
	s->n = 0;
}

/* Writes the path that the pattern stands for; returns false if it is too long. */
static bool expand(const char *pattern, char to[FATHOM_CRASH_PATH])
{
	struct fathom_text t = text_init(to, FATHOM_CRASH_PATH);

	for (const char *p = pattern; *p; p++) {
		if (*p != '%' || !p[1])
			fathom_text_char(&t, *p);
		else if (*++p == 'p')
			fathom_text_dec(&t, (uint64_t)fathom_own_pid());
		else if (*p == 't')
			fathom_text_dec(&t, (uint64_t)fathom_own_tid());
		else
			fathom_text_char(&t, *p);
	}
	fathom_text_end(&t);
	return t.len < FATHOM_CRASH_PATH;
}

void fathom_sink_open(struct fathom_report_sink *s, const struct fathom_crash *c)
{
	char path[FATHOM_CRASH_PATH];
	long fd = -ENAMETOOLONG;

	s->self = c->self;
	s->fd = c->fd;
	s->is_opened = false;
	s->has_sigpipe = is_sigpipe_pending();
	s->waits = WAITS;
	s->n = 0;
	if (!c->path[0])
		return;
	if (expand(c->path, path))
		fd = fathom_open_path(path,
				      O_WRONLY | O_CREAT | O_NOCTTY | O_APPEND | O_CLOEXEC |
					      O_NOFOLLOW | O_NONBLOCK,
				      0600);
	if (fd >= 0 && !is_ours(fd)) {
		(void)fathom_sys(SYS_close, fd, 0, 0, 0, 0, 0);
		fd = -EPERM;
	}
	s->is_opened = fd >= 0;
	s->fd = fd >= 0 ? (int)fd : STDERR;
	if (fd < 0)
		fathom_sink_add(s, "fathom: %s: the report cannot be written there: %m\n", c->path,
				(int)-fd);
}

void fathom_sink_add(struct fathom_report_sink *s, const char *format, ...)
{
	va_list arguments;
	size_t size;

	for (int i = 0; i < 2; i++) {
		va_start(arguments, format);
		size = fathom_self_vformat(s->self, s->text + s->n, sizeof s->text - s->n, format,
					   arguments);
		va_end(arguments);
		if (size < sizeof s->text - s->n || !s->n) {
			size = size < sizeof s->text - s->n ? size : sizeof s->text - 1;
			s->n += size;
			return;
		}
		fathom_sink_flush(s);
	}
}

long fathom_sink_copy(struct fathom_report_sink *s, const char *path, size_t limit)
{
	const long fd = fathom_open_path(path, O_RDONLY | O_CLOEXEC, 0);
	long n = 1;

	if (fd < 0)
		return fd;
	fathom_sink_flush(s);
	while (n > 0 && limit && s->fd >= 0) {
		n = fathom_sys(SYS_read, fd, (long)(uintptr_t)s->text,
			       (long)(limit < sizeof s->text ? limit : sizeof s->text), 0, 0, 0);
		if (n <= 0)
			break;
		limit -= (size_t)n;
		s->n = (size_t)n;
		fathom_sink_flush(s);
	}
	(void)fathom_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return n < 0 ? n : 0;
}

void fathom_sink_close(struct fathom_report_sink *s)
{
	fathom_sink_flush(s);
	if (s->is_opened)
		(void)fathom_sys(SYS_close, s->fd, 0, 0, 0, 0, 0);
}
