/* SPDX-License-Identifier: MIT */
/*
 * The one place that asks the environment; tools/check_environment.py finds every other one. The
 * entry point of libfathom-trace.a runs before the C library does, so it has a test of its own
 * (trace/ftrace_flags.c).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fathom/session.h"

int fathom_is_secure(void)
{
	/* A program may also have got other rights since it began (seteuid(2)). */
	return getauxval(AT_SECURE) || getuid() != geteuid() || getgid() != getegid();
}

const char *fathom_secure_getenv(const char *name)
{
	/* First, as a sandbox may end who asks for ids. */
	const char *value = getenv(name);

	return value && !fathom_is_secure() ? value : NULL;
}

/* Returns whether @path is a program that may be run. */
static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool fits(int size, size_t cap)
{
	return size >= 0 && (size_t)size < cap;
}

int fathom_find_program(const char *name, int (*is_left_out)(const char *path), char *path,
			size_t cap)
{
	const char *folder = fathom_secure_getenv("PATH");
	size_t size;

	if (strchr(name, '/'))
		return fits(snprintf(path, cap, "%s", name), cap) && is_program(path);
	for (folder = folder ? folder : "/usr/local/bin:/usr/bin:/bin"; *folder;
	     folder += size + (folder[size] == ':')) {
		size = strcspn(folder, ":");
		if (fits(snprintf(path, cap, "%.*s/%s", size ? (int)size : 1, size ? folder : ".",
				  name),
			 cap) &&
		    is_program(path) && !(is_left_out && is_left_out(path)))
			return 1;
	}
	return 0;
}
