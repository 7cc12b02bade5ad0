/* SPDX-License-Identifier: MIT */
/*
 * For C libraries without strerrordesc_np(). In musl strerror() is safe in threads, and translates
 * nothing as long as nothing calls setlocale().
 */
#include "host/base/error_text.h"

#include <string.h>

#include "safe/self/output.h"

const char *fathom_error_text(int number)
{
	return fathom_errno_name(number) || !number ? strerror(number) : NULL;
}
