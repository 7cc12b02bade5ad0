/* SPDX-License-Identifier: MIT */
/* When a process that traces itself calls exit(). */
#ifndef FATHOM_SELF_TRACE_SELF_EXIT_H
#define FATHOM_SELF_TRACE_SELF_EXIT_H

#include <stdint.h>

/* The status of a process is not known. */
#define FATHOM_SELF_NO_STATUS INT32_MAX

/*
 * Arranges that exit() calls fathom_self_trace_rings_exit(): with FATHOM_SELF_NO_STATUS if the C
 * library does not tell the status.
 */
void fathom_self_trace_exit_follow(void);

#endif
