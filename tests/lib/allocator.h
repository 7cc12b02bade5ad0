/* SPDX-License-Identifier: MIT */
/*
 * Stands before the C library's allocator: each call of it runs check_here() first, which who
 * includes this defines.
 */
#ifndef ALLOCATOR_H
#define ALLOCATOR_H

#include <stddef.h>

static void check_here(void);

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

void *malloc(size_t size)
{
	check_here();
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	check_here();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	check_here();
	return __libc_realloc(p, size);
}

void free(void *p)
{
	check_here();
	__libc_free(p);
}

#endif
