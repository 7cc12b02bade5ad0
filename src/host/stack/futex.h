/* SPDX-License-Identifier: MIT */
/*
 * Futexes that threads wait for (futex(2)): what they are part of, as far as the words around them
 * prove it.
 */
#ifndef FATHOM_STACK_FUTEX_H
#define FATHOM_STACK_FUTEX_H

#include "host/stack/task.h"

/* Describes a wait in futex(). */
void fathom_futex_describe(struct fathom_waiter *w);

#endif
