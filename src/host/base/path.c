/* SPDX-License-Identifier: MIT */
#include "host/base/path.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool fathom_path_format(struct fathom_path *p, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(p->text, sizeof p->text, format, args);
	va_end(args);
	return length > 0 && (size_t)length < sizeof p->text;
}

const char *fathom_path_last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

int fathom_path_make_dirs(const char *path, unsigned mode)
{
	char *copy = strdup(path);
	int number = 0;

	for (char *slash = copy && *copy ? strchr(copy + 1, '/') : NULL; slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		number = mkdir(copy, mode) && errno != EEXIST ? errno : 0;
		*slash = '/';
	}
	free(copy);
	return number;
}
