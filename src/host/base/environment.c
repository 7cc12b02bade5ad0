/* SPDX-License-Identifier: MIT */
/*
 * The one place that asks the environment; tools/check_environment.py finds every other one. The
 * entry point of libfathom-trace.a runs before the C library does, so it has a test of its own
 * (trace/ftrace_flags.c).
 */
#include "host/base/environment.h"

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
	return fathom_is_secure() ? NULL : getenv(name);
}

void fathom_secure_exec(char *const *argv)
{
	static const char *const folders[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	char path[4096];

	if (!fathom_is_secure() || strchr(argv[0], '/')) {
		(void)execvp(argv[0], argv);
		return;
	}
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		if (snprintf(path, sizeof path, "%s/%s", folders[i], argv[0]) < (int)sizeof path)
			(void)execvp(path, argv);
}
