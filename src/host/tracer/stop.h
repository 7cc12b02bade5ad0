/* SPDX-License-Identifier: MIT */
/*
 * Stops threads that this thread traces (ptrace(2)), one or a group, and lets them go on.
 *
 * Whatever a thread has seized is let go when that thread ends, also when SIGKILL ends the process.
 * A thread that is seized and has not stopped cannot be detached from: who gives up on one that
 * does not stop ends the thread that traces.
 *
 * Nothing here waits in the kernel, but for PTRACE_SEIZE: that waits while the process is within
 * exec(), which may itself wait for a seized thread to be reaped, or for a file system.
 *
 * Calls nothing but the kernel: a child that shares the memory of its parent can use it.
 */
#ifndef FATHOM_TRACER_STOP_H
#define FATHOM_TRACER_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Seizes thread @tid with @options (PTRACE_O_). Returns 0 or a negative errno. */
long fathom_stop_seize(pid_t tid, long options);
/* Asks seized thread @tid to stop. Returns false if it has ended. */
bool fathom_stop_ask(pid_t tid);
/* Detaches from stopped thread @tid, which takes @signal; 0: none. */
void fathom_stop_release(pid_t tid, int signal);

enum fathom_stop_kind {
	FATHOM_STOP_RUNS,    /* it runs */
	FATHOM_STOP_STOPPED, /* as it was asked to */
	FATHOM_STOP_GROUP,   /* by a signal of its own, until SIGCONT */
	FATHOM_STOP_OTHER,   /* something else has happened to it: an event, a signal, its end */
	FATHOM_STOP_UNKNOWN  /* it is no thread that the calling thread traces, any more */
};

/* Looks whether thread @tid has stopped; takes its status, as waitpid(2) has it. */
enum fathom_stop_kind fathom_stop_take(pid_t tid, int *ret_status);

/*
 * Returns whether thread @tid has stopped, without wait(): the program that uses the library may
 * wait for any child and take the news, and a signal that wait() has seen would be lost if we were
 * killed. *@ret_signal is the one that was on its way to it; 0: none.
 */
bool fathom_stop_peek(pid_t tid, int *ret_signal);

/*
 * How long threads of a program that is followed may take to stop: those that have a processor or
 * sleep, and those that wait for a processor.
 */
#define FATHOM_STOP_BRIEF_NS INT64_C(1000000000)
#define FATHOM_STOP_BUSY_NS  INT64_C(10000000000)

/* Threads that were asked to stop. */
struct fathom_stop_group {
	/*
	 * Looks at thread @i, and notes what it finds. Returns its number as long as it is to be
	 * waited for; 0: it has stopped, has ended, or does not count.
	 */
	pid_t (*look)(void *data, size_t i);
	/*
	 * Is asked after each round in which @n_late threads wait for a processor to stop on, once
	 * the time of the others has passed; returns whether to go on waiting. NULL: yes.
	 */
	bool (*goes_on)(void *data, size_t n_late);
	void *data;
	size_t n;
	int tasks;        /* the folder of the threads (thread_list.h); -1: it is not looked at */
	int64_t brief_ns; /* for which is waited for threads that have a processor, or sleep */
	int64_t most_ns;  /* for which is waited for those that wait for a processor */
};

/* Waits for the group, for *@ret_ns. Returns whether none is waited for any more. */
bool fathom_stop_wait(const struct fathom_stop_group *g, int64_t *ret_ns);

/* The kernel's own clock and sleep: CLOCK_MONOTONIC, nanosleep(2). */
int64_t fathom_stop_now_ns(void);
void fathom_stop_sleep_ns(int64_t ns);

#endif
