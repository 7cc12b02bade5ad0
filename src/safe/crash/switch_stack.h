/* SPDX-License-Identifier: MIT */
/*
 * Calls a function on another stack. A handler may run on a stack that has room for little more
 * than the kernel's signal frame.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_SWITCH_STACK_H
#define FATHOM_CRASH_SWITCH_STACK_H

/*
 * Calls @call(@data) on the stack that ends at @end, a multiple of 16. On processors without a file
 * of their own the stack stays the same.
 */
void fathom_switch_stack(void (*call)(void *data), void *data, void *end);

#endif
