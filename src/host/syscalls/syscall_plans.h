/* SPDX-License-Identifier: MIT */
/*
 * Which memory the texts of system calls need, as plans that code in the traced program follows * A
 * call whose text needs more than a plan can say has none: the tracer reads it.
 */
#ifndef FATHOM_SYSCALLS_SYSCALL_PLANS_H
#define FATHOM_SYSCALLS_SYSCALL_PLANS_H

#include "host/syscalls/syscall_format.h"
#include "safe/trace/syscall_ring.h"

/*
 * Makes the plan of system call @number of @machine in @plans, for texts with @options; false if it
 * has none. That is so of calls that make processes, end them, or depend on the registers of their
 * thread. With @names_files it is also so of those that have descriptors: what these are open for
 * has to be looked up while the thread is stopped.
 */
bool fathom_syscall_plan_make(uint32_t machine, uint32_t number,
			      const struct fathom_syscall_options *options, bool names_files,
			      struct fathom_trace_plans *plans);

/*
 * Makes the plan of system call @number where there is no tracer: of memory that a plan cannot say
 * the texts have addresses.
 */
void fathom_syscall_plan_alone(uint32_t machine, uint32_t number,
			       const struct fathom_syscall_options *options,
			       struct fathom_trace_plans *plans);

#endif
