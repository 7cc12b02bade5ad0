/* SPDX-License-Identifier: MIT */
#include "host/trace/stop_group.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "host/base/clock.h"
#include "host/file/process_status.h"
#include "host/trace/syscall_stops.h"

/* Turns of looking, after which it is asked whether a first thread has ended. */
#define PATIENT_TURNS 20

/* How long threads may take to stop, those that wait for a processor, and how often one looks. */
#define PATIENCE_NS      INT64_C(1000000000)
#define BUSY_PATIENCE_NS INT64_C(10000000000)
#define LOOK_NS          20000

fathom_err fathom_seize_fail(struct fathom_errinfo *reterr, int number)
{
	const fathom_err err = number == ESRCH ? FATHOM_E_NOT_FOUND : FATHOM_E_OS;

	(void)fathom_fail(reterr, err, "", 0,
			  number == ESRCH ? "there is no such process"
					  : "it cannot be traced (ptrace)");
	if (reterr)
		reterr->os_errno = number == ESRCH ? 0 : number;
	return err;
}

/* Adds thread @tid of @p, which is traced. */
static bool add_task(struct fathom_follow *f, struct fathom_traced *p, pid_t tid)
{
	const struct fathom_follow_task task = { .tid = tid, .ring = FATHOM_NO_RING, .process = p };

	return fathom_array_push(&f->tasks, task);
}

/* Returns whether @tid has ended: the first thread of a process stays as long as others live. */
static bool is_zombie(pid_t tid)
{
	return fathom_status_live_thread(tid) != tid || fathom_status_lack(tid);
}

/* Seizes the threads of @p that are not seized; counts them in *@ret_n. */
static fathom_err seize_more(struct fathom_follow *f, struct fathom_traced *p, size_t *ret_n,
			     struct fathom_errinfo *reterr)
{
	fathom_err err = FATHOM_OK;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	*ret_n = 0;
	(void)snprintf(path, sizeof path, "/proc/%d/task", (int)p->tracee.pid);
	dir = opendir(path);
	if (!dir)
		return fathom_seize_fail(reterr, ESRCH);
	while (!err && (entry = readdir(dir))) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || fathom_follow_find(f, tid))
			continue;
		/* One that a seized thread has made is traced from its beginning. */
		if (ptrace(PTRACE_SEIZE, tid, NULL, fathom_follow_options(f))) {
			if (errno == ESRCH || (errno == EPERM && (f->n_seized || is_zombie(tid))))
				continue;
			err = fathom_seize_fail(reterr, errno);
		} else {
			++*ret_n;
			f->n_seized++;
			if (!add_task(f, p, tid))
				err = fathom_fail_memory(reterr);
		}
	}
	(void)closedir(dir);
	return err;
}

fathom_err fathom_stop_group_seize(struct fathom_follow *f, struct fathom_traced *p,
				   struct fathom_errinfo *reterr)
{
	size_t n;

	f->n_seized = 0;
	do
		FATHOM_TRY(seize_more(f, p, &n, reterr));
	while (n);
	return f->n_seized ? FATHOM_OK : fathom_seize_fail(reterr, ESRCH);
}

/* Returns whether something of @tid was noted. */
static bool is_noted(const struct fathom_follow *f, pid_t tid)
{
	for (size_t i = 0; i < f->events.n; i++)
		if (f->events.items[i].tid == tid)
			return true;
	return false;
}

/* Looks whether @task has stopped; returns false if something else has happened to it. */
static bool look(struct fathom_follow *f, struct fathom_follow_task *task)
{
	int status;
	pid_t tid;

	if (task->state)
		return true;
	if (is_noted(f, task->tid))
		return false;
	tid = waitpid(task->tid, &status, __WALL | __WNOTHREAD | WNOHANG);
	if (!tid || (tid < 0 && errno == EINTR))
		return true;
	if (tid < 0)
		return false;
	if (!WIFSTOPPED(status) || status >> 16 != PTRACE_EVENT_STOP) {
		fathom_follow_note_event(f, tid, status);
		return false;
	}
	task->state = WSTOPSIG(status) == SIGTRAP ? FATHOM_TASK_STOPPED : FATHOM_TASK_GROUP_STOP;
	return true;
}

/* Returns whether @task, which has not stopped in @n_turns, has ended, as first threads may. */
static bool has_ended(const struct fathom_follow_task *task, size_t n_turns)
{
	return n_turns >= PATIENT_TURNS && task->tid == task->process->tracee.pid &&
	       is_zombie(task->tid);
}

/* Returns whether thread @tid has stopped, or will once it has a processor. */
static bool will_stop(pid_t tid)
{
	const char *state;
	char path[64];
	char *text;
	bool is;

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	text = fathom_status_read(path);
	state = text ? fathom_status_line(text, "\nState:") : NULL;
	is = state && strchr("RSTt", state[strspn(state, " \t")]);
	free(text);
	return is;
}

/* Returns whether a task of @p will stop that has not been seen to. */
static bool has_late(const struct fathom_follow *f, const struct fathom_traced *p)
{
	for (size_t i = 0; i < f->tasks.n; i++)
		if (f->tasks.items[i].process == p && !f->tasks.items[i].state &&
		    !is_noted(f, f->tasks.items[i].tid) && will_stop(f->tasks.items[i].tid))
			return true;
	return false;
}

bool fathom_stop_group_stop(struct fathom_follow *f, const struct fathom_traced *p)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const int64_t begin = fathom_now_ns();
	int64_t spent;
	bool is_whole = true;
	size_t n_turns = 0;
	size_t n_left;

	for (size_t i = 0; i < f->tasks.n; i++) {
		f->tasks.items[i].state = FATHOM_TASK_RUNS;
		if (f->tasks.items[i].process == p)
			(void)ptrace(PTRACE_INTERRUPT, f->tasks.items[i].tid, NULL, NULL);
	}
	do {
		n_left = 0;
		for (size_t i = 0; i < f->tasks.n; i++) {
			struct fathom_follow_task *task = &f->tasks.items[i];

			if (task->process != p)
				continue;
			if (!look(f, task))
				is_whole = false;
			else
				n_left += task->state == FATHOM_TASK_RUNS &&
					  !has_ended(task, n_turns);
		}
		n_turns++;
		if (n_left)
			nanosleep(&pause, NULL);
		spent = fathom_now_ns() - begin;
	} while (n_left && (spent < PATIENCE_NS || (spent < BUSY_PATIENCE_NS && has_late(f, p))));
	for (size_t i = 0; n_left && i < f->tasks.n; i++)
		if (f->tasks.items[i].process == p && !f->tasks.items[i].state &&
		    !is_noted(f, f->tasks.items[i].tid))
			f->tasks.items[i].state = FATHOM_TASK_STUCK;
	return is_whole && !n_left;
}

void fathom_stop_group_resume(struct fathom_follow *f, const struct fathom_traced *p)
{
	for (size_t i = 0; i < f->tasks.n; i++) {
		struct fathom_follow_task *task = &f->tasks.items[i];

		if (task->process != p)
			continue;
		if (task->state == FATHOM_TASK_GROUP_STOP &&
		    !ptrace(PTRACE_LISTEN, task->tid, NULL, NULL))
			task->state = FATHOM_TASK_RUNS;
		if (task->state && task->state != FATHOM_TASK_STUCK)
			fathom_follow_resume(f, task->tid, 0);
		task->state = FATHOM_TASK_RUNS;
	}
}
