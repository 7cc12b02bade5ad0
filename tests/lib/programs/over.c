/* SPDX-License-Identifier: MIT */
/* What is preloaded: other definitions of names that libraries have. */
#include <stddef.h>

static char pool[1 << 20];
static size_t used;

void *malloc(size_t size)
{
	void *p = pool + used;

	used += (size + 15) & ~(size_t)15;
	return used <= sizeof pool ? p : NULL;
}

void free(void *p)
{
	(void)p;
}

int over_only(void)
{
	return 1;
}
