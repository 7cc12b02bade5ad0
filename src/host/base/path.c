/* SPDX-License-Identifier: MIT */
#include "host/base/path.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
