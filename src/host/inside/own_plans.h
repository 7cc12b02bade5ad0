/* SPDX-License-Identifier: MIT */
/* Plans of what a process that traces its own system calls without ptrace(2) records of each. */
#ifndef FATHOM_INSIDE_OWN_PLANS_H
#define FATHOM_INSIDE_OWN_PLANS_H

#include "fathom/trace.h"

/* Makes fathom_trace_own_plans, as @wanted says. FATHOM_E_ARGUMENT, FATHOM_E_MEMORY. */
fathom_err fathom_own_plans_make(const struct fathom_trace_syscalls *wanted,
				 struct fathom_errinfo *reterr);

#endif
