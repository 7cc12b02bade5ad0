/* SPDX-License-Identifier: MIT */
#include "host/file/process_status.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/proc_stat_read.h"
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

int fathom_status_filters(int tid)
{
	char path[64];
	const char *mode;
	const char *line;
	char *text;
	int n = INT_MAX;

	(void)snprintf(path, sizeof path, "/proc/%d/status", tid);
	text = fathom_status_read(path);
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

static bool has_ended(const struct fathom_proc_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X';
}

/* Finds a thread of process @pid that has not ended; returns 0 if there is none. */
static int find_live(int pid)
{
	struct dirent *entry;
	int found = 0;
	char path[64];
	DIR *tasks;

	(void)snprintf(path, sizeof path, "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks)) != NULL) {
		const int tid = (int)strtol(entry->d_name, NULL, 10);
		struct fathom_proc_stat stat;

		(void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
		if (tid > 0 && fathom_proc_stat_read(AT_FDCWD, path, &stat) && !has_ended(&stat))
			found = tid;
	}
	if (tasks)
		(void)closedir(tasks);
	return found;
}

const char *fathom_status_lack(int pid)
{
	struct fathom_proc_stat stat;

	if (!fathom_proc_stat_of(pid, &stat))
		return NULL;
	if (stat.flags & FATHOM_PF_KTHREAD)
		return "is a kernel thread: it runs no program";
	if (has_ended(&stat) && !find_live(pid))
		return "is a zombie: it has ended, and its parent does not wait for it";
	return NULL;
}

int fathom_status_live_thread(int pid)
{
	struct fathom_proc_stat stat;
	int live;

	if (!fathom_proc_stat_of(pid, &stat) || !has_ended(&stat))
		return pid;
	live = find_live(pid);
	return live ? live : pid;
}
