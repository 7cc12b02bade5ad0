/* SPDX-License-Identifier: MIT */
#include "trace/dispatch_task.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "trace/machine.h"

/* Tasks are mapped so many at once, at most so many times. */
#define TASKS  32
#define CHUNKS 1024

static _Atomic(char *) fathom_trace_self_tasks[CHUNKS];

static struct fathom_dispatch_task *task_at(char *chunk, uint32_t i)
{
	return (struct fathom_dispatch_task *)(void *)(chunk + (size_t)i * FATHOM_DISPATCH_TASK);
}

static char *chunk_at(uint32_t i)
{
	return i < CHUNKS ? atomic_load_explicit(&fathom_trace_self_tasks[i], memory_order_acquire)
			  : NULL;
}

struct fathom_dispatch_task *fathom_dispatch_task_of(const stack_t *stack)
{
	const uintptr_t sp = (uintptr_t)stack->ss_sp;
	char *chunk;

	if (stack->ss_size != FATHOM_DISPATCH_TASK - FATHOM_DISPATCH_STATE)
		return NULL;
	for (uint32_t i = 0; (chunk = chunk_at(i)); i++)
		if (sp - (uintptr_t)chunk < (uintptr_t)TASKS * FATHOM_DISPATCH_TASK)
			return task_at(chunk,
				       (uint32_t)((sp - (uintptr_t)chunk) / FATHOM_DISPATCH_TASK));
	return NULL;
}

/* Returns whether the thread of @task has ended. */
static bool has_ended(const struct fathom_dispatch_task *task)
{
	const int32_t tid = atomic_load(&task->tid);

	/*
	 * The kernel finds threads by this, too, also those of who has this memory in another
	 * process.
	 */
	return tid && fathom_trace_syscall_kernel(SYS_kill, tid, 0, 0, 0) == -ESRCH;
}

/* Takes @task if it can be had. */
static bool take_task(struct fathom_dispatch_task *task, int32_t tid)
{
	uint32_t was = atomic_load(&task->state);

	if (was == FATHOM_DISPATCH_USED ||
	    (was == FATHOM_DISPATCH_LEFT && (!tid || atomic_load(&task->tid) != tid) &&
	     !has_ended(task)))
		return false;
	if (!atomic_compare_exchange_strong(&task->state, &was, FATHOM_DISPATCH_USED))
		return false;
	/* Another thread may have taken and left it meanwhile. */
	if (was != FATHOM_DISPATCH_LEFT || (tid && atomic_load(&task->tid) == tid) ||
	    has_ended(task))
		return true;
	atomic_store(&task->state, FATHOM_DISPATCH_LEFT);
	return false;
}

/* Maps more tasks, if the program's filter lets it. */
static bool map_tasks(void)
{
	const size_t size = (size_t)TASKS * FATHOM_DISPATCH_TASK;
	const uint64_t args[6] = { 0,
				   size + FATHOM_DISPATCH_TASK,
				   PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				   UINT64_MAX,
				   0 };
	const long at = atomic_load(&fathom_trace_self_process.is_unarmed)
				? -1
				: fathom_trace_syscall_kernel6(SYS_mmap, args);
	const uint64_t mask = FATHOM_DISPATCH_TASK - 1;
	char *chunk;

	if (at < 0 && at > -4096)
		return false;
	chunk = (char *)(((uintptr_t)at + mask) & ~mask);
	for (uint32_t i = 0; i < CHUNKS; i++) {
		char *none = NULL;

		if (atomic_compare_exchange_strong(&fathom_trace_self_tasks[i], &none, chunk))
			return true;
	}
	(void)fathom_trace_syscall_kernel(SYS_munmap, at, (long)args[1], 0, 0);
	return false;
}

struct fathom_dispatch_task *fathom_dispatch_task_take(int32_t tid)
{
	char *chunk;

	do {
		for (uint32_t i = 0; (chunk = chunk_at(i)); i++) {
			for (uint32_t k = 0; k < TASKS; k++) {
				struct fathom_dispatch_task *task = task_at(chunk, k);

				if (!take_task(task, tid))
					continue;
				task->own =
					(stack_t){ .ss_sp = (char *)task + FATHOM_DISPATCH_STATE,
						   .ss_size = FATHOM_DISPATCH_TASK -
							      FATHOM_DISPATCH_STATE };
				task->is_trapped = false;
				task->n_inlined = 0;
				task->lent = NULL;
				atomic_store(&task->tid, tid);
				return task;
			}
		}
	} while (map_tasks());
	return NULL;
}

void fathom_dispatch_task_give(struct fathom_dispatch_task *task, bool has_thread)
{
	atomic_store(&task->state, has_thread ? FATHOM_DISPATCH_LEFT : FATHOM_DISPATCH_FREE);
}

/* Returns the first task that is used, beside @task. */
static struct fathom_dispatch_task *find_used(const struct fathom_dispatch_task *task)
{
	char *chunk;

	for (uint32_t i = 0; (chunk = chunk_at(i)); i++)
		for (uint32_t k = 0; k < TASKS; k++)
			if (task_at(chunk, k) != task &&
			    atomic_load(&task_at(chunk, k)->state) == FATHOM_DISPATCH_USED)
				return task_at(chunk, k);
	return NULL;
}

bool fathom_dispatch_task_others(const struct fathom_dispatch_task *task)
{
	return find_used(task) != NULL;
}

void fathom_dispatch_task_begin_child(struct fathom_dispatch_task *task, int32_t tid)
{
	struct fathom_dispatch_task *other;

	atomic_store(&task->tid, tid);
	while ((other = find_used(task)))
		atomic_store(&other->state, FATHOM_DISPATCH_FREE);
}
