/* SPDX-License-Identifier: MIT */
/* For builds whose sanitizer brings an allocator: nothing fails. */
#include "alloc.h"

long fail_after;
long allocations;
const int alloc_is_ours = 0;
