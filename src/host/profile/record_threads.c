/* SPDX-License-Identifier: MIT */
#include "host/profile/record_threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/base/proc_stat_read.h"

/* Stands in the maps for a thread or process that is not known any more. */
#define GONE (FATHOM_KEY_NEW - 1)

/* Returns the number that @map has for @id, or FATHOM_KEY_NEW or GONE. NULL without memory. */
static uint32_t *number_of(struct fathom_key_map *map, int32_t id)
{
	uint32_t *number = fathom_key_map_at(map, (uint32_t)id);

	if (number && *number == FATHOM_KEY_NEW)
		*number = GONE;
	return number;
}

static struct fathom_record_process *process_at(struct fathom_record_threads *t, int32_t pid)
{
	uint32_t *number = number_of(&t->by_pid, pid);
	const struct fathom_record_process fresh = { .pid = pid };

	if (!number)
		return NULL;
	if (*number != GONE)
		return &t->processes.items[*number];
	if (t->free_processes.n) {
		*number = t->free_processes.items[--t->free_processes.n];
		t->processes.items[*number] = fresh;
	} else {
		if (!fathom_array_push(&t->processes, fresh))
			return NULL;
		*number = (uint32_t)t->processes.n - 1;
	}
	return &t->processes.items[*number];
}

/* Reads the name and the parent of a thread that was there before the recording. */
static void describe(struct fathom_record_thread *thread)
{
	struct fathom_proc_stat stat;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)thread->pid,
		       (int)thread->tid);
	if (!fathom_proc_stat_read(AT_FDCWD, path, &stat))
		return;
	(void)snprintf(thread->name, sizeof thread->name, "%.15s", stat.name);
	thread->parent = stat.parent;
	thread->is_kernel = stat.flags & FATHOM_PF_KTHREAD;
}

/* As fathom_record_thread_at(); of one that was there before its name @is_to_read. */
static struct fathom_record_thread *thread_at(struct fathom_record_threads *t, int32_t pid,
					      int32_t tid, bool is_to_read)
{
	uint32_t *number = number_of(&t->by_tid, tid);
	struct fathom_record_thread fresh = { .pid = pid, .tid = tid, .number = UINT32_MAX };
	struct fathom_record_process *process;

	if (!number)
		return NULL;
	if (*number != GONE)
		return &t->threads.items[*number];
	process = process_at(t, pid);
	if (!process)
		return NULL;
	if (is_to_read && !t->is_past)
		describe(&fresh);
	if (t->free_threads.n) {
		*number = t->free_threads.items[--t->free_threads.n];
		t->threads.items[*number] = fresh;
	} else {
		if (!fathom_array_push(&t->threads, fresh))
			return NULL;
		*number = (uint32_t)t->threads.n - 1;
	}
	process->n_threads++;
	t->n_seen++;
	return &t->threads.items[*number];
}

struct fathom_record_thread *fathom_record_thread_at(struct fathom_record_threads *t, int32_t pid,
						     int32_t tid)
{
	return thread_at(t, pid, tid, true);
}

/* Notes that thread number @i has ended, at @ns. False without memory. */
static bool end_thread(struct fathom_record_threads *t, uint32_t i, uint64_t ns)
{
	if (t->threads.items[i].ended)
		return true;
	t->threads.items[i].ended = ns ? ns : 1;
	return fathom_array_push(&t->ended, i);
}

struct fathom_record_thread *fathom_record_thread_again(struct fathom_record_threads *t,
							int32_t pid, int32_t tid, uint64_t ns)
{
	uint32_t *number = number_of(&t->by_tid, tid);

	if (!number)
		return NULL;
	if (*number != GONE && !end_thread(t, *number, ns))
		return NULL;
	*number = GONE;
	return fathom_record_thread_at(t, pid, tid);
}

struct fathom_record_thread *fathom_record_thread_known(struct fathom_record_threads *t,
							int32_t tid)
{
	/* Any thread of the machine may be asked for: only those that are known are remembered. */
	const uint32_t number = fathom_key_map_find(&t->by_tid, (uint32_t)tid);

	return number != FATHOM_KEY_NEW && number != GONE ? &t->threads.items[number] : NULL;
}

struct fathom_record_thread *fathom_record_thread_find(struct fathom_record_threads *t, int32_t pid,
						       int32_t tid)
{
	struct fathom_record_thread *thread = fathom_record_thread_known(t, tid);

	return thread && thread->pid == pid ? thread : NULL;
}

struct fathom_record_process *fathom_record_process_known(struct fathom_record_threads *t,
							  int32_t pid)
{
	const uint32_t *number = number_of(&t->by_pid, pid);

	return number && *number != GONE ? &t->processes.items[*number] : NULL;
}

static struct fathom_record_space *create_space(const struct fathom_record_threads *t, int32_t pid,
						bool has_all_maps)
{
	struct fathom_record_space *s = fathom_record_space_create(t->session, pid, has_all_maps);

	if (s && t->is_past)
		fathom_record_space_set_past(s);
	return s;
}

struct fathom_record_space *fathom_record_threads_space(struct fathom_record_threads *t,
							int32_t pid)
{
	struct fathom_record_process *p = process_at(t, pid);

	if (p && !p->space)
		p->space = create_space(t, pid, false);
	return p ? p->space : NULL;
}

struct fathom_record_space *fathom_record_threads_own_space(struct fathom_record_threads *t,
							    int32_t pid)
{
	struct fathom_record_space *space = fathom_record_threads_space(t, pid);
	struct fathom_record_process *process = process_at(t, pid);
	struct fathom_record_space *own;

	if (!space || !process)
		return NULL;
	if (!fathom_record_space_is_shared(space) && fathom_record_space_is_of(space, pid))
		return space;
	own = fathom_record_space_split(space, pid);
	if (!own)
		return NULL;
	fathom_record_space_drop(process->space);
	process->space = own;
	return own;
}

/* Notes thread @r->tid, a child of another one. */
static fathom_err take_fork(struct fathom_record_threads *t, const struct fathom_perf_record *r)
{
	uint32_t *number = number_of(&t->by_tid, r->tid);
	const struct fathom_record_thread *parent;
	struct fathom_record_thread *child;
	struct fathom_record_space *space;
	struct fathom_record_process *process;
	char name[sizeof child->name] = "";
	bool is_kernel;

	if (!number)
		return FATHOM_E_MEMORY;
	/* Numbers are used again. */
	if (*number != GONE && t->threads.items[*number].ended)
		*number = GONE;
	parent = fathom_record_thread_at(t, r->task.parent_pid, r->task.parent_tid);
	if (!parent)
		return FATHOM_E_MEMORY;
	memcpy(name, parent->name, sizeof name);
	is_kernel = parent->is_kernel;
	child = thread_at(t, r->pid, r->tid, false);
	if (!child)
		return FATHOM_E_MEMORY;
	memcpy(child->name, name, sizeof name);
	child->is_kernel = is_kernel;
	child->parent = r->pid != r->task.parent_pid ? r->task.parent_pid : child->parent;
	if (r->pid == r->task.parent_pid)
		return FATHOM_OK;
	space = fathom_record_threads_space(t, r->task.parent_pid);
	process = process_at(t, r->pid);
	if (!space || !process)
		return FATHOM_E_MEMORY;
	fathom_record_space_drop(process->space);
	/* Of one that ran before, perf has made the record, and tells its maps. */
	process->space = r->misc & PERF_RECORD_MISC_FORK_EXEC ? create_space(t, r->pid, false)
							      : fathom_record_space_share(space);
	process->has_cgroup = false;
	return process->space ? FATHOM_OK : FATHOM_E_MEMORY;
}

/* Notes the name of a thread; with exec() its process begins anew. */
static fathom_err take_comm(struct fathom_record_threads *t, const struct fathom_perf_record *r)
{
	struct fathom_record_thread *thread = fathom_record_thread_at(t, r->pid, r->tid);
	struct fathom_record_process *process;

	/* exec() of another thread takes the number of the first one, which has ended. */
	if (thread && thread->ended && r->misc & PERF_RECORD_MISC_COMM_EXEC)
		thread = fathom_record_thread_again(t, r->pid, r->tid, r->ns);
	if (!thread)
		return FATHOM_E_MEMORY;
	if (strncmp(thread->name, r->comm.name, sizeof thread->name - 1) != 0) {
		(void)snprintf(thread->name, sizeof thread->name, "%s", r->comm.name);
		thread->number = UINT32_MAX;
	}
	if (!(r->misc & PERF_RECORD_MISC_COMM_EXEC))
		return FATHOM_OK;
	thread->is_kernel = false;
	thread->script = (struct fathom_record_stack){ .node = 0 };
	process = process_at(t, r->pid);
	if (!process)
		return FATHOM_E_MEMORY;
	fathom_record_space_drop(process->space);
	process->space = create_space(t, r->pid, true);
	return process->space ? FATHOM_OK : FATHOM_E_MEMORY;
}

static fathom_err take_map(struct fathom_record_threads *t, const struct fathom_perf_record *r)
{
	struct fathom_record_space *space = fathom_record_threads_own_space(t, r->pid);

	return space && fathom_record_space_map(space, r) ? FATHOM_OK : FATHOM_E_MEMORY;
}

static fathom_err take_exit(struct fathom_record_threads *t, const struct fathom_perf_record *r)
{
	const uint32_t *number = number_of(&t->by_tid, r->tid);

	return number && (*number == GONE || end_thread(t, *number, r->ns)) ? FATHOM_OK
									    : FATHOM_E_MEMORY;
}

fathom_err fathom_record_threads_end(struct fathom_record_threads *t, int32_t pid, uint64_t ns)
{
	for (uint32_t i = 0; i < t->threads.n; i++)
		if (t->threads.items[i].pid == pid && !end_thread(t, i, ns))
			return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

fathom_err fathom_record_threads_take(struct fathom_record_threads *t,
				      const struct fathom_perf_record *r)
{
	/* Threads that have ended have no numbers any more. */
	if (r->pid <= 0 || r->tid <= 0)
		return FATHOM_OK;
	switch (r->type) {
	case PERF_RECORD_FORK:
		return take_fork(t, r);
	case PERF_RECORD_COMM:
		return take_comm(t, r);
	case PERF_RECORD_MMAP2:
		return take_map(t, r);
	case PERF_RECORD_EXIT:
		return take_exit(t, r);
	default:
		return FATHOM_OK;
	}
}

struct fathom_record_count *fathom_record_count_at(struct fathom_record_thread *thread,
						   uint32_t ring)
{
	const struct fathom_record_count fresh = { .ring = ring };

	for (size_t i = 0; i < thread->counts.n; i++)
		if (thread->counts.items[i].ring == ring)
			return &thread->counts.items[i];
	if (!fathom_array_push(&thread->counts, fresh))
		return NULL;
	return &thread->counts.items[thread->counts.n - 1];
}

/* Forgets thread number @i, and its process with its last thread. */
static void forget(struct fathom_record_threads *t, uint32_t i)
{
	struct fathom_record_thread *thread = &t->threads.items[i];
	uint32_t *number = number_of(&t->by_tid, thread->tid);
	struct fathom_record_process *process;

	/* A later thread may have its number. */
	if (number && *number == i)
		*number = GONE;
	number = number_of(&t->by_pid, thread->pid);
	if (number && *number != GONE) {
		process = &t->processes.items[*number];
		if (process->n_threads)
			process->n_threads--;
		if (!process->n_threads) {
			fathom_record_space_drop(process->space);
			process->space = NULL;
			if (fathom_array_push(&t->free_processes, *number))
				*number = GONE;
		}
	}
	fathom_array_free(&thread->counts);
	(void)fathom_array_push(&t->free_threads, i);
}

void fathom_record_threads_forget(struct fathom_record_threads *t, uint64_t ns)
{
	while (t->n_forgotten < t->ended.n &&
	       t->threads.items[t->ended.items[t->n_forgotten]].ended < ns)
		forget(t, t->ended.items[t->n_forgotten++]);
	/* Where threads end all the time, some are always left. */
	if (t->n_forgotten > t->ended.n / 2) {
		t->ended.n -= t->n_forgotten;
		memmove(t->ended.items, t->ended.items + t->n_forgotten,
			t->ended.n * sizeof *t->ended.items);
		t->n_forgotten = 0;
	}
}

static int compare_used(const void *pa, const void *pb)
{
	struct fathom_record_space *const *a = pa;
	struct fathom_record_space *const *b = pb;

	return u64_compare((uint64_t)fathom_record_space_used(*a),
			   (uint64_t)fathom_record_space_used(*b));
}

void fathom_record_threads_close_spaces(struct fathom_record_threads *t, size_t most)
{
	struct {
		FATHOM_ARRAY_OF(struct fathom_record_space *);
	} open = { .n = 0 };

	/* Children share the space of their parent: it is there once for each. */
	for (size_t i = 0; i < t->processes.n; i++) {
		struct fathom_record_space *s = t->processes.items[i].space;

		/* Without memory, some stay open for now. */
		if (s && fathom_record_space_opened(s) && !fathom_array_push(&open, s))
			break;
	}
	if (open.n > most)
		qsort(open.items, open.n, sizeof *open.items, compare_used);
	for (size_t i = 0; i + most < open.n; i++)
		fathom_record_space_close(open.items[i]);
	fathom_array_free(&open);
}

void fathom_record_threads_deinit(struct fathom_record_threads *t)
{
	for (size_t i = 0; i < t->threads.n; i++)
		fathom_array_free(&t->threads.items[i].counts);
	for (size_t i = 0; i < t->processes.n; i++)
		fathom_record_space_drop(t->processes.items[i].space);
	fathom_array_free(&t->threads);
	fathom_array_free(&t->processes);
	fathom_array_free(&t->free_threads);
	fathom_array_free(&t->free_processes);
	fathom_array_free(&t->ended);
	fathom_key_map_deinit(&t->by_tid);
	fathom_key_map_deinit(&t->by_pid);
}
