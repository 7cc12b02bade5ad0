/* SPDX-License-Identifier: MIT */
/*
 * Pages of code that were read: of the frames of one stack, and of the stacks of one process, most
 * have their code in a few pages, and each read of another process is a system call.
 */
#ifndef FATHOM_STACK_CODE_PAGES_H
#define FATHOM_STACK_CODE_PAGES_H

#include <stdbool.h>

#include "safe/base/reader.h"

enum { FATHOM_CODE_PAGES = 64, FATHOM_CODE_PAGE = 4096 };

struct fathom_code_page {
	uint64_t avma;
	uint64_t age;  /* of another age nothing was read */
	uint32_t size; /* bytes that could be read, from its start */
	uint8_t bytes[FATHOM_CODE_PAGE];
};

struct fathom_code_pages {
	const struct fathom_reader *memory;
	uint64_t age; /* that pages must have */
	struct fathom_code_page items[FATHOM_CODE_PAGES];
};

/* Begins with no page, of @memory; @p is zero-initialized. */
void fathom_code_pages_init(struct fathom_code_pages *p, const struct fathom_reader *memory);

/* Forgets all pages. */
void fathom_code_pages_forget(struct fathom_code_pages *p);

/* Returns a reader of @p, a page at a time. What is not in whole pages is read as ever. */
struct fathom_reader fathom_code_pages_reader(struct fathom_code_pages *p);

#endif
