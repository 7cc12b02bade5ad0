/* SPDX-License-Identifier: MIT */
/* Why the kernel refuses to trace a process (ptrace(2), "Ptrace access mode checking"). */
#ifndef FATHOM_STACK_REFUSAL_H
#define FATHOM_STACK_REFUSAL_H

#include "fathom/error.h"
#include "host/stack/task_files.h"

/* Returns whether Yama forbids this process to trace any that is not its child. */
bool fathom_yama_forbids(void);

/*
 * Sets cause and what of @info, and the file if another process traces the thread of @task already,
 * after the kernel has refused to let it be traced.
 */
void fathom_refusal_explain(struct fathom_task *task, struct fathom_errinfo *info);

#endif
