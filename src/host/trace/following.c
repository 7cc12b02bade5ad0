/* SPDX-License-Identifier: MIT */
#include "host/trace/following.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "fathom/stack.h"
#include "host/base/proc_stat_read.h"
#include "host/file/process_status.h"
#include "host/space/target.h"
#include "host/trace/attach.h"
#include "host/trace/syscall_hooked.h"
#include "host/trace/syscall_rewriter.h"
#include "host/trace/syscall_stops.h"
#include "host/trace/stop_process.h"
#include "host/trace/release_child.h"
#include "host/trace/seccomp_turn.h"

/* How often is looked whether the reader has taken all. */
#define ROUND_NS 100000

/* Waits until new thread @tid has stopped; returns false if it has ended. */
static bool wait_for_stop(struct fathom_follow *f, pid_t tid)
{
	int status;

	for (size_t i = 0; i < f->events.n; i++) {
		if (f->events.items[i].tid != tid)
			continue;
		status = f->events.items[i].status;
		if (!WIFSTOPPED(status))
			return false;
		f->events.n--;
		memmove(&f->events.items[i], &f->events.items[i + 1],
			(f->events.n - i) * sizeof *f->events.items);
		return true;
	}
	status = fathom_tracee_wait(&f->waiter, tid);
	if (status != -1 && !WIFSTOPPED(status))
		fathom_follow_note_event(f, tid, status);
	return status != -1 && WIFSTOPPED(status);
}

/* Makes the process of new thread @tid, which @parent has made. NULL: it cannot be followed. */
static struct fathom_traced *fork_process(struct fathom_follow *f,
					  const struct fathom_traced *parent, pid_t tid, int event)
{
	struct fathom_traced *p = fathom_follow_add_process(f);
	const uint32_t number = p ? p->number : 0;

	if (!p)
		return NULL;
	p->tracee.pid = tid;
	if (parent->program ? fathom_program_fork(parent, tid, number, event == PTRACE_EVENT_VFORK,
						  p) != FATHOM_OK
			    : f->calls && !fathom_tracee_open_memory(&p->tracee)) {
		fathom_follow_remove_process(f, p);
		return NULL;
	}
	p->is_filtered = parent->is_filtered;
	p->is_silent = parent->is_silent || f->flags & FATHOM_TRACE_NO_CHILDREN;
	if (p->is_silent && !p->shares)
		fathom_program_record_no_calls(p);
	return p;
}

/* Returns whether @tid is a thread of the process of @task. */
static bool is_thread_of(const struct fathom_follow_task *task, pid_t tid)
{
	const pid_t pid = fathom_status_process(tid);

	/* The process may go by the number of a thread, or that thread may be gone. */
	return pid && (pid == task->process->tracee.pid || pid == fathom_status_process(task->tid));
}

/* Thread @parent_tid has made thread or process @tid. */
static void handle_child(struct fathom_follow *f, pid_t parent_tid, pid_t tid, int event)
{
	struct fathom_follow_task task = { .tid = tid, .ring = FATHOM_NO_RING };
	struct fathom_follow_task *parent;
	char text[64];
	bool is_thread;

	if (!wait_for_stop(f, tid))
		return;
	parent = fathom_follow_find(f, parent_tid);
	is_thread = parent && event == PTRACE_EVENT_CLONE && is_thread_of(parent, tid);
	if (parent && !is_thread && fathom_releases_children(f) &&
	    fathom_release_child(parent, tid, event))
		return;
	if (parent) {
		task.has_no_new_privs = parent->has_no_new_privs;
		task.process =
			is_thread ? parent->process : fork_process(f, parent->process, tid, event);
	}
	if (task.process && fathom_array_push(&f->tasks, task)) {
		parent = fathom_follow_find(f, parent_tid);
		(void)snprintf(text, sizeof text, "%s of %d", is_thread ? "thread" : "process",
			       (int)parent->process->tracee.pid);
		fathom_follow_begin_task(f, &f->tasks.items[f->tasks.n - 1], parent, !is_thread, 0,
					 text);
	}
	fathom_follow_resume(f, tid, 0);
}

/* Returns why the program of @pid is not recorded; NULL: it is. */
static const char *refusal_of(pid_t pid)
{
	struct user_regs_struct regs;
	struct stat st;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	if (!stat(path, &st) && st.st_mode & (S_ISUID | S_ISGID))
		return "it would run with other rights (set-user-ID)";
	if (fathom_tracee_get(pid, &regs) && regs.cs != FATHOM_CODE_64)
		return "it is a program of 32 bits";
	return NULL;
}

/* Says why the program of @task is not recorded. Of its system calls all are seen. */
static void refuse(struct fathom_follow *f, const struct fathom_follow_task *task, const char *why)
{
	if (f->calls && f->calls->is_all)
		return;
	f->loader.n_unrecorded++;
	fathom_follow_note(f, task, why);
}

/* Puts the runtime into the program that @task has become. */
static void begin_program(struct fathom_follow *f, struct fathom_follow_task *task)
{
	struct fathom_traced *p = task->process;
	struct fathom_errinfo info = { .what = "" };
	const struct fathom_syscall_rewriter *rewriter = f->loader.rewriter;
	const char *why = refusal_of(task->tid);
	char line[FATHOM_FOLLOW_TEXT];
	fathom_err err;

	if (why) {
		refuse(f, task, why);
		return;
	}
	err = fathom_program_begin(p, task->tid, p->number, rewriter ? &rewriter->plans : NULL,
				   &f->liveness, &info);
	if (!err) {
		fathom_follow_set_up(f, p);
		err = fathom_load_modules(&f->loader, p, &info);
	}
	if (err) {
		(void)fathom_errinfo_format(&info, line, sizeof line);
		refuse(f, task, line);
	}
}

/* Runs thread @tid, stopped within exec(), to where that returns. */
static bool finish_exec(struct fathom_follow *f, pid_t tid)
{
	int status;

	do {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL))
			return false;
		status = fathom_tracee_wait(&f->waiter, tid);
		if (status == -1)
			return false;
		if (!WIFSTOPPED(status)) {
			fathom_follow_note_event(f, tid, status);
			return false;
		}
	} while (WSTOPSIG(status) != (SIGTRAP | 0x80));
	return true;
}

/*
 * Takes what @fresh keeps of the thread, which had its number or another one, that has become a
 * program: its call, and that it gets no new rights.
 */
static void take_former(struct fathom_follow *f, struct fathom_follow_task *fresh)
{
	struct fathom_follow_task *task;
	unsigned long former = 0;

	(void)ptrace(PTRACE_GETEVENTMSG, fresh->tid, NULL, &former);
	task = fathom_follow_find(f, (pid_t)former);
	if (!task)
		return;
	fresh->call = task->call;
	fresh->has_no_new_privs = task->has_no_new_privs;
	task->call = NULL;
}

/* Puts the runtime into @task's new program, if it is to record functions or system calls. */
static void begin_recording(struct fathom_follow *f, struct fathom_follow_task *task)
{
	if (task->process->is_silent || (f->calls && f->calls->is_all && !f->loader.rewriter))
		return;
	task->process->options = fathom_follow_options(f);
	(void)ptrace(PTRACE_SETOPTIONS, task->tid, NULL,
		     fathom_follow_options(f) | PTRACE_O_EXITKILL);
	begin_program(f, task);
	(void)ptrace(PTRACE_SETOPTIONS, task->tid, NULL, fathom_follow_options(f));
}

/* Returns the process that has become the program of @tid; NULL: none that is traced. */
static struct fathom_traced *find_former(struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task;
	unsigned long former = 0;

	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.items[i]->tracee.pid == tid)
			return f->processes.items[i];
	/* It went by the number of a thread. */
	(void)ptrace(PTRACE_GETEVENTMSG, tid, NULL, &former);
	task = fathom_follow_find(f, (pid_t)former);
	return task ? task->process : NULL;
}

/* @tid has become another program. */
static void handle_exec(struct fathom_follow *f, pid_t tid)
{
	struct fathom_follow_task fresh = { .tid = tid, .ring = FATHOM_NO_RING };
	const bool is_first = !f->has_run;
	char text[FATHOM_FOLLOW_TEXT] = "program ";
	const size_t size = strlen(text);
	struct fathom_traced *p;
	char path[64];
	ssize_t n;

	p = find_former(f, tid);
	if (!p)
		return;
	take_former(f, &fresh);
	p->tracee.pid = tid;
	p->goes_by_thread = false;
	fathom_follow_forget_tasks(f, p);
	fathom_syscall_stacks_forget(p);
	fathom_program_end(p);
	fresh.process = p;
	if (!fathom_array_push(&f->tasks, fresh) || !fathom_tracee_open_memory(&p->tracee) ||
	    !finish_exec(f, tid))
		return;
	f->has_run = true;
	fathom_follow_take_exec(f, tid, is_first);
	begin_recording(f, &f->tasks.items[f->tasks.n - 1]);
	(void)snprintf(path, sizeof path, "/proc/%d/exe", (int)tid);
	n = readlink(path, text + size, sizeof text - size - 1);
	text[size + (n > 0 ? (size_t)n : 0)] = '\0';
	fathom_follow_begin_task(f, &f->tasks.items[f->tasks.n - 1], NULL, false, 0,
				 is_first ? NULL : text);
}

/*
 * If @p went by the number of a thread that has ended, and others live, has it go by one of these.
 */
static bool goes_by_another(const struct fathom_follow *f, struct fathom_traced *p)
{
	for (size_t i = 0; p->goes_by_thread && i < f->tasks.n; i++)
		if (f->tasks.items[i].process == p) {
			p->tracee.pid = f->tasks.items[i].tid;
			return true;
		}
	return false;
}

/* Thread @tid has ended. */
static void handle_end(struct fathom_follow *f, pid_t tid, int status)
{
	struct fathom_follow_task *task = fathom_follow_find(f, tid);
	struct fathom_traced *p;
	char text[64];

	if (tid == f->first)
		f->status = status;
	if (!task)
		return;
	p = task->process;
	fathom_follow_end_syscall(f, task);
	/* It was made to call exit(); the status of the first thread is that of its process. */
	if (task->is_killed && tid != p->tracee.pid)
		status = SIGKILL;
	if (WIFSIGNALED(status))
		(void)snprintf(text, sizeof text, "killed by %s",
			       fathom_signal_name(WTERMSIG(status)));
	else
		(void)snprintf(text, sizeof text, "status %d", WEXITSTATUS(status));
	fathom_follow_release_ring(f, task, f->has_run ? text : NULL, status);
	fathom_follow_forget_task(f, task);
	if (tid != p->tracee.pid || goes_by_another(f, p))
		return;
	/* The first thread's end is told last. */
	fathom_follow_forget_tasks(f, p);
	if (f->loader.options->ended)
		f->loader.options->ended(f->loader.options->data, tid, status);
	fathom_follow_remove_process(f, p);
}

/* Returns whether the runtime in thread @tid has faulted without its block, which it has now. */
static bool is_block_back(const struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = fathom_follow_find(f, tid);

	return task && fathom_program_give_again(task->process, tid, task->ring);
}

/*
 * A program may forbid itself the clock of the processor (PR_SET_TSC in prctl(2); strict seccomp
 * does it, too). Where the runtime has asked for it, gives the answer, and returns true.
 */
static bool is_own_signal(const struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = fathom_follow_find(f, tid);
	const struct fathom_traced *p = task ? task->process : NULL;
	struct user_regs_struct regs;
	uint64_t now;
	size_t n = 0;

	if (!p || !fathom_tracee_get(tid, &regs) || !fathom_program_asks_clock(p, regs.rip))
		return false;
	for (size_t i = 0; i < f->tasks.n; i++)
		n += f->tasks.items[i].process == p;
	/* It will not ask again, if no other thread runs the code that is changed. */
	if (n == 1 && fathom_program_stop_clock(p, regs.rip))
		return true;
	now = __rdtsc();
	regs.rax = (uint32_t)now;
	regs.rdx = now >> 32;
	regs.rip += FATHOM_CLOCK_SIZE;
	return fathom_tracee_set(tid, &regs);
}

/* Thread @tid is about to take signal @number. */
static void handle_signal(struct fathom_follow *f, pid_t tid, int number)
{
	const struct fathom_follow_task *task = fathom_follow_find(f, tid);
	struct user_regs_struct regs = { .rsp = 0 };
	char text[FATHOM_SIGNAL_TEXT];
	struct fathom_post post;

	if (!task || !f->has_run)
		return;
	(void)fathom_tracee_get(tid, &regs);
	fathom_follow_signal_text(f, tid, number, text);
	post = fathom_follow_post_at(task, FATHOM_TRACE_SIGNAL, text);
	post.sp = regs.rsp;
	post.status = number;
	if (f->stacks && post.text)
		post.stack = fathom_syscall_stacks_read(f->stacks, task->process, tid);
	fathom_rings_post(f->rings, &post);
}

/*
 * Returns the status of a process whose last thread @tid is about to end, with @status. If that
 * thread leaves alone, by _exit of the kernel's, it is that of the process's first thread, which
 * has ended before, with @first.
 */
static int status_of_process(pid_t tid, int status, int first)
{
	struct user_regs_struct regs;

	return WIFEXITED(status) && fathom_tracee_get(tid, &regs) && regs.orig_rax == SYS_exit
		       ? first
		       : status;
}

/*
 * Thread @tid is about to end, with @status. If it is the last one of its process, reports all
 * their ends, and returns true: it is to be held until that was told.
 */
static bool handle_ending(struct fathom_follow *f, pid_t tid, int status)
{
	struct fathom_follow_task *task = fathom_follow_find(f, tid);
	const struct fathom_traced *p = task ? task->process : NULL;
	pid_t leader;

	if (!p)
		return false;
	task->is_ending = true;
	task->ending_status = status;
	for (size_t i = 0; i < f->tasks.n; i++)
		if (f->tasks.items[i].process == p && !f->tasks.items[i].is_ending)
			return false;
	leader = p->tracee.pid;
	for (size_t i = f->tasks.n; i--;)
		if (f->tasks.items[i].process == p && f->tasks.items[i].tid != leader)
			handle_end(f, f->tasks.items[i].tid, f->tasks.items[i].ending_status);
	task = fathom_follow_find(f, leader);
	if (task)
		handle_end(f, leader, status_of_process(tid, status, task->ending_status));
	f->held = tid;
	return true;
}

static void handle_stop(struct fathom_follow *f, pid_t tid, int status)
{
	const int event = status >> 16;
	unsigned long message = 0;
	int signal = 0;

	switch (event) {
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message))
			handle_child(f, tid, (pid_t)message, event);
		break;
	case PTRACE_EVENT_EXEC:
		handle_exec(f, tid);
		break;
	case PTRACE_EVENT_SECCOMP:
		fathom_follow_take_syscall(f, tid);
		return;
	case PTRACE_EVENT_EXIT:
		if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) &&
		    handle_ending(f, tid, (int)message))
			return;
		break;
	case PTRACE_EVENT_STOP:
		/* All its threads are stopped until SIGCONT. */
		if (WSTOPSIG(status) != SIGTRAP) {
			(void)ptrace(PTRACE_LISTEN, tid, NULL, NULL);
			return;
		}
		break;
	default:
		signal = WSTOPSIG(status);
		if (signal == (SIGTRAP | 0x80)) {
			fathom_follow_take_syscall(f, tid);
			return;
		}
		if (((signal == SIGSEGV || signal == SIGBUS) && fathom_follow_take_fault(f, tid)) ||
		    (signal == SIGSEGV && (is_own_signal(f, tid) || is_block_back(f, tid)))) {
			signal = 0;
			break;
		}
		fathom_follow_take_injected(f, tid, signal);
		fathom_follow_end_hooked(f, tid);
		handle_signal(f, tid, signal);
	}
	fathom_follow_resume(f, tid, signal);
}

/*
 * Returns whether @tid, which nobody knows, is a process of which no event will tell: made with
 * CLONE_PTRACE, where children are left alone. Of those that send another signal than fork()'s, an
 * event of their maker's tells.
 */
static bool is_to_leave(const struct fathom_follow *f, pid_t tid)
{
	struct fathom_proc_stat stat;

	return !(fathom_follow_options(f) & PTRACE_O_TRACEFORK) &&
	       fathom_status_process(tid) == tid && fathom_proc_stat_of(tid, &stat) &&
	       stat.exit_signal == SIGCHLD;
}

/* Takes an event that was noted and can be handled; returns false if there is none. */
static bool next_noted(struct fathom_follow *f, struct fathom_follow_event *ret)
{
	size_t i;

	for (i = 0; i < f->events.n; i++)
		/* A thread that nobody knows is not begun yet: its maker's event comes. */
		if (fathom_follow_find(f, f->events.items[i].tid) ||
		    !WIFSTOPPED(f->events.items[i].status) ||
		    f->events.items[i].status >> 16 != PTRACE_EVENT_STOP ||
		    is_to_leave(f, f->events.items[i].tid))
			break;
	if (i == f->events.n)
		return false;
	*ret = f->events.items[i];
	f->events.n--;
	memmove(&f->events.items[i], &f->events.items[i + 1],
		(f->events.n - i) * sizeof *f->events.items);
	return true;
}

/* Takes the next event: one that was noted, or one that comes; returns false at the end. */
static bool next_event(struct fathom_follow *f, struct fathom_follow_event *ret)
{
	const struct timespec pause = { .tv_nsec = ROUND_NS };
	struct rusage usage = { .ru_stime = { 0 } };

	if (next_noted(f, ret))
		return true;
	do {
		ret->tid = wait4(-1, &ret->status,
				 __WALL | __WNOTHREAD | (f->n_delayed ? WNOHANG : 0), &usage);
		fathom_follow_resume_due(f);
		if (!ret->tid)
			nanosleep(&pause, NULL);
	} while (!ret->tid || (ret->tid < 0 && errno == EINTR));
	f->system_ns = (uint64_t)usage.ru_stime.tv_sec * 1000000000 +
		       (uint64_t)usage.ru_stime.tv_usec * 1000;
	return ret->tid > 0;
}

static void handle(struct fathom_follow *f, const struct fathom_follow_event *e)
{
	if (!WIFSTOPPED(e->status))
		handle_end(f, e->tid, e->status);
	else if (e->status >> 16 == PTRACE_EVENT_STOP && !fathom_follow_find(f, e->tid) &&
		 is_to_leave(f, e->tid))
		(void)ptrace(PTRACE_DETACH, e->tid, NULL, NULL);
	else if (e->status >> 16 == PTRACE_EVENT_STOP && !fathom_follow_find(f, e->tid))
		fathom_follow_note_event(f, e->tid, e->status);
	else
		handle_stop(f, e->tid, e->status);
}

void fathom_follow_settle(struct fathom_follow *f)
{
	struct fathom_follow_event e;

	while (next_noted(f, &e))
		handle(f, &e);
}

/*
 * Waits until what was recorded and posted so far is told, and lets the thread that is held end;
 * not the one of the last process: that is for who asked for it.
 */
static void let_end(struct fathom_follow *f)
{
	const struct timespec pause = { .tv_nsec = ROUND_NS };
	const uint64_t n = atomic_load(&f->n_rounds) + 2;

	if (!f->held || !f->processes.n)
		return;
	while (atomic_load(&f->n_rounds) < n)
		nanosleep(&pause, NULL);
	fathom_follow_resume(f, f->held, 0);
	f->held = 0;
}

/* Answers a wakeup: starts the next one, unless all is left. */
static void answer_wakeup(struct fathom_follow *f)
{
	f->wakeup.pid = 0;
	if (atomic_load(&f->wants_to_leave)) {
		fathom_leave(f);
		return;
	}
	atomic_store(&f->wakeup.is_sent, 0);
	fathom_wakeup_start(&f->wakeup);
	fathom_remove_flooding(f);
	/* It could have been for this, too. */
	if (atomic_load(&f->wants_to_leave))
		fathom_wakeup_send(&f->wakeup);
}

void fathom_follow_all(struct fathom_follow *f)
{
	struct fathom_follow_event e;

	fathom_wakeup_start(&f->wakeup);
	while (f->processes.n && next_event(f, &e)) {
		pthread_mutex_lock(&f->lock);
		if (f->wakeup.pid && e.tid == f->wakeup.pid) {
			answer_wakeup(f);
		} else {
			handle(f, &e);
		}
		pthread_mutex_unlock(&f->lock);
		let_end(f);
	}
	fathom_wakeup_stop(&f->wakeup);
}

void fathom_follow_limit_rate(struct fathom_follow *f)
{
	fathom_wakeup_send(&f->wakeup);
}

void fathom_follow_leave(struct fathom_follow *f)
{
	if (atomic_exchange(&f->wants_to_leave, true))
		return;
	fathom_wakeup_send(&f->wakeup);
}

/* Waits for the end of the first process, which is a child of this thread that was left. */
static void wait_for_first(struct fathom_follow *f)
{
	int status;

	while (waitpid(f->first, &status, __WALL | __WNOTHREAD) < 0)
		if (errno != EINTR)
			return;
	f->status = status;
}

fathom_err fathom_follow_run(struct fathom_follow *f, char *const *argv,
			     struct fathom_errinfo *reterr)
{
	struct fathom_follow_task task = { .ring = FATHOM_NO_RING };
	struct fathom_traced *p = fathom_follow_add_process(f);
	int number = 0;
	int report;
	fathom_err err;

	if (!p || !fathom_array_room(&f->tasks, 1))
		return fathom_fail_memory(reterr);
	err = fathom_tracee_start(&p->tracee, argv, fathom_follow_options(f), f->calls != NULL,
				  f->calls && f->calls->filter ? &f->calls->filter->program : NULL,
				  f->user, &report, reterr);
	if (err)
		return err;
	/* The arguments of exec() are read before it. */
	if (f->calls)
		(void)fathom_tracee_open_memory(&p->tracee);
	fathom_follow_listen(f, &p->tracee);
	f->waiter = p->tracee;
	f->waiter.memory = -1;
	task.tid = f->first = p->tracee.pid;
	task.process = p;
	fathom_seccomp_begin(&task);
	(void)fathom_array_push(&f->tasks, task);
	fathom_follow_all(f);
	if (atomic_load(&f->wants_to_leave) && !(f->flags & FATHOM_TRACE_NO_WAIT))
		wait_for_first(f);
	if (!f->has_run && read(report, &number, sizeof number) == sizeof number) {
		err = fathom_fail(reterr, number == ENOENT ? FATHOM_E_NOT_FOUND : FATHOM_E_OS, "",
				  0, "the program cannot be run");
		if (reterr)
			reterr->os_errno = number;
	}
	close(report);
	return err;
}

/* Looks at what the process that asks has loaded. */
static void answer(struct fathom_follow *f, struct fathom_trace_head *head)
{
	const uint32_t asker = atomic_load(&head->asker);
	struct fathom_traced *p = NULL;

	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.items[i]->number == asker)
			p = f->processes.items[i];
	/* Nothing of what is missing is told: the program may just have ended. */
	if (p && p->program && p->program->head == head)
		(void)fathom_load_modules(&f->loader, p, NULL);
}

/*
 * Returns whether thread @tid has no filter (seccomp(2)) but ours, which lets the runtime sleep,
 * and those that this process has, too.
 */
static bool may_sleep(const struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = tid ? fathom_follow_find(f, tid) : NULL;
	const int ours = f->calls && f->calls->filter ? 1 : 0;
	const int n = task ? fathom_status_filters(tid) : INT_MAX;

	return n != INT_MAX && n <= fathom_status_filters(gettid()) + ours;
}

void fathom_follow_answer(struct fathom_follow *f)
{
	/* Followed processes only: a program without one asks nothing. */
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->processes.n; i++) {
		struct fathom_program *pr = f->processes.items[i]->program;
		uint32_t asked = FATHOM_TRACE_MAIL_ASKED;

		if (pr && atomic_load(&pr->head->mail) == asked)
			atomic_store(&pr->head->may_sleep,
				     may_sleep(f, atomic_load(&pr->head->asker_tid)));
		if (!pr || !atomic_compare_exchange_strong(&pr->head->mail, &asked,
							   FATHOM_TRACE_MAIL_READ))
			continue;
		answer(f, pr->head);
		atomic_store(&pr->head->mail, FATHOM_TRACE_MAIL_ANSWERED);
		(void)syscall(SYS_futex, &pr->head->mail, FUTEX_WAKE, 64, NULL, NULL, 0);
	}
	pthread_mutex_unlock(&f->lock);
}
