/* SPDX-License-Identifier: MIT */
/*
 * The threads of a process, as its folder "task" below /proc lists them. Calls nothing but the
 * kernel: a child that shares the memory of its parent can use it.
 */
#ifndef FATHOM_BASE_THREAD_LIST_H
#define FATHOM_BASE_THREAD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Calls @each for each thread in the folder that is open as @tasks, in the kernel's order, until it
 * returns false. Returns 0 if it was called for all, 1 if it has returned false, or a negative
 * errno.
 */
int fathom_threads_each(int tasks, bool (*each)(void *data, pid_t tid), void *data);

/* Opens the folder of process @pid; 0: of the calling process. Returns -1 with errno. */
int fathom_threads_open(pid_t pid);

/* Returns how many threads the folder @tasks lists. */
size_t fathom_threads_count(int tasks);

/* Returns the state of thread @tid of @tasks, a letter as in proc_pid_stat(5); 0: it is gone. */
char fathom_thread_state(int tasks, pid_t tid);

/* Returns whether a thread in @state has ended. */
static inline bool fathom_thread_has_ended(char state)
{
	return !state || state == 'Z' || state == 'X';
}

#endif
