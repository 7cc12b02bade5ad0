/* SPDX-License-Identifier: MIT */
#include "host/self_trace/self_follow.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fathom/stack.h"
#include "host/base/clock.h"
#include "host/base/proc_stat_read.h"
#include "host/self_trace/self_exit.h"
#include "host/trace/rings.h"
#include "trace/machine.h"

/* How often rings are looked at, and in how many of these looks it is asked who has ended. */
#define LOOK_NS   1000000
#define END_LOOKS 10

/* Bytes of the text of an event. */
#define TEXT 64

/* The status of a process that has become another program. */
#define EXECUTES (INT32_MAX - 1)

/* The owner of a ring. */
struct owner {
	pid_t pid;
	pid_t tid; /* 0: nobody, as far as was told */
};

struct follow {
	const struct fathom_self_trace_follow *in;
	struct fathom_rings *rings;
	struct owner *owners; /* of each ring */
	int64_t begin_ns;
	uint64_t stack; /* where that of the program begins, of its children, too; 0: not known */
	uint32_t n_looks;
	bool is_over; /* the process has ended */
};

static struct fathom_trace_ring *ring_at(const struct follow *f, uint32_t i)
{
	return (struct fathom_trace_ring *)(void *)(f->in->program->head + 1) + i;
}

/* Returns the first record of ring @i, or NULL: its thread has not filled it yet. */
static const struct fathom_trace_record *first_record(const struct follow *f, uint32_t i)
{
	const struct fathom_program *pr = f->in->program;
	const uint64_t taken = atomic_load(&ring_at(f, i)->taken);
	const struct fathom_trace_record *all =
		(const void *)((const char *)pr->head + pr->rings_off);
	const struct fathom_trace_record *record =
		&all[i * FATHOM_TRACE_RECORDS + taken % FATHOM_TRACE_RECORDS];
	const uint64_t time = __atomic_load_n(&record->time, __ATOMIC_ACQUIRE);

	return (time & FATHOM_TRACE_LAP) == fathom_trace_lap(taken) ? record : NULL;
}

static struct fathom_ring_name name_of(const struct follow *f, uint32_t i)
{
	return (struct fathom_ring_name){ f->in->program, i };
}

/* Posts that thread @o has begun, with ring @i. */
static void post_begin(struct follow *f, uint32_t i, const struct owner *o, uint64_t ticks,
		       const struct fathom_trace_record *record)
{
	const bool is_silent =
		o->pid != f->in->pid && f->in->options->flags & FATHOM_TRACE_NO_CHILDREN;
	struct fathom_post post = { .ticks = ticks,
				    .begins = name_of(f, i),
				    .sp = (uint64_t)record->sp << 3,
				    .pid = o->pid,
				    .tid = o->tid,
				    .type = FATHOM_TRACE_START,
				    .is_silent = is_silent };
	char text[TEXT] = "";

	if (o->tid != o->pid)
		(void)snprintf(text, sizeof text, "thread of %d", (int)o->pid);
	else if (o->pid != f->in->pid)
		(void)snprintf(text, sizeof text, "process of %d", (int)f->in->pid);
	if (*text && !is_silent)
		post.text = strdup(text);
	fathom_rings_post(f->rings, &post);
}

/* Looks who has taken a ring since the last look. */
static void look_for_threads(struct follow *f)
{
	for (uint32_t i = 0; i < f->in->program->n_rings; i++) {
		struct fathom_trace_ring *ring = ring_at(f, i);
		/*
		 * The thread sets its number, that of its process, and when it began, in this
		 * order.
		 */
		const uint64_t begin = atomic_load(&ring->begin);
		const struct owner o = { .pid = atomic_load(&ring->pid),
					 .tid = atomic_load(&ring->tid) };
		const struct fathom_trace_record *record;

		if (f->owners[i].tid || !o.tid || !begin)
			continue;
		record = first_record(f, i);
		if (!record)
			continue;
		f->owners[i] = o;
		post_begin(f, i, &o, begin, record);
	}
}

/* Posts that the thread of ring @i is recorded no more, if it says so, although it runs on. */
static void post_left(struct follow *f, uint32_t i)
{
	static const char text[] =
		"no longer recorded: its filter (seccomp) would judge what the tracer calls";
	const struct owner *o = &f->owners[i];

	if (o->tid && atomic_exchange(&ring_at(f, i)->is_left, 0))
		fathom_rings_post(f->rings, &(struct fathom_post){ .ticks = fathom_trace_ticks(),
								   .text = strdup(text),
								   .pid = o->pid,
								   .tid = o->tid,
								   .type = FATHOM_TRACE_NOTE });
}

/* Posts that the thread of ring @i has ended, as @text says. */
static void post_end(struct follow *f, uint32_t i, const char *text)
{
	const struct owner *o = &f->owners[i];
	const struct fathom_post post = { .ring = name_of(f, i),
					  .ticks = fathom_trace_ticks(),
					  .text = strdup(text),
					  .pid = o->pid,
					  .tid = o->tid,
					  .type = FATHOM_TRACE_EXIT,
					  .is_release = true };

	post_left(f, i);
	/* The ring is free when all of it is read: then others may take it. */
	atomic_store(&ring_at(f, i)->begin, 0);
	f->owners[i].tid = 0;
	fathom_rings_post(f->rings, &post);
}

/*
 * Returns whether process @pid has ended; *@ret_status is how, if its parent has not asked yet,
 * EXECUTES if it is another program now, else FATHOM_SELF_NO_STATUS.
 */
static bool has_ended(const struct follow *f, pid_t pid, int32_t *ret_status)
{
	struct fathom_proc_stat now;

	*ret_status = FATHOM_SELF_NO_STATUS;
	if (kill(pid, 0) && errno == ESRCH)
		return true;
	if (!fathom_proc_stat_of((int)pid, &now))
		return false;
	if (now.state == 'Z' || now.state == 'X') {
		*ret_status = now.n_threads <= 1 ? now.wait_status : FATHOM_SELF_NO_STATUS;
		return now.n_threads <= 1;
	}
	if (!f->stack || !now.first_stack || f->stack == now.first_stack)
		return false;
	*ret_status = EXECUTES;
	return true;
}

/* Ends the threads of process @pid. */
static void end_process(struct follow *f, pid_t pid, int32_t status)
{
	char text[TEXT] = "ended";

	if (status == EXECUTES)
		(void)snprintf(text, sizeof text, "becomes another program");
	else if (status != FATHOM_SELF_NO_STATUS && WIFSIGNALED(status))
		(void)snprintf(text, sizeof text, "killed by %s",
			       fathom_signal_name(WTERMSIG(status)));
	else if (status != FATHOM_SELF_NO_STATUS)
		(void)snprintf(text, sizeof text, "status %d", WEXITSTATUS(status));
	/* Some may just have begun. */
	look_for_threads(f);
	for (uint32_t i = 0; i < f->in->program->n_rings; i++)
		if (f->owners[i].tid && f->owners[i].pid == pid)
			post_end(f, i, text);
	if (pid != f->in->pid)
		return;
	f->is_over = true;
	/* One that is gone without having called exit() is taken for killed. */
	if (f->in->options->ended && status != EXECUTES)
		f->in->options->ended(f->in->options->data, pid,
				      status == FATHOM_SELF_NO_STATUS ? SIGKILL : status);
}

/* Looks which threads and processes have ended. */
static void look_for_ends(struct follow *f)
{
	int32_t status;

	if (!f->is_over && has_ended(f, f->in->pid, &status))
		end_process(f, f->in->pid, status);
	for (uint32_t i = 0; i < f->in->program->n_rings; i++) {
		const struct owner o = f->owners[i];

		if (!o.tid)
			continue;
		if (o.pid != f->in->pid && has_ended(f, o.pid, &status))
			end_process(f, o.pid, status);
		else if (o.tid != o.pid && syscall(SYS_tgkill, o.pid, o.tid, 0) && errno == ESRCH)
			post_end(f, i, "ended");
	}
}

/* Returns whether somebody may still record. */
static bool has_somebody(const struct follow *f)
{
	if (!f->is_over)
		return true;
	for (uint32_t i = 0; i < f->in->program->n_rings; i++)
		if (f->owners[i].tid)
			return true;
	return false;
}

/*
 * Takes what was recorded so far; returns whether it was something. Threads that have begun until
 * now are known then: else their events would come late, and lose their times.
 */
static bool take_rings(struct follow *f, bool is_end)
{
	struct fathom_timestamp_pair until = fathom_timestamp_pair_read(f->begin_ns);

	look_for_threads(f);
	for (uint32_t i = 0; i < f->in->program->n_rings; i++)
		post_left(f, i);
	/* The clock is so slow that the last record may have its time. */
	if (is_end)
		until.ticks++;
	return fathom_rings_take(f->rings, &until, is_end);
}

/* The process ends, and waits until all was told. */
static void answer_ending(struct follow *f)
{
	while (take_rings(f, false))
		;
	end_process(f, f->in->pid, f->in->talk->status);
	fathom_rings_ask(f->rings);
	(void)take_rings(f, false);
	if (has_somebody(f))
		atomic_store(&f->in->talk->is_told, 1);
}

static void follow(struct follow *f)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	do {
		bool has_taken;

		fathom_rings_ask(f->rings);
		if (fathom_rings_wants_to_leave(f->rings))
			break;
		if (!f->is_over && atomic_load(&f->in->talk->wants_rest))
			answer_ending(f);
		else if (f->n_looks++ % END_LOOKS == 0)
			look_for_ends(f);
		has_taken = take_rings(f, false);
		if (!has_taken && has_somebody(f))
			nanosleep(&pause, NULL);
	} while (has_somebody(f));
	fathom_rings_ask(f->rings);
	(void)take_rings(f, true);
}

static void post_note(struct follow *f, uint64_t ticks)
{
	const struct fathom_post post = { .ticks = ticks,
					  .text = strdup(f->in->note),
					  .pid = f->in->pid,
					  .tid = f->in->pid,
					  .type = FATHOM_TRACE_NOTE };

	fathom_rings_post(f->rings, &post);
}

fathom_err fathom_self_trace_follow(const struct fathom_self_trace_follow *in,
				    struct fathom_errinfo *reterr)
{
	struct follow f = { .in = in, .begin_ns = fathom_now_ns() };
	const struct fathom_trace_options *o = in->options;
	const struct fathom_timestamp_pair begin = fathom_timestamp_pair_read(f.begin_ns);
	struct fathom_proc_stat stat;
	fathom_err err;

	if (fathom_proc_stat_of((int)in->pid, &stat))
		f.stack = stat.first_stack;
	f.owners = calloc(in->program->n_rings, sizeof *f.owners);
	err = f.owners ? fathom_rings_create(o, &begin, &f.rings) : FATHOM_E_MEMORY;
	if (err) {
		if (in->span)
			fathom_site_range_destroy(in->span);
		free(f.owners);
		return fathom_fail_memory(reterr);
	}
	if (in->span)
		fathom_rings_post(f.rings, &(struct fathom_post){ .span = in->span });
	if (in->note)
		post_note(&f, begin.ticks);
	if (o->ready)
		o->ready(o->data);
	follow(&f);
	if (o->over)
		o->over(o->data);
	fathom_rings_destroy(f.rings);
	free(f.owners);
	return FATHOM_OK;
}
