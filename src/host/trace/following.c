/* SPDX-License-Identifier: MIT */
#include "host/trace/following.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include "fathom/stack.h"
#include "host/file/process_status.h"
#include "host/target/target.h"

/* If this process ends, the program runs on; not while its memory and registers are not its own. */
#define OPTIONS                                                                                   \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
	 PTRACE_O_TRACEEXEC)

/* The code segment of programs of 64 bits. */
#define CODE_64 0x33

#define LONGEST_TEXT 4400

static struct fathom_follow_task *find_task(const struct fathom_follow *f, pid_t tid)
{
	for (size_t i = f->tasks.n; i--;)
		if (f->tasks.items[i].tid == tid)
			return &f->tasks.items[i];
	return NULL;
}

static struct fathom_traced *add_process(struct fathom_follow *f)
{
	struct fathom_traced *p = calloc(1, sizeof *p);

	if (!p || !fathom_array_push(&f->processes, p)) {
		free(p);
		return NULL;
	}
	fathom_tracee_init(&p->tracee, 0);
	p->number = ++f->n_numbers;
	return p;
}

/* Takes back what @p has asked: nobody waits for the answer. */
static void forget_question(const struct fathom_traced *p)
{
	struct fathom_trace_head *head = p->program ? p->program->head : NULL;

	if (head && atomic_load(&head->asker) == p->number)
		atomic_store(&head->mail, FATHOM_TRACE_MAIL_FREE);
}

static void remove_process(struct fathom_follow *f, struct fathom_traced *p)
{
	forget_question(p);
	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.items[i] == p) {
			f->processes.items[i] = f->processes.items[--f->processes.n];
			break;
		}
	fathom_program_end(p);
	fathom_tracee_deinit(&p->tracee);
	free(p);
}

/* Returns the ring of @task. */
static struct fathom_ring_name ring_of(const struct fathom_follow_task *task)
{
	if (!task || task->ring == FATHOM_NO_RING || !task->process->program)
		return (struct fathom_ring_name){ NULL, 0 };
	return (struct fathom_ring_name){ task->process->program, task->ring };
}

/* Begins a post in the order of @task, whose thread is stopped. */
static struct fathom_post post_at(const struct fathom_follow_task *task, uint8_t type,
				  const char *text)
{
	struct fathom_post post = { .ring = ring_of(task),
				    .ticks = __rdtsc(),
				    .pid = task->process->tracee.pid,
				    .tid = task->tid,
				    .type = type };

	if (text && !task->process->is_silent)
		post.text = strdup(text);
	if (post.ring.program)
		post.cursor = fathom_program_cursor(task->process, task->ring);
	return post;
}

/* Posts that the ring of @task is not used any more, and that it has ended if there is a @text. */
static void release_ring(struct fathom_follow *f, struct fathom_follow_task *task, const char *text)
{
	struct fathom_post post = { .ring = ring_of(task),
				    .ticks = __rdtsc(),
				    .pid = task->process->tracee.pid,
				    .tid = task->tid,
				    .type = FATHOM_TRACE_EXIT,
				    .is_release = true };

	if (text && !task->process->is_silent)
		post.text = strdup(text);
	fathom_rings_post(f->rings, &post);
	task->ring = FATHOM_NO_RING;
}

/* Posts that @task's program is not recorded, and why. */
static void note(struct fathom_follow *f, const struct fathom_follow_task *task, const char *why)
{
	char line[LONGEST_TEXT + 32];
	struct fathom_post post;

	(void)snprintf(line, sizeof line, "not recorded: %s", why);
	post = post_at(task, FATHOM_TRACE_NOTE, line);
	fathom_rings_post(f->rings, &post);
}

/*
 * Gives @task, whose thread is stopped before its first instruction, a ring, and posts its
 * beginning, in the order of @parent, as @text.
 */
static void begin_task(struct fathom_follow *f, struct fathom_follow_task *task,
		       const struct fathom_follow_task *parent, bool is_copy, const char *text)
{
	struct user_regs_struct regs = { .rsp = 0 };
	struct fathom_post post;

	if (task->process->program)
		task->ring = fathom_program_give_ring(task->process, task->tid);
	(void)fathom_tracee_get(task->tid, &regs);
	post = post_at(parent ? parent : task, FATHOM_TRACE_START,
		       task->process->is_silent ? NULL : text);
	if (!parent) {
		post.ring = (struct fathom_ring_name){ NULL, 0 };
		post.cursor = 0;
	}
	post.pid = task->process->tracee.pid;
	post.tid = task->tid;
	post.begins = ring_of(task);
	post.sp = regs.rsp;
	post.is_copy = is_copy;
	post.is_silent = task->process->is_silent;
	fathom_rings_post(f->rings, &post);
}

static void note_event(void *data, pid_t tid, int status)
{
	struct fathom_follow *f = data;

	(void)fathom_array_push(&f->events, (struct fathom_follow_event){ tid, status });
}

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
		note_event(f, tid, status);
	return status != -1 && WIFSTOPPED(status);
}

/* Returns the number of the process of thread @tid; 0: unknown. */
static pid_t process_of(pid_t tid)
{
	char path[64];
	const char *line;
	char *text;
	pid_t pid = 0;

	(void)snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
	text = fathom_status_read(path);
	line = text ? fathom_status_line(text, "\nTgid:") : NULL;
	if (line)
		pid = (pid_t)strtol(line, NULL, 10);
	free(text);
	return pid;
}

/* Makes the process of new thread @tid, which @parent has made. NULL: it cannot be followed. */
static struct fathom_traced *fork_process(struct fathom_follow *f,
					  const struct fathom_traced *parent, pid_t tid, int event)
{
	struct fathom_traced *p = add_process(f);
	const uint32_t number = p ? p->number : 0;

	if (!p)
		return NULL;
	p->tracee.pid = tid;
	if (parent->program &&
	    fathom_program_fork(parent, tid, number, event == PTRACE_EVENT_VFORK, p)) {
		remove_process(f, p);
		return NULL;
	}
	p->is_silent = parent->is_silent || f->flags & FATHOM_TRACE_NO_CHILDREN;
	return p;
}

/* @parent has made thread or process @tid. */
static void handle_child(struct fathom_follow *f, pid_t parent_tid, pid_t tid, int event)
{
	struct fathom_follow_task task = { .tid = tid, .ring = FATHOM_NO_RING };
	struct fathom_follow_task *parent;
	char text[64];
	bool is_thread;

	if (!wait_for_stop(f, tid))
		return;
	parent = find_task(f, parent_tid);
	is_thread = parent && event == PTRACE_EVENT_CLONE &&
		    process_of(tid) == parent->process->tracee.pid;
	if (parent)
		task.process =
			is_thread ? parent->process : fork_process(f, parent->process, tid, event);
	if (task.process && fathom_array_push(&f->tasks, task)) {
		parent = find_task(f, parent_tid);
		(void)snprintf(text, sizeof text, "%s of %d", is_thread ? "thread" : "process",
			       (int)parent->process->tracee.pid);
		begin_task(f, &f->tasks.items[f->tasks.n - 1], parent, !is_thread, text);
	}
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
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
	if (fathom_tracee_get(pid, &regs) && regs.cs != CODE_64)
		return "it is a program of 32 bits";
	return NULL;
}

/* Puts the runtime into the program that @task has become. */
static void begin_program(struct fathom_follow *f, struct fathom_follow_task *task)
{
	struct fathom_traced *p = task->process;
	struct fathom_errinfo info = { .what = "" };
	const char *why = refusal_of(task->tid);
	char line[LONGEST_TEXT];
	fathom_err err;

	if (why) {
		note(f, task, why);
		return;
	}
	err = fathom_program_begin(p, task->tid, p->number, &f->lifeline, &info);
	if (!err) {
		p->program->head->wait_ticks = f->wait_ticks;
		p->program->head->full = f->flags & FATHOM_TRACE_LATEST  ? FATHOM_TRACE_OVERWRITE
					 : f->flags & FATHOM_TRACE_LOSSY ? FATHOM_TRACE_LOSE
									 : FATHOM_TRACE_WAIT;
		err = fathom_load_modules(&f->loader, p, &info);
	}
	if (err) {
		(void)fathom_errinfo_format(&info, line, sizeof line);
		note(f, task, line);
	}
}

/* Forgets the threads of the process of @tid, which runs another program now. */
static void forget_tasks(struct fathom_follow *f, const struct fathom_traced *p)
{
	size_t n = 0;

	for (size_t i = 0; i < f->tasks.n; i++) {
		struct fathom_follow_task *task = &f->tasks.items[i];

		if (task->process == p)
			release_ring(f, task, NULL);
		else
			f->tasks.items[n++] = *task;
	}
	f->tasks.n = n;
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
			note_event(f, tid, status);
			return false;
		}
	} while (WSTOPSIG(status) != (SIGTRAP | 0x80));
	return true;
}

/* @tid has become another program. */
static void handle_exec(struct fathom_follow *f, pid_t tid)
{
	struct fathom_follow_task fresh = { .tid = tid, .ring = FATHOM_NO_RING };
	char text[LONGEST_TEXT] = "program ";
	const size_t size = strlen(text);
	struct fathom_traced *p = NULL;
	char path[64];
	ssize_t n;

	for (size_t i = 0; i < f->processes.n; i++)
		if (f->processes.items[i]->tracee.pid == tid)
			p = f->processes.items[i];
	if (!p)
		return;
	forget_tasks(f, p);
	fathom_program_end(p);
	fresh.process = p;
	if (!fathom_array_push(&f->tasks, fresh) || !fathom_tracee_open_memory(&p->tracee) ||
	    !finish_exec(f, tid))
		return;
	if (!p->is_silent) {
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL, OPTIONS | PTRACE_O_EXITKILL);
		begin_program(f, &f->tasks.items[f->tasks.n - 1]);
		(void)ptrace(PTRACE_SETOPTIONS, tid, NULL, OPTIONS);
	}
	(void)snprintf(path, sizeof path, "/proc/%d/exe", (int)tid);
	n = readlink(path, text + size, sizeof text - size - 1);
	text[size + (n > 0 ? (size_t)n : 0)] = '\0';
	begin_task(f, &f->tasks.items[f->tasks.n - 1], NULL, false, f->has_run ? text : NULL);
	f->has_run = true;
}

/* Thread @tid has ended. */
static void handle_end(struct fathom_follow *f, pid_t tid, int status)
{
	struct fathom_follow_task *task = find_task(f, tid);
	struct fathom_traced *p;
	char text[64];

	if (tid == f->first)
		f->status = status;
	if (!task)
		return;
	p = task->process;
	if (WIFSIGNALED(status))
		(void)snprintf(text, sizeof text, "killed by %s",
			       fathom_signal_name(WTERMSIG(status)));
	else
		(void)snprintf(text, sizeof text, "status %d", WEXITSTATUS(status));
	release_ring(f, task, text);
	*task = f->tasks.items[--f->tasks.n];
	if (tid != p->tracee.pid)
		return;
	/* The first thread's end is told last. */
	forget_tasks(f, p);
	remove_process(f, p);
}

/*
 * A program may forbid itself the clock of the processor (PR_SET_TSC in prctl(2); strict seccomp
 * does it, too). Where the runtime has asked for it, gives the answer, and returns true.
 */
static bool is_own_signal(const struct fathom_follow *f, pid_t tid)
{
	const struct fathom_follow_task *task = find_task(f, tid);
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
	const struct fathom_follow_task *task = find_task(f, tid);
	struct user_regs_struct regs = { .rsp = 0 };
	struct fathom_post post;

	if (!task || !f->has_run)
		return;
	(void)fathom_tracee_get(tid, &regs);
	post = post_at(task, FATHOM_TRACE_SIGNAL, fathom_signal_name(number));
	post.sp = regs.rsp;
	fathom_rings_post(f->rings, &post);
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
	case PTRACE_EVENT_STOP:
		/* All its threads are stopped until SIGCONT. */
		if (WSTOPSIG(status) != SIGTRAP) {
			(void)ptrace(PTRACE_LISTEN, tid, NULL, NULL);
			return;
		}
		break;
	default:
		signal = WSTOPSIG(status);
		if (signal == (SIGTRAP | 0x80) || (signal == SIGSEGV && is_own_signal(f, tid)))
			signal = 0;
		else
			handle_signal(f, tid, signal);
	}
	(void)ptrace(PTRACE_CONT, tid, NULL, signal);
}

/* Takes the next event: one that was noted, or one that comes; returns false at the end. */
static bool next_event(struct fathom_follow *f, struct fathom_follow_event *ret)
{
	size_t i;

	for (i = 0; i < f->events.n; i++)
		/* A thread that nobody knows is not begun yet: its maker's event comes. */
		if (find_task(f, f->events.items[i].tid) ||
		    !WIFSTOPPED(f->events.items[i].status) ||
		    f->events.items[i].status >> 16 != PTRACE_EVENT_STOP)
			break;
	if (i < f->events.n) {
		*ret = f->events.items[i];
		f->events.n--;
		memmove(&f->events.items[i], &f->events.items[i + 1],
			(f->events.n - i) * sizeof *f->events.items);
		return true;
	}
	do
		ret->tid = waitpid(-1, &ret->status, __WALL | __WNOTHREAD);
	while (ret->tid < 0 && errno == EINTR);
	return ret->tid > 0;
}

static void follow(struct fathom_follow *f)
{
	struct fathom_follow_event e;

	while (next_event(f, &e)) {
		pthread_mutex_lock(&f->lock);
		if (!WIFSTOPPED(e.status))
			handle_end(f, e.tid, e.status);
		else if (e.status >> 16 == PTRACE_EVENT_STOP && !find_task(f, e.tid))
			note_event(f, e.tid, e.status);
		else
			handle_stop(f, e.tid, e.status);
		pthread_mutex_unlock(&f->lock);
	}
}

fathom_err fathom_follow_run(struct fathom_follow *f, char *const *argv,
			     struct fathom_errinfo *reterr)
{
	struct fathom_follow_task task = { .ring = FATHOM_NO_RING };
	struct fathom_traced *p = add_process(f);
	int number = 0;
	int report;
	fathom_err err;

	if (!p || !fathom_array_room(&f->tasks, 1))
		return fathom_fail_memory(reterr);
	err = fathom_tracee_start(&p->tracee, argv, OPTIONS, &report, reterr);
	if (err)
		return err;
	f->waiter = p->tracee;
	f->waiter.memory = -1;
	f->waiter.note = note_event;
	f->waiter.data = f;
	task.tid = f->first = p->tracee.pid;
	task.process = p;
	(void)fathom_array_push(&f->tasks, task);
	follow(f);
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

void fathom_follow_answer(struct fathom_follow *f)
{
	/* Followed processes only: a program without one asks nothing. */
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->processes.n; i++) {
		struct fathom_program *pr = f->processes.items[i]->program;
		uint32_t asked = FATHOM_TRACE_MAIL_ASKED;

		if (!pr || !atomic_compare_exchange_strong(&pr->head->mail, &asked,
							   FATHOM_TRACE_MAIL_READ))
			continue;
		answer(f, pr->head);
		atomic_store(&pr->head->mail, FATHOM_TRACE_MAIL_ANSWERED);
		(void)syscall(SYS_futex, &pr->head->mail, FUTEX_WAKE, 64, NULL, NULL, 0);
	}
	pthread_mutex_unlock(&f->lock);
}
