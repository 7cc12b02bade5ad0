/* SPDX-License-Identifier: MIT */
#include "host/stack/task_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/base/proc_stat_read.h"
#include "safe/base/limits.h"
#include "safe/base/text.h"

bool fathom_task_open(struct fathom_task *t, int proc, int32_t tid)
{
	char path[32];

	(void)snprintf(path, sizeof path, "task/%d", tid);
	*t = (struct fathom_task){ -1, -1, -1 };
	t->dir = openat(proc, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return t->dir >= 0;
}

void fathom_task_close(struct fathom_task *t)
{
	const int fds[] = { t->dir, t->status, t->syscall };

	for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*t = (struct fathom_task){ -1, -1, -1 };
}

/* Reads from the start of @fd, below @size bytes, as a string. Returns its length, 0 with errno. */
static size_t read_text(int fd, char *to, size_t size)
{
	ssize_t got;

	do
		got = pread(fd, to, size - 1, 0);
	while (got < 0 && errno == EINTR);
	if (!got)
		errno = ESRCH;
	to[got > 0 ? got : 0] = '\0';
	return got > 0 ? (size_t)got : 0;
}

/* Opens the file @name into @fd if it is not open. */
static bool open_once(const struct fathom_task *t, const char *name, int *fd)
{
	if (*fd < 0)
		*fd = openat(t->dir, name, O_RDONLY | O_CLOEXEC);
	if (*fd < 0 && errno == ENOENT)
		errno = ESRCH;
	return *fd >= 0;
}

/* Returns whether the thread of @stat is a worker of io_uring or vhost. */
static bool is_kernel_worker(const struct fathom_proc_stat *stat)
{
	return ((stat->flags & FATHOM_PF_IO_WORKER) && strncmp(stat->name, "iou-", 4) == 0) ||
	       ((stat->flags & FATHOM_PF_USER_WORKER) && strncmp(stat->name, "vhost-", 6) == 0);
}

bool fathom_task_stat(const struct fathom_task *t, struct fathom_task_stat *ret)
{
	struct fathom_proc_stat stat;

	if (!fathom_proc_stat_read(t->dir, "stat", &stat))
		return false;
	fathom_copy_cstr(ret->name, sizeof ret->name, stat.name);
	ret->state = stat.state;
	ret->is_kernel_worker = is_kernel_worker(&stat);
	return true;
}

uint64_t fathom_task_number(const char *text, const char *label, int base, uint64_t none)
{
	const char *at = strstr(text, label);

	return at ? strtoull(at + strlen(label), NULL, base) : none;
}

/* Returns whether a signal waits that has a handler and is not blocked, or that is unknown. */
static bool is_handler_due(const char *text)
{
	const uint64_t waiting = fathom_task_number(text, "\nSigPnd:", 16, UINT64_MAX) |
				 fathom_task_number(text, "\nShdPnd:", 16, UINT64_MAX);

	return waiting & ~fathom_task_number(text, "\nSigBlk:", 16, 0) &
	       fathom_task_number(text, "\nSigCgt:", 16, UINT64_MAX);
}

/*
 * Reads up to the end of @fd, whose first @n bytes are in @text. Leaves what comes last, at least
 * half of @size bytes if there are more. A list of groups makes this file long.
 */
static void read_end(int fd, char *text, size_t n, size_t size)
{
	off_t off = (off_t)n;

	while (off < FATHOM_MAX_TASK_STATUS) {
		ssize_t got;

		if (n > size / 2) {
			memmove(text, text + n - size / 2, size / 2 + 1);
			n = size / 2;
		}
		got = pread(fd, text + n, size - 1 - n, off);
		if (got <= 0)
			break;
		n += (size_t)got;
		off += got;
		text[n] = '\0';
	}
}

bool fathom_task_status(struct fathom_task *t, struct fathom_task_status *ret)
{
	static const char last[] = "\nnonvoluntary_ctxt_switches:";
	char text[4096];
	size_t got;

	if (!open_once(t, "status", &t->status))
		return false;
	got = read_text(t->status, text, sizeof text);
	if (!got)
		return false;
	ret->tracer = (int32_t)fathom_task_number(text, "\nTracerPid:", 10, 0);
	if (!strstr(text, last))
		read_end(t->status, text, got, sizeof text);
	ret->voluntary = fathom_task_number(text, "\nvoluntary_ctxt_switches:", 10, UINT64_MAX);
	ret->forced = fathom_task_number(text, last, 10, UINT64_MAX);
	ret->handler_is_due = is_handler_due(text);
	errno = EPROTO;
	return ret->voluntary != UINT64_MAX && ret->forced != UINT64_MAX;
}

/* Reads the @n numbers at @at into @to; returns how many there are. */
static unsigned read_numbers(const char *at, uint64_t *to, unsigned n)
{
	unsigned i = 0;

	for (char *end; i < n; i++, at = end) {
		to[i] = strtoull(at, &end, 0);
		if (end == at)
			break;
	}
	return i;
}

bool fathom_task_syscall(struct fathom_task *t, struct fathom_task_syscall *ret)
{
	struct fathom_task_syscall s = { .number = -1 };
	uint64_t numbers[8];
	char text[256];
	char *end;

	if (!open_once(t, "syscall", &t->syscall) || !read_text(t->syscall, text, sizeof text))
		return false;
	errno = EPROTO;
	s.runs = !strncmp(text, "running", 7);
	if (!s.runs) {
		s.number = strtoll(text, &end, 10);
		s.in_syscall = s.number >= 0;
		if (end == text)
			return false;
		/* "NUMBER ARGUMENT... SP PC", or "-1 SP PC" */
		if (s.in_syscall && read_numbers(end, numbers, 8) == 8)
			memcpy(s.arguments, numbers, sizeof s.arguments);
		else if (s.in_syscall || read_numbers(end, numbers + 6, 2) != 2)
			return false;
		s.sp = numbers[6];
		s.pc = numbers[7];
	}
	*ret = s;
	return true;
}

bool fathom_task_wchan(const struct fathom_task *t, char *to, size_t size)
{
	const int fd = openat(t->dir, "wchan", O_RDONLY | O_CLOEXEC);
	const bool is_read = fd >= 0 && read_text(fd, to, size);

	if (fd >= 0)
		close(fd);
	return is_read;
}
