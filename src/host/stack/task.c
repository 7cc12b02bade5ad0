/* SPDX-License-Identifier: MIT */
#include "host/stack/task.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/file/kernel_text.h"
#include "host/file/process_status.h"
#include "host/syscalls/syscall_table.h"
#include "host/stack/task_files.h"
#include "safe/base/limits.h"

bool fathom_task_path(const struct fathom_waiter *w, const char *name, struct fathom_path *ret)
{
	return fathom_path_format(ret, "/proc/self/fd/%d/task/%d/%s", w->from->proc, w->thread->tid,
				  name);
}

/* Reads the numbers of the process or thread whose status is at @path. */
static void read_pids(const struct fathom_path *path, struct fathom_pids *ret)
{
	char *text = fathom_status_read(path->text);

	fathom_status_pids(text, ret);
	free(text);
}

/*
 * Returns the number, in the process's own PID namespace, of the process or thread whose status is
 * at @path; 0 if it has none there. That namespace is depth_of() deep.
 */
static uint64_t read_inner(const struct fathom_path *path, unsigned depth)
{
	struct fathom_pids pids;

	read_pids(path, &pids);
	return depth && depth <= pids.n ? pids.at[depth - 1] : 0;
}

/* Returns how many PID namespaces the process has a number in; 0 if that is unknown. */
static unsigned depth_of(const struct fathom_waiter *w)
{
	struct fathom_path path;
	struct fathom_pids pids;

	if (!w->facts->depth &&
	    fathom_path_format(&path, "/proc/self/fd/%d/status", w->from->proc)) {
		read_pids(&path, &pids);
		w->facts->depth = pids.n;
	}
	return w->facts->depth;
}

/* Calls @fn with the TIDs of the process, at most FATHOM_MAX_WAIT_TASKS, until it returns true. */
static void for_each_task(const struct fathom_waiter *w,
			  bool (*fn)(const struct fathom_waiter *w, unsigned tid, void *data),
			  void *data)
{
	struct fathom_path path;
	struct dirent *entry;
	unsigned n = 0;
	DIR *tasks = NULL;

	if (fathom_path_format(&path, "/proc/self/fd/%d/task", w->from->proc))
		tasks = opendir(path.text);
	while (tasks && n++ < FATHOM_MAX_WAIT_TASKS && (entry = readdir(tasks)) != NULL) {
		const unsigned tid = (unsigned)strtoul(entry->d_name, NULL, 10);

		if (tid && fn(w, tid, data))
			break;
	}
	if (tasks)
		closedir(tasks);
}

static bool add_task(const struct fathom_waiter *w, unsigned tid, void *data)
{
	struct fathom_path path;
	uint64_t inner = 0;

	(void)data;
	if (fathom_path_format(&path, "/proc/self/fd/%d/task/%u/status", w->from->proc, tid))
		inner = read_inner(&path, depth_of(w));
	return inner && !fathom_array_push(&w->facts->tids, ((struct fathom_keyed){ inner, tid }));
}

int32_t fathom_task_find(const struct fathom_waiter *w, uint32_t tid)
{
	const struct fathom_keyed_array *tids = &w->facts->tids;
	const unsigned depth = depth_of(w);
	struct fathom_path path;

	if (!tid || !depth)
		return 0;
	if (depth == 1)
		return fathom_path_format(&path, "/proc/self/fd/%d/task/%u", w->from->proc, tid) &&
				       access(path.text, F_OK) == 0
			       ? (int32_t)tid
			       : 0;
	if (!w->facts->tids_known)
		for_each_task(w, add_task, NULL);
	w->facts->tids_known = true;
	for (size_t i = 0; i < tids->n; i++)
		if (tids->items[i].key == tid)
			return (int32_t)tids->items[i].value;
	return 0;
}

/* Bytes of a list of children: numbers have up to 7 digits (PID_MAX_LIMIT), and a space. */
#define MAX_CHILDREN_TEXT ((size_t)FATHOM_MAX_WAIT_TASKS * 8)

struct child_search {
	uint32_t inner;
	int32_t found;
	unsigned tried;
};

/* Looks for the wanted child among those of one thread. */
static bool search_children(const struct fathom_waiter *w, unsigned tid, void *data)
{
	struct child_search *s = data;
	struct fathom_path path;
	char *text;
	char *at;
	char *end;
	size_t size;

	if (!fathom_path_format(&path, "/proc/self/fd/%d/task/%u/children", w->from->proc, tid) ||
	    fathom_text_read(path.text, MAX_CHILDREN_TEXT, NULL, NULL, &text, &size, NULL))
		return false;
	for (at = text; !s->found && s->tried++ < FATHOM_MAX_WAIT_TASKS; at = end) {
		const unsigned child = (unsigned)strtoul(at, &end, 10);
		uint64_t inner = 0;

		if (end == at)
			break;
		if (fathom_path_format(&path, "/proc/self/fd/%d/../%u/status", w->from->proc,
				       child))
			inner = read_inner(&path, depth_of(w));
		s->found = inner == s->inner ? (int32_t)child : 0;
	}
	free(text);
	return s->found != 0;
}

int32_t fathom_task_find_child(const struct fathom_waiter *w, uint32_t pid)
{
	struct child_search s = { .inner = pid };
	const unsigned depth = depth_of(w);

	if (depth == 1)
		return (int32_t)pid;
	if (depth)
		for_each_task(w, search_children, &s);
	return s.found;
}

/* Returns whether system call @number is the one of the copy, perhaps continued after a stop. */
static bool is_same_call(const struct fathom_waiter *w, int64_t number)
{
	const char *name = fathom_syscall_name(w->from->machine, number);

	return number == w->thread->syscall || (name && strcmp(name, "restart_syscall") == 0);
}

bool fathom_task_still_waits(const struct fathom_waiter *w)
{
	const uint64_t *arguments = fathom_waiter_arguments(w);
	struct fathom_task_syscall s;
	struct fathom_task task;
	bool same;

	same = fathom_task_open(&task, w->from->proc, w->thread->tid) &&
	       fathom_task_syscall(&task, &s) && s.in_syscall && is_same_call(w, s.number) &&
	       s.sp == w->thread->registers.sp;
	for (unsigned i = 0; same && i < 6; i++)
		same = s.arguments[i] == arguments[i];
	fathom_task_close(&task);
	return same;
}
