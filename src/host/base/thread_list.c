/* SPDX-License-Identifier: MIT */
#include "host/base/thread_list.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "safe/base/proc_stat.h"
#include "safe/base/sys.h"

/* Bytes of names that are read at once. */
enum { NAMES_SIZE = 4096 };

/* Record of getdents64(2): struct linux_dirent64. */
struct kernel_dirent {
	uint64_t d_ino;
	int64_t d_off;
	uint16_t d_reclen;
	uint8_t d_type;
	char d_name[];
};

/* Returns the thread that the directory entry @name is of; 0: of none. */
static pid_t tid_of(const char *name)
{
	pid_t tid = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		tid = tid * 10 + (*name - '0');
	return *name ? 0 : tid;
}

int fathom_threads_each(int tasks, bool (*each)(void *data, pid_t tid), void *data)
{
	_Alignas(8) char names[NAMES_SIZE];
	long size;

	(void)fathom_sys(SYS_lseek, tasks, 0, SEEK_SET, 0, 0, 0);
	while ((size = fathom_sys(SYS_getdents64, tasks, (long)(uintptr_t)names, sizeof names, 0, 0,
				  0)) > 0) {
		for (long at = 0; at < size;) {
			const struct kernel_dirent *entry = (const void *)(names + at);
			const pid_t tid = tid_of(entry->d_name);

			if (tid && !each(data, tid))
				return 1;
			at += entry->d_reclen;
		}
	}
	return (int)size;
}

int fathom_threads_open(pid_t pid)
{
	char path[64] = "/proc/self/task";

	if (pid)
		(void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool count(void *data, pid_t tid)
{
	(void)tid;
	++*(size_t *)data;
	return true;
}

size_t fathom_threads_count(int tasks)
{
	size_t n = 0;

	(void)fathom_threads_each(tasks, count, &n);
	return n;
}

/* Writes "TID/stat" to @path. */
static void write_path(pid_t tid, char path[32])
{
	static const char name[] = "/stat";
	char digits[16];
	size_t n = 0;

	for (; tid; tid /= 10)
		digits[n++] = (char)('0' + tid % 10);
	while (n)
		*path++ = digits[--n];
	memcpy(path, name, sizeof name);
}

char fathom_thread_state(int tasks, pid_t tid)
{
	char text[FATHOM_PROC_STAT_SIZE];
	struct fathom_proc_stat stat;
	char path[32];
	long fd, size;

	write_path(tid, path);
	fd = fathom_sys(SYS_openat, tasks, (long)(uintptr_t)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return '\0';
	size = fathom_sys(SYS_read, fd, (long)(uintptr_t)text, sizeof text, 0, 0, 0);
	(void)fathom_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return size > 0 && fathom_proc_stat_parse(text, (size_t)size, &stat) ? stat.state : '\0';
}
