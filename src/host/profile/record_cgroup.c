/* SPDX-License-Identifier: MIT */
#include "host/profile/record_cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/base/proc_stat_read.h"
#include "host/file/process_status.h"

/* The kernel appends it to the path of a cgroup that was removed. */
#define DELETED " (deleted)"

/* Returns how much the path tells that is of @controllers. */
static int rank_of(const char *controllers, const char *path)
{
	if (strcmp(path, "/") == 0)
		return 1;
	return !*controllers ? 4 : strcmp(controllers, "name=systemd") == 0 ? 3 : 2;
}

/* Cuts @suffix off @text, if anything is before it. */
static void cut_suffix(char *text, const char *suffix)
{
	const size_t n = strlen(text);
	const size_t size = strlen(suffix);

	if (n > size && strcmp(text + n - size, suffix) == 0)
		text[n - size] = '\0';
}

const char *fathom_cgroup_find(char *text)
{
	const char *found = NULL;
	int best = 0;

	/* "NUMBER:CONTROLLERS:PATH", a line each. */
	for (char *line = text, *next; *line; line = next) {
		const size_t size = strcspn(line, "\n");
		char *controllers;
		char *path;

		next = line + size + (line[size] == '\n');
		line[size] = '\0';
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path || path[1] != '/')
			continue;
		*path++ = '\0';
		cut_suffix(path, DELETED);
		if (rank_of(controllers + 1, path) <= best)
			continue;
		best = rank_of(controllers + 1, path);
		found = path;
	}
	return found;
}

/* Returns whether process or thread @id is about to end, or has. */
static bool is_exiting(int32_t id)
{
	struct fathom_proc_stat stat;

	return !fathom_proc_stat_of(id, &stat) || stat.flags & FATHOM_PF_EXITING;
}

/* Reads the cgroup that process or thread @id is in; *@ret_is_gone: it has ended. */
static uint32_t read_cgroup(struct fathom_stack_table *table, int32_t id, bool *ret_is_gone)
{
	uint32_t number = FATHOM_TABLE_NONE;
	const char *found;
	char path[32];
	char *text;

	(void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)id);
	errno = 0;
	text = fathom_status_read(path);
	*ret_is_gone = !text && (errno == ENOENT || errno == ESRCH);
	found = text ? fathom_cgroup_find(text) : NULL;
	/* Hierarchies of version 1 have all that end in their roots. */
	*ret_is_gone |= found && !strcmp(found, "/") && is_exiting(id);
	if (found && !*ret_is_gone) {
		number = fathom_table_cgroup(table, found);
		table->writer->no_memory |= number == FATHOM_TABLE_NONE;
	}
	free(text);
	return number;
}

uint32_t fathom_record_cgroup(struct fathom_record_threads *threads,
			      struct fathom_stack_table *table,
			      const struct fathom_record_thread *thread)
{
	struct fathom_record_process *p = fathom_record_process_known(threads, thread->pid);
	const struct fathom_record_process *parent;
	uint32_t cgroup;
	bool is_gone;

	if (!p)
		return FATHOM_TABLE_NONE;
	if (p->has_cgroup)
		return p->cgroup;
	cgroup = read_cgroup(table, thread->pid, &is_gone);
	if (is_gone && thread->tid != thread->pid)
		cgroup = read_cgroup(table, thread->tid, &is_gone);
	if (is_gone && thread->parent > 0) {
		parent = fathom_record_process_known(threads, thread->parent);
		cgroup = parent && parent->has_cgroup
				 ? parent->cgroup
				 : read_cgroup(table, thread->parent, &is_gone);
	}
	p->has_cgroup = true;
	p->cgroup = cgroup;
	return cgroup;
}
