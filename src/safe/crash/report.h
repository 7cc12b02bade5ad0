/* SPDX-License-Identifier: MIT */
/*
 * The text of a crash report.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_REPORT_H
#define FATHOM_CRASH_REPORT_H

#include "safe/crash/state.h"

/* Arguments of a handler. */
struct fathom_crash_event {
	struct fathom_crash *crash;
	int number;
	const siginfo_t *info;
	const void *context; /* ucontext_t */
};

/* Writes the whole report of a struct fathom_crash_event; for fathom_switch_stack(). */
void fathom_crash_report(void *event);

/* Writes the line about a crash inside the handler. */
void fathom_crash_report_nested(void *event);

#endif
