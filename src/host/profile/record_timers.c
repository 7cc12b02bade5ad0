/* SPDX-License-Identifier: MIT */
/*
 * A thread of ours traces the program: new threads and processes are traced with it, and a thread
 * gets its timer when it begins, a process when it becomes another program. The signal is SIGWINCH,
 * which does nothing where no handler is set: should this process be killed, timers go on, and
 * nothing happens. What a timer says is told apart by its value. A thread that blocks the signal,
 * or has no timer, is asked for by who looks at all threads (record_poll.c), and stopped.
 */
#include "host/profile/record_timers.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/thread_list.h"
#include "host/file/process_status.h"
#include "host/profile/record_poll.h"
#include "host/tracer/regset.h"
#include "host/tracer/stop.h"
#include "host/tracer/tracee.h"
#include "host/tracer/wakeup.h"

#define TICK SIGWINCH

/* How long a thread may run without a sample of its timer, in ns: after that it is asked for. */
#define LATE_NS 25000000

#define OPTIONS                                                                                   \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)

/* A stop that is one of a system call (PTRACE_O_TRACESYSGOOD). */
#define SYSCALL_STOP (SIGTRAP | 0x80)

/* The code segment of 64-bit programs, and bytes below the stack pointer that are in use. */
#define CODE_64  0x33
#define RED_ZONE 128

/* struct sigevent as the kernel has it (include/uapi/asm-generic/siginfo.h). */
struct kernel_event {
	uint64_t value;
	int32_t signal;
	int32_t notify;
	int32_t tid;
	uint8_t rest[44];
};

/* Memory of the program for the calls that make a timer. */
struct arguments {
	struct kernel_event event;
	struct itimerspec times;
	int32_t timer;
};

struct timed_process {
	struct fathom_tracee tracee; /* its memory is opened when it is needed */
	int tasks;                   /* the folder of its threads */
	uint32_t n_threads;
};

struct timed_thread {
	pid_t tid;
	pid_t pid;
	int32_t timer;  /* -1: none */
	bool is_asked;  /* it is to be stopped for a sample */
	bool was_armed; /* or cannot be */
	bool is_deaf;   /* it had to be asked for, as its timer has not said anything */
	bool is_stopped;
};

/* A status that has come while another one was waited for. */
struct noted_status {
	pid_t tid;
	int status;
};

struct fathom_record_timers {
	struct fathom_recording *r;
	pthread_t thread;
	sem_t has_begun;
	int number;  /* errno, if it could not begin */
	int filters; /* of system calls, which the program has from us */
	bool is_leaving;
	fathom_err err;
	uint64_t used_ns;
	struct fathom_wakeup wakeup;
	struct {
		FATHOM_ARRAY_OF(struct timed_process *);
	} processes;
	struct {
		FATHOM_ARRAY_OF(struct timed_thread);
	} threads;
	struct {
		FATHOM_ARRAY_OF(struct noted_status);
	} noted;
	size_t next_noted;
};

static void note_status(void *data, pid_t tid, int status)
{
	struct fathom_record_timers *t = data;
	const struct noted_status s = { tid, status };

	if (!fathom_array_push(&t->noted, s))
		t->err = FATHOM_E_MEMORY;
}

static void note_failure(struct fathom_record_timers *t, fathom_err err)
{
	if (err)
		t->err = err;
}

static struct timed_thread *find_thread(struct fathom_record_timers *t, pid_t tid)
{
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.items[i].tid == tid)
			return &t->threads.items[i];
	return NULL;
}

static struct timed_process *find_process(struct fathom_record_timers *t, pid_t pid)
{
	for (size_t i = 0; i < t->processes.n; i++)
		if (t->processes.items[i]->tracee.pid == pid)
			return t->processes.items[i];
	return NULL;
}

static void free_process(struct timed_process *p)
{
	fathom_tracee_deinit(&p->tracee);
	if (p->tasks >= 0)
		close(p->tasks);
	free(p);
}

static void drop_thread(struct fathom_record_timers *t, struct timed_thread *thread)
{
	struct timed_process *p = find_process(t, thread->pid);

	*thread = t->threads.items[--t->threads.n];
	if (!p || --p->n_threads)
		return;
	for (size_t i = 0; i < t->processes.n; i++) {
		if (t->processes.items[i] != p)
			continue;
		t->processes.items[i] = t->processes.items[--t->processes.n];
		break;
	}
	free_process(p);
}

static struct timed_process *add_process(struct fathom_record_timers *t, pid_t pid)
{
	struct timed_process *p = calloc(1, sizeof *p);

	if (!p || !fathom_array_push(&t->processes, p)) {
		free(p);
		return NULL;
	}
	fathom_tracee_init(&p->tracee, pid);
	p->tracee.note = note_status;
	p->tracee.data = t;
	p->tasks = fathom_threads_open(pid);
	return p;
}

/* Adds thread @tid, which has made its first stop; NULL without memory, or if it has gone. */
static struct timed_thread *add_thread(struct fathom_record_timers *t, pid_t tid)
{
	const pid_t pid = fathom_status_process(tid);
	struct timed_process *p = find_process(t, pid);
	const struct timed_thread thread = { .tid = tid, .pid = pid, .timer = -1 };

	if (!pid)
		return NULL;
	if (!p)
		p = add_process(t, pid);
	if (!p || !fathom_array_push(&t->threads, thread)) {
		t->err = FATHOM_E_MEMORY;
		return NULL;
	}
	p->n_threads++;
	return &t->threads.items[t->threads.n - 1];
}

static void go_on(struct timed_thread *thread, int signal)
{
	thread->is_stopped = false;
	(void)ptrace(PTRACE_CONT, thread->tid, NULL, signal);
}

/* Makes the calls by which stopped thread @tid gets a timer; returns its number, -1: none. */
static int32_t make_timer(const struct fathom_record_timers *t, const struct fathom_tracee *tracee,
			  pid_t tid, uint64_t at)
{
	const int64_t period = 1000000000 / t->r->frequency;
	struct arguments a = { .timer = -1 };
	/* The number that it has where it runs. */
	const long own = fathom_tracee_call(tracee, tid, SYS_gettid, (const uint64_t[6]){ 0 });
	const uint64_t create[6] = { CLOCK_THREAD_CPUTIME_ID,
				     at + offsetof(struct arguments, event),
				     at + offsetof(struct arguments, timer) };
	uint64_t set[6] = { 0, 0, at + offsetof(struct arguments, times), 0 };

	if (own <= 0)
		return -1;
	a.event = (struct kernel_event){ .value = (uintptr_t)t,
					 .signal = TICK,
					 .notify = SIGEV_THREAD_ID,
					 .tid = (int32_t)own };
	a.times.it_interval = (struct timespec){ period / 1000000000, period % 1000000000 };
	a.times.it_value = a.times.it_interval;
	if (!fathom_tracee_write(tracee, at, &a, sizeof a) ||
	    fathom_tracee_call(tracee, tid, SYS_timer_create, create) ||
	    !fathom_tracee_read(tracee, at + offsetof(struct arguments, timer), &a.timer,
				sizeof a.timer))
		return -1;
	set[0] = (uint64_t)(int64_t)a.timer;
	return fathom_tracee_call(tracee, tid, SYS_timer_settime, set) ? -1 : a.timer;
}

/*
 * Gives stopped @thread a timer. Not to a program of 32 bits, and not where system calls are
 * filtered: the filter may kill who makes one that it does not expect.
 */
static void arm(struct fathom_record_timers *t, struct timed_thread *thread)
{
	struct timed_process *p = find_process(t, thread->pid);
	const pid_t tid = thread->tid;
	struct user_regs_struct regs;
	struct arguments before;
	uint64_t at;
	int32_t timer;

	thread->was_armed = true;
	if (!p || !fathom_tracee_get(tid, &regs) || regs.cs != CODE_64 ||
	    fathom_status_filters(tid) > t->filters)
		return;
	if (p->tracee.memory < 0 && !fathom_tracee_open_memory(&p->tracee))
		return;
	if (!p->tracee.syscall_avma)
		p->tracee.syscall_avma = fathom_tracee_find_syscall(&p->tracee);
	at = (regs.rsp - RED_ZONE - sizeof before) & ~UINT64_C(15);
	if (!p->tracee.syscall_avma || !fathom_tracee_read(&p->tracee, at, &before, sizeof before))
		return;
	timer = make_timer(t, &p->tracee, tid, at);
	(void)fathom_tracee_write(&p->tracee, at, &before, sizeof before);
	thread->timer = timer;
}

/*
 * The process of @thread runs another program: its other threads are gone, and its timers. Returns
 * the thread, as threads move in their list.
 */
static struct timed_thread *take_exec(struct fathom_record_timers *t, struct timed_thread *thread)
{
	const pid_t tid = thread->tid;
	struct timed_process *p = find_process(t, thread->pid);

	if (!p)
		return thread;
	for (size_t i = t->threads.n; i--;) {
		struct timed_thread *other = &t->threads.items[i];

		if (other->pid != p->tracee.pid || other->tid == tid)
			continue;
		*other = t->threads.items[--t->threads.n];
		p->n_threads--;
	}
	fathom_tracee_deinit(&p->tracee);
	p->tracee.memory = -1;
	p->tracee.syscall_avma = 0;
	thread = find_thread(t, tid);
	thread->timer = -1;
	/* The call of exec() ends first. */
	if (fathom_tracee_run_to_call(&p->tracee, tid))
		arm(t, thread);
	return thread;
}

/*
 * Samples stopped @thread, whose call is made once more if the stop has ended it. It stands until
 * its stack was walked: it could map other code in the place of that which it has run.
 */
static void sample(struct fathom_record_timers *t, struct timed_thread *thread)
{
	const struct timed_process *p = find_process(t, thread->pid);

	note_failure(t, fathom_record_poll_stopped(t->r, thread->pid, thread->tid));
	if (p && !fathom_regset_repair(thread->pid, thread->tid, p->tasks, &p->tracee.own))
		t->r->result->interrupted++;
}

/* Returns whether the signal that @tid is stopped by is that of its timer. */
static bool is_tick(const struct fathom_record_timers *t, pid_t tid, int signal)
{
	siginfo_t info;

	return signal == TICK && !ptrace(PTRACE_GETSIGINFO, tid, NULL, &info) &&
	       info.si_code == SI_TIMER && info.si_value.sival_ptr == (void *)(uintptr_t)t;
}

/* Removes the timer of stopped @thread. */
static void disarm(struct fathom_record_timers *t, struct timed_thread *thread)
{
	const struct timed_process *p = find_process(t, thread->pid);
	const uint64_t arguments[6] = { (uint64_t)(int64_t)thread->timer };

	if (p && thread->timer >= 0)
		(void)fathom_tracee_call(&p->tracee, thread->tid, SYS_timer_delete, arguments);
	thread->timer = -1;
}

/* Returns whether stopped thread @tid blocks the signal of timers. */
static bool is_blocked(pid_t tid)
{
	uint64_t mask = 0;

	return !ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) && mask >> (TICK - 1) & 1;
}

static void take_stop(struct fathom_record_timers *t, struct timed_thread *thread, bool is_new)
{
	if (thread->is_asked)
		sample(t, thread);
	/* A thread of a program has a timer at once; a new process often becomes another one. */
	if ((is_new && thread->tid != thread->pid) || (thread->is_asked && !thread->was_armed))
		arm(t, thread);
	/* It may wait for the signal: sigwaitinfo(2), signalfd(2). */
	else if (thread->is_asked && is_blocked(thread->tid))
		disarm(t, thread);
	thread->is_asked = false;
	go_on(thread, 0);
}

/* Removes the timer of stopped @thread, which goes on untraced, with @signal. */
static void release(struct fathom_record_timers *t, struct timed_thread *thread, int signal)
{
	const struct timed_process *p = find_process(t, thread->pid);
	const pid_t tid = thread->tid;

	disarm(t, thread);
	if (p)
		(void)fathom_regset_repair(thread->pid, tid, p->tasks, &p->tracee.own);
	fathom_stop_release(tid, signal);
	drop_thread(t, find_thread(t, tid));
}

/* Handles stop @status of @thread. */
static void handle_stop(struct fathom_record_timers *t, struct timed_thread *thread, int status,
			bool is_new)
{
	const int signal = WSTOPSIG(status);

	thread->is_stopped = true;
	switch (status >> 16) {
	case 0:
		if (signal == SYSCALL_STOP) {
			go_on(thread, 0);
		} else if (is_tick(t, thread->tid, signal)) {
			thread->is_deaf = false;
			sample(t, thread);
			go_on(thread, 0);
		} else {
			go_on(thread, signal);
		}
		break;
	case PTRACE_EVENT_EXIT:
		note_failure(t, fathom_record_poll_ending(t->r, thread->pid, thread->tid));
		go_on(thread, 0);
		break;
	case PTRACE_EVENT_EXEC:
		go_on(take_exec(t, thread), 0);
		break;
	case PTRACE_EVENT_STOP:
		if (signal == SIGTRAP)
			take_stop(t, thread, is_new);
		else
			(void)ptrace(PTRACE_LISTEN, thread->tid, NULL, NULL);
		break;
	default:
		go_on(thread, 0);
	}
}

/* Thread @tid has ended. */
static void take_end(struct fathom_record_timers *t, pid_t tid, int status,
		     const struct rusage *usage)
{
	struct timed_thread *thread = find_thread(t, tid);
	struct fathom_recording *r = t->r;

	if (thread)
		drop_thread(t, thread);
	if (tid != r->first_pid)
		return;
	r->has_exited = true;
	r->result->status = status;
	r->ran_ns = (uint64_t)usage->ru_utime.tv_sec * 1000000000 +
		    (uint64_t)usage->ru_utime.tv_usec * 1000 +
		    (uint64_t)usage->ru_stime.tv_sec * 1000000000 +
		    (uint64_t)usage->ru_stime.tv_usec * 1000;
}

static void handle(struct fathom_record_timers *t, pid_t tid, int status,
		   const struct rusage *usage)
{
	struct timed_thread *thread = find_thread(t, tid);
	const bool is_new = !thread;

	if (!WIFSTOPPED(status)) {
		take_end(t, tid, status, usage);
		return;
	}
	if (!thread)
		thread = add_thread(t, tid);
	if (thread)
		handle_stop(t, thread, status, is_new);
	else
		(void)ptrace(PTRACE_CONT, tid, NULL, 0);
}

/* Stops the threads that samples were asked of. */
static void answer_wakeup(struct fathom_record_timers *t)
{
	t->wakeup.pid = 0;
	atomic_store(&t->wakeup.is_sent, 0);
	fathom_wakeup_start(&t->wakeup);
	for (size_t i = 0; i < t->threads.n; i++)
		if (t->threads.items[i].is_asked && !t->threads.items[i].is_stopped)
			(void)fathom_stop_ask(t->threads.items[i].tid);
}

/* Waits for a status; returns its thread, or -1. */
static pid_t next_status(struct fathom_record_timers *t, int flags, int *ret_status,
			 struct rusage *ret_usage)
{
	if (t->next_noted < t->noted.n) {
		const struct noted_status s = t->noted.items[t->next_noted++];

		if (t->next_noted == t->noted.n)
			t->next_noted = t->noted.n = 0;
		*ret_status = s.status;
		*ret_usage = (struct rusage){ 0 };
		return s.tid;
	}
	return wait4(-1, ret_status, __WALL | __WNOTHREAD | flags, ret_usage);
}

static void follow(struct fathom_record_timers *t)
{
	struct fathom_recording *r = t->r;
	struct rusage usage;
	bool is_leaving = false;
	int status;

	fathom_wakeup_start(&t->wakeup);
	while (!is_leaving) {
		const pid_t tid = next_status(t, 0, &status, &usage);

		if (tid < 0 && errno != EINTR)
			break;
		pthread_mutex_lock(&r->lock);
		if (t->wakeup.pid && tid == t->wakeup.pid)
			answer_wakeup(t);
		else if (tid > 0)
			handle(t, tid, status, &usage);
		is_leaving = t->is_leaving;
		pthread_mutex_unlock(&r->lock);
	}
	fathom_wakeup_stop(&t->wakeup);
}

/* Leaves the program: what does not stop in time keeps its timer, whose signal it ignores. */
static void leave(struct fathom_record_timers *t)
{
	const int64_t began = fathom_now_ns();
	struct rusage usage;
	int status;

	for (size_t i = 0; i < t->threads.n; i++)
		(void)fathom_stop_ask(t->threads.items[i].tid);
	while (t->threads.n && fathom_now_ns() - began < FATHOM_STOP_BRIEF_NS) {
		const pid_t tid = next_status(t, WNOHANG, &status, &usage);
		struct timed_thread *thread = tid > 0 ? find_thread(t, tid) : NULL;

		if (!tid)
			fathom_stop_sleep_ns(100000);
		else if (tid < 0 && errno != EINTR)
			break;
		else if (tid > 0 && !WIFSTOPPED(status))
			take_end(t, tid, status, &usage);
		else if (thread)
			release(t, thread,
				status >> 16 || WSTOPSIG(status) == SYSCALL_STOP ||
						is_tick(t, tid, WSTOPSIG(status))
					? 0
					: WSTOPSIG(status));
		else if (tid > 0)
			fathom_stop_release(tid, 0);
	}
}

static void *trace(void *data)
{
	struct fathom_record_timers *t = data;
	const long err = fathom_stop_seize(t->r->first_pid, OPTIONS);

	t->number = (int)-err;
	t->filters = fathom_status_filters(gettid());
	(void)sem_post(&t->has_begun);
	if (err)
		return NULL;
	follow(t);
	leave(t);
	t->used_ns = (uint64_t)fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void free_timers(struct fathom_record_timers *t)
{
	for (size_t i = 0; i < t->processes.n; i++)
		free_process(t->processes.items[i]);
	fathom_array_free(&t->processes);
	fathom_array_free(&t->threads);
	fathom_array_free(&t->noted);
	(void)sem_destroy(&t->has_begun);
	free(t);
}

fathom_err fathom_record_timers_create(struct fathom_recording *r,
				       struct fathom_record_timers **ret,
				       struct fathom_errinfo *reterr)
{
	struct fathom_record_timers *t = calloc(1, sizeof *t);
	int number;

	*ret = NULL;
	if (!t)
		return fathom_fail_memory(reterr);
	t->r = r;
	(void)sem_init(&t->has_begun, 0, 0);
	if (pthread_create(&t->thread, NULL, trace, t)) {
		free_timers(t);
		return fathom_fail_memory(reterr);
	}
	while (sem_wait(&t->has_begun) && errno == EINTR)
		;
	number = t->number;
	if (!number) {
		*ret = t;
		return FATHOM_OK;
	}
	(void)pthread_join(t->thread, NULL);
	free_timers(t);
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "the program cannot be traced (ptrace)");
	if (reterr)
		reterr->os_errno = number;
	return FATHOM_E_OS;
}

void fathom_record_timers_ask(struct fathom_record_timers *t, int32_t tid, uint64_t ran_ns)
{
	struct timed_thread *thread = find_thread(t, tid);

	if (!thread || thread->is_asked || (!thread->is_deaf && ran_ns < LATE_NS))
		return;
	thread->is_asked = thread->is_deaf = true;
	fathom_wakeup_send(&t->wakeup);
}

fathom_err fathom_record_timers_failed(const struct fathom_record_timers *t)
{
	return t->err;
}

uint64_t fathom_record_timers_destroy(struct fathom_record_timers *t)
{
	uint64_t used;

	if (!t)
		return 0;
	pthread_mutex_lock(&t->r->lock);
	t->is_leaving = true;
	pthread_mutex_unlock(&t->r->lock);
	fathom_wakeup_send(&t->wakeup);
	(void)pthread_join(t->thread, NULL);
	used = t->used_ns;
	free_timers(t);
	return used;
}
