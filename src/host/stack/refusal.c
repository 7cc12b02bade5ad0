/* SPDX-License-Identifier: MIT */
#include "host/stack/refusal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/file/file.h"
#include "host/file/process_status.h"
#include "safe/base/error.h"

/* The mode in which not even CAP_SYS_PTRACE helps (Documentation/admin-guide/LSM/Yama.rst). */
#define MODE_NOBODY 3

/* Returns the mode of Yama, which forbids to trace others than children; 0: it does not. */
static int yama_mode(void)
{
	const int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char mode = '0';

	if (fd >= 0) {
		if (read(fd, &mode, 1) != 1)
			mode = '0';
		close(fd);
	}
	return mode - '0';
}

/* Returns whether this process has CAP_SYS_PTRACE; if /proc does not tell, whether it is root's. */
static bool may_trace_all(void)
{
	const int has = fathom_status_capability(0, FATHOM_CAP_SYS_PTRACE);

	return has < 0 ? geteuid() == 0 : has;
}

bool fathom_yama_forbids(void)
{
	const int mode = yama_mode();

	return mode >= MODE_NOBODY || (mode && !may_trace_all());
}

void fathom_refusal_explain(struct fathom_task *task, struct fathom_errinfo *info)
{
	struct fathom_task_status status;
	char path[32];
	struct stat st;

	info->what = "may not be traced";
	info->cause = FATHOM_CAUSE_MORE_RIGHTS;
	if (fathom_task_status(task, &status) && status.tracer) {
		(void)snprintf(path, sizeof path, "/proc/%d", status.tracer);
		fathom_errinfo_set_file(info, path);
		info->what = "this process traces the thread already";
		info->cause = FATHOM_CAUSE_NONE;
	} else if (geteuid() && !fstat(task->dir, &st) && st.st_uid != geteuid()) {
		info->what = "belongs to another user";
		info->cause = FATHOM_CAUSE_OTHER_USER;
	} else if (fathom_yama_forbids()) {
		info->what = "may not be traced: kernel.yama.ptrace_scope forbids it (run as root, "
			     "or set it to 0)";
		info->cause = FATHOM_CAUSE_YAMA;
	}
}
