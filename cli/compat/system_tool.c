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
#include "cli/launch.h"

/*
 * Returns whether @path leads to fathom: to this very file, or to another one of that name, which
 * might find this one in turn.
 */
static int is_fathom(const char *path)
{
	char real[PATH_MAX];
	struct stat self;
	struct stat st;

	if (stat("/proc/self/exe", &self) == 0 && stat(path, &st) == 0 &&
	    self.st_dev == st.st_dev && self.st_ino == st.st_ino)
		return true;
	return realpath(path, real) && strcmp(last_part(real), "fathom") == 0;
}

int run_system_tool(char **argv)
{
	const char *name = last_part(argv[0]);
	char path[PATH_MAX];

	if (!fathom_find_program(name, is_fathom, path, sizeof path)) {
		complain(name, "no such program in $PATH", "install binutils");
		return EXIT_NOT_FOUND;
	}
	argv[0] = path;
	(void)execv(path, argv);
	complain(path, strerror(errno), NULL);
	return EXIT_NOT_RUN;
}
