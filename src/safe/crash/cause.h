/* SPDX-License-Identifier: MIT */
/*
 * Reads the cause of a signal from its siginfo_t.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_CAUSE_H
#define FATHOM_CRASH_CAUSE_H

#include <signal.h>
#include <stdbool.h>

/* Returns the name of @code of signal @number, such as "SEGV_MAPERR"; NULL if it is unknown. */
const char *fathom_cause_name(int number, int code);

/* Returns whether an instruction of the thread has raised the signal: si_addr says where. */
bool fathom_cause_is_fault(int number, int code);

/* Returns whether a process has sent the signal: si_pid says which. */
bool fathom_cause_is_sent(int code);

#endif
