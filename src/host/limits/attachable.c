/* SPDX-License-Identifier: MIT */
/*
 * Whether a process may be attached to. Opening its memory asks the kernel for the same rights as
 * PTRACE_SEIZE does (PTRACE_MODE_ATTACH, proc_pid_mem(5)), and leaves the process as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "fathom/limits.h"
#include "host/space/target.h"
#include "host/stack/refusal.h"

#define FORBIDDEN "kernel.yama.ptrace_scope forbids to trace others than children"

/* No process has this number. */
#define NO_PID (-1)

/* Returns whether a filter (seccomp(2)) refuses ptrace(2). Else no such process is found. */
static bool is_filtered(void)
{
	return ptrace(PTRACE_PEEKDATA, NO_PID, NULL, NULL) == -1 && errno != ESRCH;
}

static fathom_err fail(struct fathom_errinfo *reterr, enum fathom_cause cause, const char *what)
{
	return fathom_fail_by(reterr, FATHOM_E_OS, cause, what);
}

static fathom_err check_any(struct fathom_errinfo *reterr)
{
	if (is_filtered())
		return fail(reterr, FATHOM_CAUSE_FILTERED,
			    "a filter of system calls forbids ptrace(2)");
	if (fathom_yama_forbids())
		return fail(reterr, FATHOM_CAUSE_YAMA, FORBIDDEN);
	return FATHOM_OK;
}

/* Checks the thread of @task, which belongs to the process in directory @proc. */
static fathom_err check_task(int proc, int pid, struct fathom_task *task,
			     struct fathom_errinfo *reterr)
{
	struct fathom_task_status status;
	struct fathom_errinfo info;
	char path[32];
	int fd;

	(void)snprintf(path, sizeof path, "task/%d/mem", pid);
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	else if (errno == ENOENT || errno == ESRCH)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "the process has ended");
	if (fd >= 0 && (!fathom_task_status(task, &status) || !status.tracer))
		return FATHOM_OK;
	(void)fail(&info, FATHOM_CAUSE_NONE, "");
	info.os_errno = EPERM;
	fathom_refusal_explain(task, &info);
	if (info.cause == FATHOM_CAUSE_YAMA)
		info.what = FORBIDDEN;
	if (reterr)
		*reterr = info;
	return FATHOM_E_OS;
}

static fathom_err check_process(const struct fathom_live *live, struct fathom_errinfo *reterr)
{
	struct fathom_task task;
	fathom_err err;

	if (is_filtered())
		return check_any(reterr);
	if (!fathom_task_open(&task, live->proc, live->pid))
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "the process has ended");
	err = check_task(live->proc, live->pid, &task, reterr);
	fathom_task_close(&task);
	return err;
}

fathom_err fathom_attach_check(struct fathom_target *target, struct fathom_errinfo *reterr)
{
	struct fathom_view *view;
	struct fathom_live live;
	fathom_err err;

	if (!target)
		return check_any(reterr);
	FATHOM_TRY(fathom_view_begin(target, FATHOM_VIEW_MEMORY, &view, reterr));
	if (fathom_view_live(view, &live))
		err = check_process(&live, reterr);
	else
		err = fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, "is no process");
	fathom_view_end(view);
	return err;
}
