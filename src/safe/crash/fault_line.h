/* SPDX-License-Identifier: MIT */
/*
 * Why the crashing thread died, in words, as `fathom stack` prints it of cores (host/death).
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_CRASH_FAULT_LINE_H
#define FATHOM_CRASH_FAULT_LINE_H

#include "safe/crash/report.h"
#include "safe/crash/sink.h"
#include "safe/unwind/registers.h"

/* Adds the line that says what lies at the address of the fault @e, if that is known. */
void fathom_crash_add_fault(struct fathom_report_sink *s, const struct fathom_crash_event *e,
			    const struct fathom_registers *r);

#endif
