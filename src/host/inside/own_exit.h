/* SPDX-License-Identifier: MIT */
/* When a process that traces itself calls exit(). */
#ifndef FATHOM_INSIDE_OWN_EXIT_H
#define FATHOM_INSIDE_OWN_EXIT_H

#include <stdint.h>

/* The status of a process is not known. */
#define FATHOM_OWN_NO_STATUS INT32_MAX

/*
 * Arranges that exit() calls fathom_own_rings_exit(): with FATHOM_OWN_NO_STATUS if the C library
 * does not tell the status.
 */
void fathom_own_exit_follow(void);

#endif
