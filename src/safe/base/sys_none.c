/* SPDX-License-Identifier: MIT */
/* For processors that have no file of their own: refuses all calls. */
#include "safe/base/sys.h"

#define NOT_THERE 38 /* ENOSYS on every processor that uses this file */

long fathom_sys(long number, long a, long b, long c, long d, long e, long f)
{
	(void)number;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	(void)e;
	(void)f;
	return -NOT_THERE;
}
