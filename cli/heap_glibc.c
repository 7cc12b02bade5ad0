/* SPDX-License-Identifier: MIT */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/heap.h"

#define STEP      (64 << 20)
#define LARGE     (32 << 20) /* maximum of mallopt(); larger blocks get their own mapping */
#define HUGE_PAGE ((uintptr_t)2 << 20)

void heap_expect_much(void)
{
	uintptr_t start;
	uintptr_t end;
	void *p;

	(void)mallopt(M_MMAP_THRESHOLD, LARGE);
	(void)mallopt(M_TRIM_THRESHOLD, STEP);
	(void)mallopt(M_TOP_PAD, STEP);
	/* Forces the heap to grow by a step. */
	p = malloc(LARGE / 2);
	if (!p)
		return;
	start = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	free(p);
	end = (uintptr_t)sbrk(0) & ~(HUGE_PAGE - 1);
	if (start < end)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}
