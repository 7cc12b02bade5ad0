/* SPDX-License-Identifier: MIT */
/* Plans of what a process that traces its own system calls without ptrace(2) records of each. */
#ifndef FATHOM_SELF_TRACE_SELF_PLANS_H
#define FATHOM_SELF_TRACE_SELF_PLANS_H

#include "fathom/trace.h"

/* Makes fathom_trace_self_plans, as @wanted says. FATHOM_E_ARGUMENT, FATHOM_E_MEMORY. */
fathom_err fathom_self_trace_plans_make(const struct fathom_trace_syscalls *wanted,
					struct fathom_errinfo *reterr);

#endif
