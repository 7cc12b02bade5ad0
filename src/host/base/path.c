/* SPDX-License-Identifier: MIT */
#include "host/base/path.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

bool fathom_path_format(struct fathom_path *p, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(p->text, sizeof p->text, format, args);
	va_end(args);
	return length > 0 && (size_t)length < sizeof p->text;
}
