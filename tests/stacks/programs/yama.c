/* SPDX-License-Identifier: MIT */
/*
 * A library for LD_PRELOAD. Refuses what Yama's mode 1 refuses a user who traces others than children: all that the
 * kernel checks as an attachment (ptrace(2)). Map and state of a process can still be read.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef int open_function(const char *, int, ...);
typedef int openat_function(int, const char *, int, ...);

static const char mode[] = "/proc/sys/kernel/yama/ptrace_scope";

/* Returns the path to open for @path; NULL: none. */
static const char *allowed(const char *path)
{
	const char *last = strrchr(path, '/');

	last = last ? last + 1 : path;
	if (!strcmp(path, mode))
		return YAMA_MODE_FILE;
	errno = EPERM;
	return strcmp(last, "mem") && strcmp(last, "syscall") && strcmp(last, "auxv") ? path : NULL;
}

int open(const char *path, int flags, ...)
{
	va_list list;
	int rights;

	va_start(list, flags);
	rights = va_arg(list, int);
	va_end(list);
	path = allowed(path);
	return path ? ((open_function *)dlsym(RTLD_NEXT, "open"))(path, flags, rights) : -1;
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list list;
	int rights;

	va_start(list, flags);
	rights = va_arg(list, int);
	va_end(list);
	path = allowed(path);
	return path ? ((openat_function *)dlsym(RTLD_NEXT, "openat"))(folder, path, flags, rights) : -1;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n_to, const struct iovec *from,
			 unsigned long n_from, unsigned long flags)
{
	(void)pid, (void)to, (void)n_to, (void)from, (void)n_from, (void)flags;
	errno = EPERM;
	return -1;
}

long ptrace(enum __ptrace_request request, ...)
{
	(void)request;
	errno = EPERM;
	return -1;
}
