/* SPDX-License-Identifier: MIT */
#include "host/base/error_text.h"

#include <string.h>

const char *fathom_error_text(int number)
{
	return strerrordesc_np(number);
}
