/* SPDX-License-Identifier: MIT */
/* Tuning of the C library's heap. */
#ifndef FATHOM_CLI_HEAP_H
#define FATHOM_CLI_HEAP_H

/*
 * Prepares the heap for much work: it grows in large steps, uses huge pages and keeps freed memory.
 * Costs a fraction of a millisecond and saves most page faults when there are many addresses. Does
 * nothing unless the C library is glibc.
 */
void heap_expect_much(void);

#endif
