/* SPDX-License-Identifier: MIT */
#include "host/base/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 64

bool fathom_array_enlarge(void *items, size_t *cap, size_t n, size_t more, size_t size)
{
	size_t larger = *cap ? *cap : FIRST_CAP;
	size_t bytes;
	void *p;

	while (larger - n < more) {
		if (larger > SIZE_MAX / 2)
			return false;
		larger *= 2;
	}
	/* *items has the caller's type: only its bytes may be copied. */
	memcpy(&p, items, sizeof p);
	if (__builtin_mul_overflow(larger, size, &bytes) || !(p = realloc(p, bytes)))
		return false;
	memcpy(items, &p, sizeof p);
	*cap = larger;
	return true;
}

void fathom_array_clear(void *items, size_t *n, size_t *cap)
{
	void *p;

	memcpy(&p, items, sizeof p);
	free(p);
	p = NULL;
	memcpy(items, &p, sizeof p);
	*n = 0;
	*cap = 0;
}
