/* SPDX-License-Identifier: MIT */
/* Takes the place of the C library's allocator, by glibc's own second names for it. */
#include "alloc.h"

#include <stddef.h>

long fail_after;
long allocations;
const int alloc_is_ours = 1;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t size);

static int must_fail(void)
{
	allocations++;
	return fail_after && allocations == fail_after;
}

void *malloc(size_t size)
{
	return must_fail() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return must_fail() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return must_fail() ? NULL : __libc_realloc(p, size);
}
