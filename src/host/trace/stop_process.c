/* SPDX-License-Identifier: MIT */
#include "host/trace/stop_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/base/thread_list.h"
#include "host/tracer/regset.h"
#include "host/trace/syscall_stops.h"
#include "host/tracer/stop.h"

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

/* The threads of a process that are being seized. */
struct seizing {
	struct fathom_follow *f;
	struct fathom_traced *p;
	int tasks;
	size_t n; /* seized in this round */
	fathom_err err;
	struct fathom_errinfo *reterr;
};

/* Seizes thread @tid unless it is. */
static bool seize(void *data, pid_t tid)
{
	struct seizing *s = data;
	long err;

	if (fathom_follow_find(s->f, tid))
		return true;
	err = fathom_stop_seize(tid, fathom_follow_options(s->f));
	/* One that a seized thread has made is traced from its beginning. */
	if (err == -ESRCH ||
	    (err == -EPERM &&
	     (s->f->n_seized || fathom_thread_has_ended(fathom_thread_state(s->tasks, tid)))))
		return true;
	if (err) {
		s->err = fathom_seize_fail(s->reterr, (int)-err);
		return false;
	}
	s->n++;
	s->f->n_seized++;
	if (!add_task(s->f, s->p, tid))
		s->err = fathom_fail_memory(s->reterr);
	return !s->err;
}

fathom_err fathom_process_seize(struct fathom_follow *f, struct fathom_traced *p,
				struct fathom_errinfo *reterr)
{
	struct seizing s = {
		.f = f, .p = p, .tasks = fathom_threads_open(p->tracee.pid), .reterr = reterr
	};

	if (s.tasks < 0)
		return fathom_seize_fail(reterr, ESRCH);
	f->n_seized = 0;
	do
		s.n = 0;
	while (!fathom_threads_each(s.tasks, seize, &s) && s.n);
	close(s.tasks);
	return s.err || f->n_seized ? s.err : fathom_seize_fail(reterr, ESRCH);
}

/* Returns whether something of @tid was noted. */
static bool is_noted(const struct fathom_follow *f, pid_t tid)
{
	for (size_t i = 0; i < f->events.n; i++)
		if (f->events.items[i].tid == tid)
			return true;
	return false;
}

/* The threads of a process that are asked to stop. */
struct stopping {
	struct fathom_follow *f;
	const struct fathom_traced *p;
	int tasks;
	bool is_whole; /* nothing else has happened to one of them */
};

/* Looks whether task @i has stopped, and notes what else has happened to it. */
static pid_t look(void *data, size_t i)
{
	struct stopping *s = data;
	struct fathom_follow_task *task = &s->f->tasks.items[i];
	int status;

	if (task->process != s->p || task->state)
		return 0;
	if (is_noted(s->f, task->tid)) {
		s->is_whole = false;
		return 0;
	}
	switch (fathom_stop_take(task->tid, &status)) {
	case FATHOM_STOP_RUNS:
		return task->tid;
	case FATHOM_STOP_STOPPED:
		task->state = FATHOM_TASK_STOPPED;
		fathom_regset_repair(s->p->tracee.pid, task->tid, s->tasks, &s->p->tracee.reader);
		break;
	case FATHOM_STOP_GROUP:
		task->state = FATHOM_TASK_GROUP_STOP;
		break;
	case FATHOM_STOP_OTHER:
		/* The end of a call, which comes first where calls are traced. */
		if (WIFSTOPPED(status) && WSTOPSIG(status) == (SIGTRAP | 0x80))
			fathom_regset_repair(s->p->tracee.pid, task->tid, s->tasks,
					     &s->p->tracee.reader);
		fathom_follow_note_event(s->f, task->tid, status);
		s->is_whole = false;
		break;
	case FATHOM_STOP_UNKNOWN:
		s->is_whole = false;
		break;
	}
	return 0;
}

bool fathom_process_stop(struct fathom_follow *f, const struct fathom_traced *p)
{
	struct stopping s = {
		.f = f, .p = p, .tasks = fathom_threads_open(p->tracee.pid), .is_whole = true
	};
	const struct fathom_stop_group g = { .look = look,
					     .data = &s,
					     .n = f->tasks.n,
					     .tasks = s.tasks,
					     .brief_ns = FATHOM_STOP_BRIEF_NS,
					     .most_ns = FATHOM_STOP_BUSY_NS };
	int64_t spent;

	for (size_t i = 0; i < f->tasks.n; i++) {
		f->tasks.items[i].state = FATHOM_TASK_RUNS;
		if (f->tasks.items[i].process == p)
			(void)fathom_stop_ask(f->tasks.items[i].tid);
	}
	if (!fathom_stop_wait(&g, &spent)) {
		s.is_whole = false;
		for (size_t i = 0; i < f->tasks.n; i++)
			if (f->tasks.items[i].process == p && !f->tasks.items[i].state &&
			    !is_noted(f, f->tasks.items[i].tid))
				f->tasks.items[i].state = FATHOM_TASK_STUCK;
	}
	if (s.tasks >= 0)
		close(s.tasks);
	return s.is_whole;
}

void fathom_process_resume(struct fathom_follow *f, const struct fathom_traced *p)
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
