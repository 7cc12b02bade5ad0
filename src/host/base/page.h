/* SPDX-License-Identifier: MIT */
/* The size of a page of this process. */
#ifndef FATHOM_BASE_PAGE_H
#define FATHOM_BASE_PAGE_H

#include <stddef.h>
#include <unistd.h>

static inline size_t fathom_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

#endif
