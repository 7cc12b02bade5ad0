/* SPDX-License-Identifier: MIT */
/*
 * The text of the calling process, while its other threads are stopped.
 *
 * A child that shares its memory (clone(2), CLONE_VM and CLONE_VFORK) traces them, writes, and lets
 * them go; the calling thread sleeps meanwhile. The child allocates nothing and takes no lock: a
 * stopped thread may hold any. It has no signal for its end, so no wait() of the program sees it.
 * If it is killed, the kernel lets all threads run on.
 */
#include "host/patch/own_text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/base/thread_list.h"
#include "host/tracer/stop.h"
#include "safe/base/bytes.h"
#include "safe/base/own_thread.h"
#include "safe/base/sys.h"

/* How long threads may take to leave the bytes, and how often one looks. */
#define PATIENCE_NS INT64_C(1000000000)
#define LOOK_NS     20000

/* Bytes of the child's stack. */
enum { STACK_SIZE = 32768 };

/* Threads that may begin while the others are being stopped. */
#define MORE_THREADS 1024

struct task {
	pid_t tid;
	int signal; /* to be delivered when it goes on */
	bool is_stopped;
	bool is_gone;
};

/* Task of the child, and its result. */
struct stop {
	const struct fathom_text_plan *plan; /* sorted by address */
	bool now;
	struct task *tasks;
	size_t n;
	size_t n_most;
	pid_t caller;
	int folder;   /* of the threads */
	bool is_more; /* a thread was seized in this round */
	struct fathom_own_text text;
	bool is_done;
	fathom_err err;
	int number; /* errno */
	const char *what;
};

static long trace(long request, pid_t tid, void *data)
{
	return fathom_sys(SYS_ptrace, request, tid, 0, (long)(uintptr_t)data, 0, 0);
}

static bool fail(struct stop *s, fathom_err err, int number, const char *what)
{
	s->err = err;
	s->number = number;
	s->what = what;
	return false;
}

static struct task *find_task(struct stop *s, pid_t tid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->tasks[i].tid == tid)
			return &s->tasks[i];
	return NULL;
}

/* Seizes thread @tid, unless it is known or makes the change; sets s->is_more. */
static bool seize(void *data, pid_t tid)
{
	struct stop *s = data;
	long err;

	if (tid == s->caller || find_task(s, tid))
		return true;
	if (s->n == s->n_most)
		return fail(s, FATHOM_E_TIMEOUT, 0, "more and more threads begin");
	err = fathom_stop_seize(tid, 0);
	if (err == -ESRCH ||
	    (err == -EPERM && fathom_thread_has_ended(fathom_thread_state(s->folder, tid))))
		return true;
	if (err < 0)
		return fail(s, FATHOM_E_OS, (int)-err, "other threads cannot be stopped (ptrace)");
	(void)fathom_stop_ask(tid);
	s->tasks[s->n++] = (struct task){ .tid = tid };
	s->is_more = true;
	return true;
}

/* Looks whether thread @i has stopped, or ended. */
static pid_t look(void *data, size_t i)
{
	struct task *task = &((struct stop *)data)->tasks[i];
	int status = 0;

	if (task->is_stopped || task->is_gone)
		return 0;
	switch (fathom_stop_take(task->tid, &status)) {
	case FATHOM_STOP_RUNS:
		return task->tid;
	case FATHOM_STOP_STOPPED:
	case FATHOM_STOP_GROUP:
		task->is_stopped = true;
		break;
	case FATHOM_STOP_OTHER:
		task->is_stopped = WIFSTOPPED(status);
		task->is_gone = !task->is_stopped;
		task->signal = status >> 16 ? 0 : WSTOPSIG(status);
		break;
	case FATHOM_STOP_UNKNOWN:
		task->is_gone = true;
		break;
	}
	return 0;
}

/* Stops all threads: those that begin meanwhile, too. */
static bool stop_all(struct stop *s)
{
	struct fathom_stop_group g = { .look = look,
				       .data = s,
				       .tasks = s->folder,
				       .brief_ns = FATHOM_STOP_BRIEF_NS,
				       .most_ns = FATHOM_STOP_BUSY_NS };
	int64_t spent;
	int err;

	do {
		s->is_more = false;
		err = fathom_threads_each(s->folder, seize, s);
		if (err)
			return err > 0 ? false
				       : fail(s, FATHOM_E_OS, -err, "threads cannot be listed");
		g.n = s->n;
		if (!fathom_stop_wait(&g, &spent))
			return fail(s, FATHOM_E_TIMEOUT, 0, "a thread does not stop");
	} while (s->is_more);
	return true;
}

/* Lets a thread go on that has stopped. */
static void resume(struct task *task)
{
	if (task->is_stopped && !task->is_gone)
		fathom_stop_release(task->tid, task->signal);
}

/* Returns the change in whose bytes, but for the first, @avma is; NULL: none. */
static const struct fathom_text_change *within(const struct fathom_text_plan *p, uint64_t avma)
{
	const size_t i = FATHOM_BISECT(p->n, k, p->items[k].avma + p->items[k].size <= avma);

	return i < p->n && p->items[i].avma < avma ? &p->items[i] : NULL;
}

/* Moves thread @task out of the bytes; false: it must leave them itself, or err is set. */
static bool move_out(struct stop *s, const struct task *task)
{
	const struct fathom_text_change *change;
	struct user_regs_struct regs;

	if (task->is_gone)
		return true;
	if (trace(PTRACE_GETREGS, task->tid, &regs) < 0)
		return true;
	change = within(s->plan, regs.rip);
	if (!change)
		return true;
	if (!s->now || !change->resume)
		return false;
	regs.rip = change->resume;
	if (trace(PTRACE_SETREGS, task->tid, &regs) < 0)
		return fail(s, FATHOM_E_OS, ESRCH, "a thread cannot be moved (ptrace)");
	return true;
}

/* Moves all threads out of the bytes; *@ret_busy: one must leave them itself. */
static bool move_all(struct stop *s, bool *ret_busy)
{
	*ret_busy = false;
	for (size_t i = 0; i < s->n; i++) {
		if (move_out(s, &s->tasks[i]))
			continue;
		*ret_busy = true;
		return !s->err;
	}
	return true;
}

/* Lets threads run for a moment, to leave the bytes. */
static void let_run(struct stop *s)
{
	for (size_t i = 0; i < s->n; i++)
		resume(&s->tasks[i]);
	s->n = 0;
	fathom_stop_sleep_ns(LOOK_NS);
}

static void put_plan(struct stop *s)
{
	if (!fathom_text_plan_put(s->plan, 0, s->now, &s->text.memory))
		(void)fail(s, FATHOM_E_OS, EIO, "the code cannot be written");
}

/* Main function of the child. Its memory is the program's, so it calls nothing but the kernel. */
static int run(void *data)
{
	struct stop *s = data;
	const int64_t end = fathom_stop_now_ns() + PATIENCE_NS;
	bool is_busy = false;

	while (stop_all(s) && move_all(s, &is_busy) && is_busy) {
		if (fathom_stop_now_ns() < end) {
			let_run(s);
			continue;
		}
		(void)fail(s, FATHOM_E_TIMEOUT, 0, "a thread does not leave these bytes");
		break;
	}
	if (!s->err)
		put_plan(s);
	for (size_t i = 0; i < s->n; i++)
		resume(&s->tasks[i]);
	s->is_done = true;
	fathom_sys(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

/* Returns whether only children may be traced that ask for it (Yama). */
static bool is_restricted(void)
{
	const int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char scope = '0';

	if (fd < 0)
		return false;
	(void)!read(fd, &scope, 1);
	close(fd);
	return scope == '1';
}

/* Makes the child, and waits for its end. */
static void run_child(struct stop *s, void *stack)
{
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_VFORK | CLONE_UNTRACED;
	const bool restricted = is_restricted();
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (restricted)
		(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid = clone(run, (char *)stack + STACK_SIZE, flags, s);
	if (pid < 0)
		(void)fail(s, FATHOM_E_OS, errno, "no child can be made that stops other threads");
	else
		while (waitpid(pid, NULL, (int)__WCLONE) < 0 && errno == EINTR)
			;
	if (pid >= 0 && !s->is_done)
		(void)fail(s, FATHOM_E_OS, 0, "the child that stops other threads was killed");
	if (restricted)
		(void)prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static fathom_err put_stopped(struct stop *s, struct fathom_errinfo *reterr)
{
	const size_t n = fathom_threads_count(s->folder);
	size_t size;
	char *memory;

	s->n_most = 2 * n + MORE_THREADS;
	size = STACK_SIZE + s->n_most * sizeof *s->tasks;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return fathom_fail_memory(reterr);
	s->tasks = (struct task *)(void *)(memory + STACK_SIZE);
	s->caller = fathom_own_tid();
	if (n == 1)
		put_plan(s);
	else
		run_child(s, memory);
	(void)munmap(memory, size);
	if (!s->err)
		return FATHOM_OK;
	return s->err == FATHOM_E_OS ? fathom_text_fail(reterr, s->number, s->what)
				     : fathom_fail(reterr, s->err, "", 0, s->what);
}

fathom_err fathom_text_put_stopped(struct fathom_text_plan *plan, bool now,
				   struct fathom_errinfo *reterr)
{
	struct stop s = { .plan = plan, .now = now };
	fathom_err err;
	int number;

	if (!plan->n)
		return FATHOM_OK;
	fathom_text_plan_sort(plan);
	s.folder = fathom_threads_open(0);
	(void)fathom_own_text_open(&s.text);
	number = errno;
	if (s.folder >= 0 && s.text.fd >= 0)
		err = put_stopped(&s, reterr);
	else
		err = fathom_text_fail(reterr, number, "/proc/self cannot be opened");
	if (s.folder >= 0)
		close(s.folder);
	fathom_own_text_close(&s.text);
	return err;
}
