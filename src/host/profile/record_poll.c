/* SPDX-License-Identifier: MIT */
/*
 * Samples by looking at threads from outside, where the kernel counts no events for this user. The
 * scheduler says how long each thread had a processor (/proc/PID/task/TID/schedstat). One that has
 * run since it was sampled last, and runs now, is stopped for a moment, copied and walked: what it
 * has run since is the weight. So each place weighs as often as a thread is met there, and all
 * weights are the processor time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/thread_list.h"
#include "host/profile/recording.h"

/* Nanoseconds between two looks for children. */
#define CHILDREN_NS 20000000

/* The most of a processor that looking may take, as one part of so many. */
#define SHARE 5

/* A process that is followed. */
struct polled {
	int32_t pid;
	int tasks;   /* descriptor of its folder of threads */
	bool is_new; /* what its threads have run before does not count */
};

struct poll_state {
	struct {
		FATHOM_ARRAY_OF(struct polled);
	} processes;
	int64_t next;     /* when the threads are looked at again */
	int64_t children; /* when children are looked for again */
};

/* A look at the threads of one process. */
struct look {
	struct fathom_recording *r;
	struct polled *p;
	bool has_threads;
	bool is_last; /* times are read, and no stacks */
	fathom_err err;
};

/* Adds process @pid, unless it is followed. False without memory. */
static bool follow(struct poll_state *s, int32_t pid, bool is_new)
{
	struct polled p = { .pid = pid, .is_new = is_new };

	for (size_t i = 0; i < s->processes.n; i++)
		if (s->processes.items[i].pid == pid)
			return true;
	p.tasks = fathom_threads_open(pid);
	if (p.tasks < 0)
		return true;
	if (fathom_array_push(&s->processes, p))
		return true;
	close(p.tasks);
	return false;
}

static void drop(struct polled *p)
{
	close(p->tasks);
}

/* Times of a thread, in ns: when they were read, and how long it ran and waited for that. */
struct polled_times {
	uint64_t now;
	uint64_t ran;
	uint64_t queued;
};

/* Reads the times of thread @tid; false if it has ended. */
static bool read_times(const struct polled *p, pid_t tid, struct polled_times *ret)
{
	char path[32];
	char text[64];
	char *end;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "%d/schedstat", (int)tid);
	fd = openat(p->tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	ret->now = (uint64_t)fathom_now_ns();
	ret->ran = strtoull(text, &end, 10);
	ret->queued = strtoull(end, NULL, 10);
	return true;
}

/* Notes the name that the thread has now. */
static void rename_thread(struct fathom_record_thread *thread, const char *name)
{
	if (!name[0] || !strncmp(thread->name, name, sizeof thread->name))
		return;
	(void)snprintf(thread->name, sizeof thread->name, "%.15s", name);
	thread->number = UINT32_MAX;
}

/* Looks at @thread, which @may_stop for it. */
static fathom_err see_thread(struct look *l, struct fathom_record_thread *thread, bool may_stop,
			     struct fathom_record_sight *ret)
{
	struct fathom_record_space *space =
		fathom_record_threads_space(&l->r->threads, thread->pid);

	if (!space)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(fathom_record_look(space, thread->tid,
				      (struct fathom_record_look){ .may_stop = may_stop },
				      &l->r->table, ret));
	/* Nobody tells of exec(). The next look is at what runs then. */
	if (!ret->has_stack && fathom_record_space_has_gone(space))
		fathom_record_space_close(space);
	rename_thread(thread, ret->name);
	return FATHOM_OK;
}

/* Writes how long @thread has waited until @now. */
static fathom_err write_waits(struct fathom_recording *r, struct fathom_record_thread *thread,
			      uint64_t now)
{
	struct fathom_record_polled *p = &thread->polled;
	/* One that is ready may wait for a processor now, which is added up when it gets one. */
	const uint64_t slept = p->slept > 0 && !p->is_ready ? (uint64_t)p->slept : 0;

	FATHOM_TRY(fathom_record_wait_put(r, thread, now, FATHOM_PROFILE_WAITING, slept,
					  p->is_seen ? &p->stack : NULL));
	FATHOM_TRY(fathom_record_wait_put(r, thread, now, FATHOM_PROFILE_RUNNABLE, p->ready, NULL));
	p->slept -= (int64_t)slept;
	p->ready = 0;
	p->told = now;
	return FATHOM_OK;
}

/* Writes what is left of @thread, which has ended since it was looked at. */
static fathom_err write_last(struct fathom_recording *r, struct fathom_record_thread *thread)
{
	FATHOM_TRY(write_waits(r, thread, thread->polled.looked));
	return fathom_record_wait_last(r, thread, thread->polled.looked);
}

/*
 * Takes what @thread has waited. It has slept all of the time that it neither ran nor was ready to:
 * where it is seen to sleep, unless it runs by now; then where it is seen the next time.
 */
static fathom_err take_waits(struct look *l, struct fathom_record_thread *thread,
			     const struct polled_times *t, bool is_running)
{
	struct fathom_record_polled *p = &thread->polled;
	const uint64_t used = t->ran - p->ran + t->queued - p->queued;
	const uint64_t passed = t->now - p->looked;
	const bool goes_on = p->is_seen && !is_running && t->ran == p->ran;

	/* Nothing is known of the time before the first look. */
	if (p->looked) {
		if (!goes_on && p->is_seen)
			FATHOM_TRY(write_waits(l->r, thread, p->looked));
		/* The scheduler adds up late: less than nothing is taken from what follows. */
		p->slept += (int64_t)(passed - used);
		p->ready += t->queued - p->queued;
	}
	p->is_ready = is_running;
	p->looked = t->now;
	p->ran = t->ran;
	p->queued = t->queued;
	if (!goes_on) {
		struct fathom_record_sight sight = { .has_stack = false };

		if (!is_running && !l->is_last)
			FATHOM_TRY(see_thread(l, thread, false, &sight));
		p->is_seen = sight.has_stack;
		p->stack = sight.stack;
	}
	return t->now - p->told >= fathom_record_waits_tell_ns(l->r)
		       ? write_waits(l->r, thread, t->now)
		       : FATHOM_OK;
}

/* Takes what @thread has run, which it does now. */
static fathom_err take_running(struct look *l, struct fathom_record_thread *thread,
			       struct fathom_record_count *count, uint64_t ran)
{
	struct fathom_record_sight sight;

	FATHOM_TRY(see_thread(l, thread, true, &sight));
	if (!sight.has_stack)
		return FATHOM_OK;
	fathom_recording_write(l->r, thread, sight.ns, FATHOM_PROFILE_SAMPLED, ran - count->last,
			       &sight.stack);
	count->last = ran;
	return FATHOM_OK;
}

/* Looks at thread @tid. */
static bool look_at_thread(void *data, pid_t tid)
{
	struct look *l = data;
	struct fathom_record_thread *thread;
	struct fathom_record_count *count;
	struct polled_times times;
	bool is_running;

	if (!read_times(l->p, tid, &times))
		return true;
	l->has_threads = true;
	thread = fathom_record_thread_at(&l->r->threads, l->p->pid, tid);
	/* Numbers are used again, but times only grow. */
	if (thread && (thread->pid != l->p->pid || times.ran < thread->polled.ran ||
		       times.queued < thread->polled.queued)) {
		l->err = write_last(l->r, thread);
		thread = fathom_record_thread_again(&l->r->threads, l->p->pid, tid, times.now);
	}
	count = thread ? fathom_record_count_at(thread, 0) : NULL;
	if (!count) {
		l->err = FATHOM_E_MEMORY;
		return false;
	}
	is_running = (l->r->has_waits || times.ran > count->last) &&
		     fathom_thread_state(l->p->tasks, tid) == 'R';
	if (l->r->has_waits && !l->err)
		l->err = take_waits(l, thread, &times, is_running);
	if (l->p->is_new)
		count->last = times.ran;
	else if (!l->err && is_running && !l->is_last && times.ran > count->last)
		l->err = take_running(l, thread, count, times.ran);
	return !l->err;
}

/* Adds the children of thread @tid. */
static bool look_for_children(void *data, pid_t tid)
{
	struct look *l = data;
	char path[32];
	char text[4096];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "%d/children", (int)tid);
	fd = openat(l->p->tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (char *at = text, *end; (void)(end = at), n > 0; at = end) {
		const long pid = strtol(at, &end, 10);

		if (end == at || pid <= 0)
			break;
		/* A shell that is followed may have started this process. */
		if (pid == getpid())
			continue;
		if (!follow(l->r->state, (int32_t)pid, false)) {
			l->err = FATHOM_E_MEMORY;
			return false;
		}
	}
	return true;
}

/* Writes the last waits of the threads of @pid, which has ended, and forgets them. */
static fathom_err end_process(struct fathom_recording *r, int32_t pid)
{
	/* Time that was not sampled is written as the first thread's, which is kept. */
	if (!r->is_attached && pid == r->first_pid)
		return FATHOM_OK;
	for (size_t i = 0; i < r->threads.threads.n; i++) {
		struct fathom_record_thread *thread = &r->threads.threads.items[i];

		if (thread->pid == pid && !thread->ended)
			FATHOM_TRY(write_last(r, thread));
	}
	FATHOM_TRY(fathom_record_threads_end(&r->threads, pid, (uint64_t)fathom_now_ns()));
	fathom_record_threads_forget(&r->threads, UINT64_MAX);
	return FATHOM_OK;
}

/* Looks at the threads of all processes. */
static fathom_err look_at_all(struct fathom_recording *r, bool with_children, bool is_last)
{
	struct poll_state *s = r->state;

	for (size_t i = 0; i < s->processes.n; i++) {
		/* A copy: children that are found move the array. */
		struct polled p = s->processes.items[i];
		struct look l = { .r = r, .p = &p, .is_last = is_last };

		(void)fathom_threads_each(p.tasks, look_at_thread, &l);
		if (with_children && !l.err)
			(void)fathom_threads_each(p.tasks, look_for_children, &l);
		p.is_new = false;
		s->processes.items[i] = p;
		if (l.err)
			return l.err;
		if (!l.has_threads) {
			drop(&p);
			s->processes.items[i--] = s->processes.items[--s->processes.n];
			FATHOM_TRY(end_process(r, p.pid));
		}
	}
	return FATHOM_OK;
}

static fathom_err begin(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	struct poll_state *s = calloc(1, sizeof *s);
	struct polled_times times;

	r->state = s;
	r->is_cycles = r->is_kernel_hidden = false;
	if (!s)
		return fathom_fail_memory(reterr);
	if (r->is_all)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "all processes are recorded by perf events only: without "
				   "--method=polling");
	if (!r->is_attached && !follow(s, r->first_pid, false))
		return fathom_fail_memory(reterr);
	for (size_t i = 0; r->is_attached && i < r->options.n_pids; i++) {
		const size_t n = s->processes.n;

		/* ptrace(2) stops no thread of its caller. */
		if (r->options.pids[i] == getpid())
			return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
					   "a process cannot stop its own threads: it records "
					   "itself by perf events only "
					   "(kernel.perf_event_paranoid)");
		errno = ESRCH;
		if (!follow(s, r->options.pids[i], true))
			return fathom_fail_memory(reterr);
		if (s->processes.n == n)
			return fathom_recording_no_process(r->options.pids[i], reterr);
	}
	if (!s->processes.n ||
	    !read_times(&s->processes.items[0], s->processes.items[0].pid, &times))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "nothing says how long threads have run "
				   "(/proc/PID/task/TID/schedstat)");
	return FATHOM_OK;
}

static fathom_err start(struct fathom_recording *r)
{
	struct poll_state *s = r->state;

	s->next = r->began;
	return FATHOM_OK;
}

static void wait_for_next(struct fathom_recording *r)
{
	struct poll_state *s = r->state;
	int64_t left = s->next - fathom_now_ns();

	/* The program may end meanwhile: that is looked for ten times a second. */
	left = left > 50000000 ? 50000000 : left;
	if (left > 0)
		(void)ppoll(NULL, 0, &(struct timespec){ .tv_nsec = (long)left }, NULL);
}

static fathom_err take(struct fathom_recording *r, bool is_last)
{
	struct poll_state *s = r->state;
	const int64_t before = fathom_now_ns();
	const int64_t used = fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int64_t rest;

	if (is_last)
		return r->has_waits ? look_at_all(r, false, true) : FATHOM_OK;
	if (before < s->next)
		return FATHOM_OK;
	FATHOM_TRY(look_at_all(r, before >= s->children, false));
	if (before >= s->children)
		s->children = before + CHILDREN_NS;
	s->next = before + 1000000000 / r->frequency;
	/* With many threads a look costs much: less often, then. Waiting for a stop does not. */
	rest = (SHARE - 1) * (fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID) - used);
	if (s->next < fathom_now_ns() + rest)
		s->next = fathom_now_ns() + rest;
	return FATHOM_OK;
}

/* Writes what the program has run in all and no sample stands for. */
static fathom_err finish(struct fathom_recording *r)
{
	struct fathom_record_thread *thread;

	for (size_t i = 0; i < r->threads.threads.n; i++) {
		thread = &r->threads.threads.items[i];
		if (!thread->ended)
			FATHOM_TRY(write_waits(r, thread, thread->polled.looked));
	}
	FATHOM_TRY(fathom_record_waits_finish(r, (uint64_t)fathom_now_ns()));
	if (r->ran_ns <= r->result->weight)
		return FATHOM_OK;
	thread = fathom_record_thread_at(&r->threads, r->first_pid, r->first_pid);
	if (!thread)
		return FATHOM_E_MEMORY;
	fathom_recording_write(r, thread, (uint64_t)fathom_now_ns(), FATHOM_PROFILE_UNSAMPLED,
			       r->ran_ns - r->result->weight, NULL);
	return FATHOM_OK;
}

static void free_poll(struct fathom_recording *r)
{
	struct poll_state *s = r->state;

	for (size_t i = 0; s && i < s->processes.n; i++)
		drop(&s->processes.items[i]);
	if (s)
		fathom_array_free(&s->processes);
	free(s);
}

const struct fathom_record_method fathom_record_poll = {
	.name = "polling",
	.number = FATHOM_PROFILE_METHOD_POLLING,
	.frequency = 99,
	.begin = begin,
	.start = start,
	.wait = wait_for_next,
	.take = take,
	.finish = finish,
	.free = free_poll,
};
