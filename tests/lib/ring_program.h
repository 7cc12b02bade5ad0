/* SPDX-License-Identifier: MIT */
/* A traced program that is a test itself: it writes the rings of which another part of it is the
 * reader. */
#ifndef TESTS_RING_PROGRAM_H
#define TESTS_RING_PROGRAM_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/trace/rings.h"

/* Makes one with @n rings, which fathom_program_release() frees. */
static struct fathom_program *ring_program_create(uint32_t n)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fathom_program *pr = calloc(1, sizeof *pr);
	char *memory;

	pr->references = 1;
	pr->n_rings = n;
	pr->size = fathom_trace_size(n, &pr->rings_off);
	memory = mmap(NULL, page + pr->size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	pr->head = (struct fathom_trace_head *)(void *)(memory + page);
	return pr;
}

/* Returns record @i of ring @ring. */
static struct fathom_trace_record *ring_program_record(struct fathom_program *pr, uint32_t ring,
						       uint64_t i)
{
	return (struct fathom_trace_record *)(void *)((char *)pr->head + pr->rings_off) +
	       ring * FATHOM_TRACE_RECORDS + i % FATHOM_TRACE_RECORDS;
}

#endif
