/* SPDX-License-Identifier: MIT */
#include "heap.h"

void heap_expect_much(void)
{
}
