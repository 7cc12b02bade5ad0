/* SPDX-License-Identifier: MIT */
#include "cli/heap.h"

void heap_expect_much(void)
{
}
