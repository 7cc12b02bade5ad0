/* SPDX-License-Identifier: MIT */
/* The n-th allocation of a process fails. */
#ifndef HOSTILE_ALLOC_H
#define HOSTILE_ALLOC_H

/* The allocation that is to fail, counted from when allocations was set to 0; 0: none. */
extern long fail_after;

/* Allocations so far. Never more than 0 in builds that have an allocator of their own. */
extern long allocations;

/* Whether allocations are the C library's: not so in builds whose sanitizer brings an allocator. */
extern const int alloc_is_ours;

#endif
