/* SPDX-License-Identifier: MIT */
/*
 * The one place that asks the environment; tools/check_environment.py finds every other one. The
 * entry point of libfathom-trace.a runs before the C library does, so it has a test of its own
 * (trace/ftrace_flags.c).
 */
#include "host/base/environment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
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

const char *fathom_secure_program(const char *name, char path[FATHOM_PROGRAM_PATH])
{
	static const char *const folders[] = { "/usr/local/bin", "/usr/bin", "/bin" };

	/* No file has a longer name. */
	if (strchr(name, '/') || strlen(name) > NAME_MAX || !fathom_is_secure())
		return name;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		(void)snprintf(path, FATHOM_PROGRAM_PATH, "%s/%s", folders[i], name);
		if (!access(path, X_OK))
			break;
	}
	return path;
}
