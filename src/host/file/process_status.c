/* SPDX-License-Identifier: MIT */
#include "host/file/process_status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fathom/stack.h"
#include "host/base/proc_stat_read.h"
#include "host/base/thread_list.h"
#include "host/file/file.h"
#include "host/file/kernel_text.h"
#include "safe/base/limits.h"

char *fathom_status_read(const char *path)
{
	char *text;
	size_t size;

	if (fathom_text_read(path, FATHOM_MAX_TASK_STATUS, NULL, NULL, &text, &size, NULL))
		return NULL;
	return text;
}

const char *fathom_status_line(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	return at ? at + strlen(label) : NULL;
}

void fathom_status_pids(const char *text, struct fathom_pids *ret)
{
	const char *line = text ? fathom_status_line(text, "\nNSpid:") : NULL;
	char *end;

	ret->n = 0;
	/* strtoull() would go on in the next line. */
	for (; line && (*line == '\t' || *line == ' ') && ret->n < FATHOM_MAX_PIDS; line = end) {
		const uint64_t number = strtoull(line, &end, 10);

		if (end == line)
			break;
		ret->at[ret->n++] = number;
	}
}

/*
 * Returns the text of the status of thread @tid, 0: of the calling process, which the caller frees;
 * NULL: it cannot be read.
 */
static char *read_status(int tid)
{
	char path[64];

	if (!tid)
		return fathom_status_read("/proc/self/status");
	(void)snprintf(path, sizeof path, "/proc/%d/status", tid);
	return fathom_status_read(path);
}

int fathom_status_capability(int tid, unsigned number)
{
	char *text = read_status(tid);
	const char *line = text ? fathom_status_line(text, "\nCapEff:") : NULL;
	const int has = line ? (int)(strtoull(line, NULL, 16) >> number & 1) : -1;

	free(text);
	return has;
}

int fathom_status_process(int tid)
{
	char *text = read_status(tid);
	const char *line = text ? fathom_status_line(text, "\nTgid:") : NULL;
	const int pid = line ? (int)strtol(line, NULL, 10) : 0;

	free(text);
	return pid;
}

int fathom_status_filters(int tid)
{
	const char *mode;
	const char *line;
	char *text = read_status(tid);
	int n = INT_MAX;

	mode = text ? fathom_status_line(text, "\nSeccomp:") : NULL;
	line = text ? fathom_status_line(text, "\nSeccomp_filters:") : NULL;
	if (mode && strtol(mode, NULL, 10) == 0)
		n = 0;
	else if (mode && strtol(mode, NULL, 10) == 2)
		/* Linux before 5.9 does not count them. */
		n = line ? (int)strtol(line, NULL, 10) : 1;
	free(text);
	return n;
}

/* A search for a thread that lives. */
struct live {
	int tasks;
	pid_t tid; /* 0: none was found */
};

static bool has_ended(void *data, pid_t tid)
{
	struct live *l = data;

	if (fathom_thread_has_ended(fathom_thread_state(l->tasks, tid)))
		return true;
	l->tid = tid;
	return false;
}

/* Finds a thread of process @pid that has not ended; returns 0 if there is none. */
static int find_live(int pid)
{
	struct live l = { .tasks = fathom_threads_open(pid) };

	if (l.tasks < 0)
		return 0;
	(void)fathom_threads_each(l.tasks, has_ended, &l);
	close(l.tasks);
	return l.tid;
}

bool fathom_status_has_ended(int pid)
{
	struct fathom_proc_stat stat;

	/* Most times the first thread lives; else others may. */
	if (fathom_proc_stat_of(pid, &stat) && !fathom_thread_has_ended(stat.state))
		return false;
	return !find_live(pid);
}

const char *fathom_status_lack(int pid)
{
	struct fathom_proc_stat stat;

	if (!fathom_proc_stat_of(pid, &stat))
		return NULL;
	if (stat.flags & FATHOM_PF_KTHREAD)
		return "is a kernel thread: it runs no program";
	if (fathom_thread_has_ended(stat.state) && !find_live(pid))
		return "is a zombie: it has ended, and its parent does not wait for it";
	return NULL;
}

fathom_err fathom_process_state_read(int32_t pid, struct fathom_process_state *ret,
				     struct fathom_errinfo *reterr)
{
	struct fathom_proc_stat stat;

	if (ret->size != sizeof *ret)
		return fathom_fail_options(reterr);
	if (!fathom_proc_stat_of(pid, &stat))
		return errno == ESRCH
			       ? fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "no such process")
			       : fathom_fail_os(reterr, "/proc");
	*ret = (struct fathom_process_state){ .size = sizeof *ret,
					      .pid = pid,
					      .parent = stat.parent,
					      .state = stat.state,
					      .is_kernel_thread =
						      (stat.flags & FATHOM_PF_KTHREAD) != 0 };
	memcpy(ret->name, stat.name, sizeof stat.name);
	ret->has_ended = fathom_thread_has_ended(stat.state) && !find_live(pid);
	return FATHOM_OK;
}

int fathom_status_live_thread(int pid)
{
	struct fathom_proc_stat stat;
	int live;

	if (!fathom_proc_stat_of(pid, &stat) || !fathom_thread_has_ended(stat.state))
		return pid;
	live = find_live(pid);
	return live ? live : pid;
}
