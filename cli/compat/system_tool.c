/* SPDX-License-Identifier: MIT */
/*
 * Runs the system's tool if the command is called as nm, objdump or c++filt. pprof looks for all
 * its tools in one directory (PPROF_TOOLS), and fathom replaces only addr2line.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/common.h"

/* Exit statuses of shells: not found; found but not executable. */
enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126 };

/*
 * Returns whether @path leads to fathom: to this very file, or to another one of that name, which
 * might find this one in turn.
 */
static bool is_fathom(const char *path)
{
	char real[PATH_MAX];
	struct stat self;
	struct stat st;

	if (stat("/proc/self/exe", &self) == 0 && stat(path, &st) == 0 &&
	    self.st_dev == st.st_dev && self.st_ino == st.st_ino)
		return true;
	return realpath(path, real) && strcmp(last_part(real), "fathom") == 0;
}

/* Writes the path of the first program @name in $PATH to @ret; returns false if there is none. */
static bool find_program(const char *name, char ret[PATH_MAX])
{
	const char *dir = getenv("PATH");
	size_t size;

	for (dir = dir ? dir : "/usr/local/bin:/usr/bin:/bin"; *dir;
	     dir += size + (dir[size] == ':')) {
		struct stat st;

		size = strcspn(dir, ":");
		if (snprintf(ret, PATH_MAX, "%.*s/%s", size ? (int)size : 1, size ? dir : ".",
			     name) < PATH_MAX &&
		    stat(ret, &st) == 0 && S_ISREG(st.st_mode) && access(ret, X_OK) == 0 &&
		    !is_fathom(ret))
			return true;
	}
	return false;
}

int run_system_tool(char **argv)
{
	const char *name = last_part(argv[0]);
	char path[PATH_MAX];

	if (!find_program(name, path)) {
		complain(name, "no such program in $PATH", "install binutils");
		return EXIT_NOT_FOUND;
	}
	argv[0] = path;
	(void)execv(path, argv);
	complain(path, strerror(errno), NULL);
	return EXIT_NOT_EXECUTABLE;
}
