/* SPDX-License-Identifier: MIT */
/*
 * Stops threads (host/tracer/stop.h), copies and releases them.
 *
 * The tracer is a thread of its own: after one that did not stop in time the tracer ends, which
 * lets all go, and another one goes on. While it waits in PTRACE_SEIZE the caller reaps, and leaves
 * behind a tracer that stays there.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/base/context.h"
#include "host/base/clock.h"
#include "host/stack/capture_work.h"
#include "host/tracer/regset.h"
#include "host/tracer/stop.h"
#include "safe/base/limits.h"

/*
 * How long a thread may take to stop that has a processor or sleeps: one that only waits for a
 * processor may take until the deadline.
 */
#define BRIEF_NS INT64_C(50000000)
/* How often the caller is told of threads that do not stop. */
#define TELL_NS INT64_C(1000000000)
/* Threads in state D are left alone at once when so many deadlines were missed. */
#define MISSED_DEADLINES 4
/* How often the caller looks after a tracer that is late. */
#define WATCH_NS 5000000
/* Bytes of stack that most threads need; touched before the first stop. */
#define USUAL_STACK 262144

/* A thread on its way through a stop. */
struct stopping {
	struct fathom_thread_copy *copy;
	int64_t asked; /* when the stop was requested, ns; 0: it was not */
	int signal;    /* on its way to the thread when it stopped */
	_Atomic bool is_seized;
	bool is_stopped;
};

/* Threads that are stopped together: one, or all. */
struct group {
	struct stopping *items;
	size_t n;
};

struct tracer {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fathom_capture *capture;
	struct fathom_thread_copy *copies;
	size_t n;
	size_t next;        /* the first that is not done */
	struct group group; /* in work */
	bool together;
	bool insist;
	bool all;        /* also those that appear meanwhile: copies, from malloc(), may grow */
	int32_t *listed; /* what was listed last, if all */
	size_t n_listed;
	bool finished;       /* all below are guarded by the lock */
	bool abandoned;      /* capture and copies may not be touched any more */
	int64_t seize_began; /* when PTRACE_SEIZE was called, ns; 0: it was not, or is done */
	pid_t tid;           /* of the tracer, from then on */
	/* while threads are asked to stop */
	_Atomic int64_t wait_began; /* ns; 0: none is */
	_Atomic size_t n_late;      /* threads that have no processor to stop on */
	_Atomic bool gives_up;
};

static void tracer_free(struct tracer *t)
{
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t->group.items);
	free(t->listed);
	free(t);
}

/* Sets whether the tracer is in PTRACE_SEIZE; returns false if it was left behind there. */
static bool set_seizing(struct tracer *t, bool is_seizing)
{
	bool goes_on;

	pthread_mutex_lock(&t->lock);
	goes_on = !t->abandoned;
	t->tid = gettid();
	t->seize_began = is_seizing && goes_on ? fathom_now_ns() : 0;
	pthread_mutex_unlock(&t->lock);
	return goes_on;
}

/* Returns whether a stop would end the call that @copy sleeps in. */
static bool would_end(struct fathom_capture *c, const struct fathom_thread_copy *copy,
		      const struct fathom_task *task)
{
	const struct fathom_blocking_call call = fathom_capture_call(c, copy, task);

	return copy->in_syscall && fathom_blocking_call_effect(&call) == FATHOM_STOP_ENDS;
}

/* Returns whether the thread of @copy, which sleeps uninterruptibly, is not worth a deadline. */
static bool is_hopeless(const struct fathom_capture *c, const struct fathom_thread_copy *copy)
{
	return copy->state == 'D' && c->n_missed >= MISSED_DEADLINES;
}

/* Reads what is known of the thread before the stop. Returns whether it is to be stopped. */
static bool is_wanted(struct tracer *t, struct fathom_thread_copy *copy, struct fathom_task *task)
{
	struct fathom_capture *c = t->capture;
	struct fathom_task_syscall s;

	copy->in_syscall = false;
	copy->syscall = -1;
	if (!fathom_task_syscall(task, &s)) {
		fathom_capture_fail_read(c, copy, task, errno);
		return false;
	}
	fathom_capture_take_syscall(c, copy, &s);
	if (is_hopeless(c, copy))
		fathom_capture_fail(c, copy, FATHOM_E_TIMEOUT,
				    "sleeps uninterruptibly and cannot stop");
	else if (!t->insist && would_end(c, copy, task))
		fathom_capture_fail(c, copy, FATHOM_E_UNSUPPORTED,
				    "waits with a timeout in a call that a stop would end "
				    "(--stop=all stops it all the same)");
	else
		return true;
	return false;
}

/*
 * Seizes the thread of @task. If its directory is there afterwards, the number was the thread's own
 * all the time. Returns false if the tracer was left behind, and may touch nothing.
 */
static bool seize(struct tracer *t, struct stopping *s, struct fathom_task *task)
{
	struct fathom_task_stat stat;
	const int32_t tid = s->copy->tid;
	int number;
	long result;

	if (!set_seizing(t, true))
		return false;
	result = fathom_stop_seize(tid, 0);
	number = (int)-result;
	if (!set_seizing(t, false))
		return false;
	if (!result && !faccessat(task->dir, "stat", F_OK, 0))
		s->is_seized = true;
	else if (!result || number == ESRCH)
		fathom_capture_fail(t->capture, s->copy, FATHOM_E_NOT_FOUND, "has ended");
	else if (fathom_task_stat(task, &stat) && stat.state != 'Z')
		fathom_capture_refuse(t->capture, s->copy, task, number);
	else
		fathom_capture_fail(t->capture, s->copy, FATHOM_E_NOT_FOUND, "has ended");
	return true;
}

/* Seizes the thread of @s if it is wanted. Returns false if the tracer was left behind. */
static bool prepare(struct tracer *t, struct stopping *s)
{
	struct fathom_task task;
	bool goes_on = true;

	if (t->capture->options.pid <= 0)
		fathom_capture_fail(t->capture, s->copy, FATHOM_E_OS,
				    "is in another PID namespace: run there to stop it");
	else if (fathom_capture_open(t->capture, s->copy, &task)) {
		if (is_wanted(t, s->copy, &task))
			goes_on = seize(t, s, &task);
		fathom_task_close(&task);
	} else {
		fathom_task_close(&task);
	}
	return goes_on;
}

static void request(struct tracer *t, struct stopping *s)
{
	s->asked = fathom_now_ns();
	if (fathom_stop_ask(s->copy->tid))
		return;
	s->is_seized = false;
	fathom_capture_fail(t->capture, s->copy, FATHOM_E_NOT_FOUND, "has ended");
}

/*
 * Returns whether a seized thread has ended. Reaps it, unless it is the first thread, which its
 * parent reaps: exec() in another thread waits for that. waitid() reports stops, too, and takes
 * the signal with them; so it only looks first.
 */
static bool reap(const struct fathom_capture *c, int32_t tid)
{
	const int how = WEXITED | WNOHANG | __WALL;
	siginfo_t info = { 0 };

	if (waitid(P_PID, (id_t)tid, &info, how | WNOWAIT))
		return true;
	if (!info.si_pid || (info.si_code != CLD_EXITED && info.si_code != CLD_KILLED &&
			     info.si_code != CLD_DUMPED))
		return false;
	if (tid != c->options.pid)
		(void)waitid(P_PID, (id_t)tid, &info, how);
	return true;
}

/* Returns how long threads may take to stop that have, or need, no processor for it. */
static int64_t brief_limit(const struct fathom_capture *c)
{
	const int64_t limit = (int64_t)c->options.deadline_ms * 1000000;

	return limit < BRIEF_NS ? limit : BRIEF_NS;
}

/*
 * Notes whether thread @i of the group has stopped, or ended. Returns its number while it has not.
 */
static pid_t look(void *data, size_t i)
{
	struct tracer *t = data;
	struct stopping *s = &t->group.items[i];
	const int32_t tid = s->copy->tid;

	if (!s->is_seized || s->is_stopped)
		return 0;
	s->is_stopped = fathom_stop_peek(tid, &s->signal);
	if (s->is_stopped)
		return 0;
	if (!reap(t->capture, tid))
		return tid;
	s->is_seized = false;
	fathom_capture_fail(t->capture, s->copy, FATHOM_E_NOT_FOUND, "has ended");
	return 0;
}

/* Notes that @n_late threads have not stopped; returns whether to go on waiting for them. */
static bool goes_on(void *data, size_t n_late)
{
	struct tracer *t = data;

	for (size_t i = 0; i < t->group.n; i++)
		/* It has not been stopped up to now. */
		if (t->group.items[i].is_seized && !t->group.items[i].is_stopped)
			t->group.items[i].asked = fathom_now_ns();
	atomic_store(&t->n_late, n_late);
	return !atomic_load(&t->gives_up);
}

/*
 * Waits until all threads of the group have stopped or ended, or the time for it has passed: the
 * whole capture has the deadline for those that wait for a processor.
 */
static void await(struct tracer *t)
{
	struct fathom_capture *c = t->capture;
	const struct fathom_stop_group g = {
		.look = look,
		.goes_on = goes_on,
		.data = t,
		.n = t->group.n,
		.tasks = c->tasks,
		.brief_ns = brief_limit(c),
		.most_ns = (int64_t)c->options.deadline_ms * 1000000 - (int64_t)c->late_ns,
	};
	int64_t spent;

	atomic_store(&t->wait_began, fathom_now_ns());
	c->n_missed += !fathom_stop_wait(&g, &spent);
	atomic_store(&t->wait_began, 0);
	if (spent > g.brief_ns)
		c->late_ns += (uint64_t)spent;
}

/* Starts the call of @s anew if the stop has ended it, it has no timeout, and no handler is due. */
static void repair(struct tracer *t, struct stopping *s, struct fathom_regset *regs)
{
	struct fathom_thread_copy *copy = s->copy;
	struct fathom_task_status status;
	struct fathom_blocking_call call;
	struct fathom_task task;

	if (s->signal || !copy->in_syscall || fathom_regset_call(regs).result != -EINTR)
		return;
	copy->was_interrupted = true;
	if (!fathom_task_open(&task, t->capture->options.proc, copy->tid))
		return;
	call = fathom_capture_call(t->capture, copy, &task);
	copy->was_restarted = fathom_task_status(&task, &status) && !status.handler_is_due &&
			      fathom_regset_restart(copy->tid, regs, &call);
	copy->was_interrupted = !copy->was_restarted;
	fathom_task_close(&task);
}

/* Copies the registers of the stopped thread, and its stack into the scratch. */
static struct fathom_scratch_pieces copy_thread(struct tracer *t, struct stopping *s)
{
	struct fathom_thread_copy *copy = s->copy;
	struct fathom_scratch_pieces r = { 0 };
	struct fathom_regset regs;
	/* As seen before the stop, which tells calls of another kind from usual ones. */
	const uint64_t pc = copy->registers.pc;
	const bool was_in_call = copy->in_syscall;

	copy->was_stopped = true;
	copy->stood_ns = (uint64_t)fathom_now_ns();
	copy->err = FATHOM_OK;
	if (!fathom_regset_get(copy->tid, &regs))
		fathom_capture_fail(t->capture, copy, FATHOM_E_NOT_FOUND, "has ended");
	else if (!fathom_capture_take_registers(&regs, copy))
		fathom_capture_fail(t->capture, copy, FATHOM_E_UNSUPPORTED,
				    "its registers are of an unknown machine");
	else {
		if (copy->in_syscall && !(was_in_call && copy->registers.pc == pc))
			fathom_capture_check_call(t->capture, copy);
		r = fathom_capture_read_stack(t->capture, copy);
		repair(t, s, &regs);
	}
	return r;
}

/* Lets the thread of @s run on, with the signal that was on its way. */
static void release(struct stopping *s)
{
	s->is_seized = false;
	fathom_stop_release(s->copy->tid, s->signal);
	s->copy->pause_ns = (uint64_t)(fathom_now_ns() - s->asked);
}

/* Completes the copy of a thread whose stack was read. */
static void keep(struct tracer *t, struct stopping *s, struct fathom_scratch_pieces r)
{
	if (!s->copy->err)
		fathom_capture_keep_stack(t->capture, s->copy, &r);
}

/* Copies and releases the threads that have stopped. */
static void copy_group(struct tracer *t)
{
	struct group *g = &t->group;

	if (g->n == 1 && g->items[0].is_stopped) {
		const struct fathom_scratch_pieces r = copy_thread(t, g->items);

		release(g->items);
		keep(t, g->items, r);
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		if (g->items[i].is_stopped)
			keep(t, &g->items[i], copy_thread(t, &g->items[i]));
	for (size_t i = 0; i < g->n; i++)
		if (g->items[i].is_stopped)
			release(&g->items[i]);
}

/*
 * Looks for exec(), and for threads that have not stopped. Returns whether there is one of those.
 */
static bool check_group(struct tracer *t)
{
	const bool is_gone = fathom_capture_is_gone(t->capture);
	bool is_late = false;

	for (size_t i = 0; i < t->group.n; i++) {
		struct fathom_thread_copy *copy = t->group.items[i].copy;

		if (t->group.items[i].is_seized) {
			is_late = true;
			fathom_capture_fail(t->capture, copy, FATHOM_E_TIMEOUT,
					    "did not stop in time");
		} else if (is_gone && copy->was_stopped && !copy->err) {
			fathom_thread_copy_deinit(copy);
			fathom_capture_fail(t->capture, copy, FATHOM_E_CHANGED,
					    "runs another program by now");
		}
	}
	return is_late;
}

/*
 * Stops the threads of the group from number @first on, as far as they can be. Returns false if the
 * tracer was left behind.
 */
static bool stop_from(struct tracer *t, size_t first)
{
	for (size_t i = first; i < t->group.n; i++)
		if (!prepare(t, &t->group.items[i]))
			return false;
	for (size_t i = first; i < t->group.n; i++)
		if (t->group.items[i].is_seized)
			request(t, &t->group.items[i]);
	await(t);
	return true;
}

/* Adds thread @tid to the copies and the group. */
static bool add(struct tracer *t, int32_t tid)
{
	struct fathom_thread_copy *copies = realloc(t->copies, (t->n + 1) * sizeof *copies);
	struct stopping *items;

	if (!copies)
		return false;
	t->copies = copies;
	for (size_t i = 0; i < t->group.n; i++)
		t->group.items[i].copy = &copies[i];
	items = realloc(t->group.items, (t->n + 1) * sizeof *items);
	if (!items)
		return false;
	t->group.items = items;
	copies[t->n] = (struct fathom_thread_copy){ .tid = tid };
	items[t->n] = (struct stopping){ .copy = &copies[t->n] };
	t->group.n = ++t->n;
	return true;
}

/*
 * Adds the threads that are there and were not listed before. Both lists are in order after the
 * main thread.
 */
static void add_new(struct tracer *t)
{
	int32_t *tids;
	size_t n;
	size_t k = 1;

	if (fathom_capture_list(t->capture, &tids, &n, NULL))
		return;
	for (size_t i = 1; i < n; i++) {
		while (k < t->n_listed && t->listed[k] < tids[i])
			k++;
		if ((k >= t->n_listed || t->listed[k] != tids[i]) && !add(t, tids[i]))
			break;
	}
	free(t->listed);
	t->listed = tids;
	t->n_listed = n;
}

/* Stops, copies and releases a group. Returns false if the tracer must end. */
static bool run_group(struct tracer *t)
{
	size_t before = 0;

	/* Threads that are not yet stopped may start others. */
	for (int i = 0; i < FATHOM_MAX_LISTINGS && before < t->group.n; i++) {
		if (!stop_from(t, before))
			return false;
		before = t->group.n;
		if (t->all)
			add_new(t);
	}
	for (size_t i = before; i < t->group.n; i++)
		fathom_capture_fail(t->capture, t->group.items[i].copy, FATHOM_E_TIMEOUT,
				    "appeared after too many others");
	copy_group(t);
	return !check_group(t);
}

/* Works until all copies are done, or a thread has not stopped. */
static void work(struct tracer *t)
{
	const size_t step = t->together ? t->n : 1;
	bool goes_on = true;

	/* Timers may come late by this, not by the usual 50 us. */
	(void)prctl(PR_SET_TIMERSLACK, 1000L, 0L, 0L, 0L);
	while (goes_on && t->next < t->n) {
		t->group.n = step;
		for (size_t i = 0; i < step; i++)
			t->group.items[i] = (struct stopping){ .copy = &t->copies[t->next + i] };
		goes_on = run_group(t);
		if (goes_on || !t->abandoned)
			t->next = t->all ? t->n : t->next + step;
	}
}

static void *tracer_main(void *data)
{
	struct tracer *t = data;
	bool abandoned;

	work(t);
	pthread_mutex_lock(&t->lock);
	abandoned = t->abandoned;
	t->finished = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	if (abandoned)
		tracer_free(t);
	return NULL;
}

/* Reaps what exec() waits for while the tracer waits for exec(). */
static void reap_seized(const struct tracer *t)
{
	for (size_t i = 0; i < t->group.n; i++)
		if (t->group.items[i].is_seized)
			(void)reap(t->capture, t->group.items[i].copy->tid);
}

/* Tells the caller of threads that do not stop, once a second; *@told is when it was told last. */
static void tell(struct tracer *t, int64_t *told)
{
	const struct fathom_capture_options *o = &t->capture->options;
	const int64_t began = atomic_load(&t->wait_began);
	const int64_t now = fathom_now_ns();

	if (!o->waiting || !began || now - (*told > began ? *told : began) < TELL_NS)
		return;
	*told = now;
	pthread_mutex_unlock(&t->lock);
	if (o->waiting(o->waiting_data, atomic_load(&t->n_late),
		       (uint32_t)((now - began) / 1000000)))
		atomic_store(&t->gives_up, true);
	pthread_mutex_lock(&t->lock);
}

/* Returns whether the tracer sleeps in PTRACE_SEIZE; it may only wait for a processor there. */
static bool sleeps_in_seize(const struct tracer *t)
{
	const int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct fathom_task_syscall s = { .runs = false };
	struct fathom_task task;
	bool is_known;

	is_known = fathom_task_open(&task, self, t->tid) && fathom_task_syscall(&task, &s);
	fathom_task_close(&task);
	close(self);
	return !is_known || (!s.runs && s.number == SYS_ptrace);
}

/* Returns whether the tracer, which is in PTRACE_SEIZE, is to be left behind there. */
static bool is_stuck(const struct tracer *t)
{
	const int64_t since = fathom_now_ns() - t->seize_began;

	return since > (int64_t)t->capture->options.deadline_ms * 1000000 ||
	       (since > brief_limit(t->capture) && sleeps_in_seize(t));
}

/* Waits for the tracer to finish. Returns false if it was left behind. */
static bool watch(struct tracer *t)
{
	int64_t told = 0;

	while (!t->finished) {
		const int64_t until = fathom_now_ns() + WATCH_NS;
		const struct timespec at = { (time_t)(until / 1000000000),
					     (long)(until % 1000000000) };

		if (pthread_cond_timedwait(&t->changed, &t->lock, &at))
			tell(t, &told);
		else
			continue;
		if (!t->seize_began)
			continue;
		reap_seized(t);
		if (is_stuck(t))
			return false;
	}
	return true;
}

/* Makes a tracer that is like @like; NULL without memory. */
static struct tracer *tracer_new(const struct tracer *like)
{
	struct tracer *t = calloc(1, sizeof *t);
	pthread_condattr_t clock;

	if (!t)
		return NULL;
	t->capture = like->capture;
	t->copies = like->copies;
	t->n = like->n;
	t->together = like->together;
	t->insist = like->insist;
	t->all = like->all;
	t->group.items = calloc(t->together ? t->n : 1, sizeof *t->group.items);
	t->listed = calloc(t->n, sizeof *t->listed);
	for (t->n_listed = 0; t->listed && t->n_listed < t->n; t->n_listed++)
		t->listed[t->n_listed] = t->copies[t->n_listed].tid;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&t->changed, &clock);
	pthread_condattr_destroy(&clock);
	if (t->group.items && t->listed)
		return t;
	tracer_free(t);
	return NULL;
}

/* Starts the tracer, which blocks all signals: the program's own threads get them. */
static bool start(struct tracer *t, pthread_t *ret)
{
	sigset_t all;
	sigset_t before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret, NULL, tracer_main, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !err;
}

/* Sets the error of the copies of @t that are not done. */
static void fail_rest(struct tracer *t, size_t done, fathom_err err, const char *what)
{
	for (size_t i = done; i < t->n; i++)
		fathom_capture_fail(t->capture, &t->copies[i], err, what);
}

/* Runs a tracer like @like for its copies, and passes on what it has made of them. */
static void run_tracer(struct tracer *like)
{
	struct tracer *t = tracer_new(like);
	pthread_t thread;
	bool is_done;

	if (!t || !start(t, &thread)) {
		fail_rest(like, 0, t ? FATHOM_E_OS : FATHOM_E_MEMORY,
			  t ? "no thread can be started to trace it" : "out of memory");
		like->next = like->n;
		if (t)
			tracer_free(t);
		return;
	}
	pthread_mutex_lock(&t->lock);
	is_done = watch(t);
	t->abandoned = !is_done;
	like->copies = t->copies;
	like->next = t->next;
	like->n = t->n;
	/* Until it is unlocked, the tracer is there. */
	pthread_mutex_unlock(&t->lock);
	if (is_done) {
		pthread_join(thread, NULL);
		tracer_free(t);
	} else {
		pthread_detach(thread);
		fail_rest(like, like->next, FATHOM_E_TIMEOUT,
			  "cannot be traced while its process is within exec()");
		like->next = like->n;
	}
}

/* Makes room for usual stacks, in memory that is there: no thread waits for that. */
static void prepare_scratch(struct fathom_capture *c)
{
	if (c->scratch)
		return;
	c->scratch = malloc(USUAL_STACK);
	c->scratch_size = c->scratch ? USUAL_STACK : 0;
	if (c->scratch)
		memset(c->scratch, 0, USUAL_STACK);
}

void fathom_capture_stop(struct fathom_capture *c, struct fathom_thread_copy *copies, size_t n,
			 bool together, bool insist)
{
	struct tracer like = { .capture = c, .together = together, .insist = insist };

	prepare_scratch(c);
	for (size_t done = 0; done < n; done += like.next) {
		like.copies = copies + done;
		like.n = n - done;
		run_tracer(&like);
	}
}

fathom_err fathom_capture_stop_all(struct fathom_capture *c, bool insist,
				   struct fathom_thread_copy **ret, size_t *ret_n,
				   struct fathom_errinfo *reterr)
{
	struct tracer like = { .capture = c, .together = true, .insist = insist, .all = true };
	int32_t *tids;

	FATHOM_TRY(fathom_capture_list(c, &tids, &like.n, reterr));
	like.copies = calloc(like.n ? like.n : 1, sizeof *like.copies);
	if (!like.copies) {
		free(tids);
		return fathom_fail_memory(reterr);
	}
	for (size_t i = 0; i < like.n; i++)
		like.copies[i].tid = tids[i];
	free(tids);
	prepare_scratch(c);
	if (like.n)
		run_tracer(&like);
	*ret = like.copies;
	*ret_n = like.n;
	return FATHOM_OK;
}
