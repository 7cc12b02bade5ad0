/* SPDX-License-Identifier: MIT */
/*
 * Samples by perf events. Each round takes the records of all rings that were written before it, in
 * the order of time: what they say of threads and maps is noted, samples are walked as they lie in
 * the ring, and what is new of a stack is written. No copy of a stack is kept.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/thread_list.h"
#include "host/profile/perf_event.h"
#include "host/profile/record_kernel.h"
#include "host/profile/record_wakers.h"
#include "host/profile/recording.h"

/* Bytes of the stack that a sample copies at most: as many as a record has room for. */
#define MAX_STACK 65528u

/* Bytes of a ring at most and at least, and the samples that it holds. */
#define MAX_RING     ((size_t)8 << 20)
#define MIN_RING     ((size_t)1 << 17)
#define RING_SAMPLES 16

/* Milliseconds between two rounds at most. */
#define ROUND_MS 10

/*
 * Reading the frames of scripts takes one part of so many of a processor, at most: the threads are
 * looked at less often, then. A look is good for the samples of so many ns at least and at most.
 */
#define SCRIPT_SHARE 25
#define SCRIPT_LEAST 1000000
#define SCRIPT_MOST  100000000

/* The same of a frequency that is low: then the rounds would be most of what recording costs. */
#define SLOW_FREQUENCY 100
#define SLOW_ROUND_MS  20

/* Descriptors that looking at processes needs beside the events. */
#define SPARE_DESCRIPTORS 16

/*
 * Bytes of the stack that a sample of a switch copies at most: threads may switch so often that
 * more do not fit in the ring.
 */
#define LEAVE_STACK 8192u

/* A sample of a switch away from the idle thread counts for so long, in ns. */
#define IDLE_LEAVE_NS 10000

/* The most that walking it counts for, in ns: more is what was read of a program, once. */
#define WALK_NS 100000

/* How long a switch takes at most, in ns: a thread may be sampled while it leaves its processor. */
#define SWITCH_NS 1000000

/* How long what is known of a thread is kept after its end, in ns: its last records come late. */
#define KEEP_ENDED 1000000000

/* The state of this method. */
struct perf {
	struct fathom_perf_setup setup;
	struct fathom_perf_ring *rings;
	struct fathom_perf_record *next; /* of each ring: its next record */
	bool *has_next;                  /* of each ring */
	struct pollfd *waited;           /* room for the rings that are waited for */
	uint32_t n_rings;
	size_t ring_size; /* bytes */
	struct {
		FATHOM_ARRAY_OF(struct fathom_perf_event);
	} events;
	struct fathom_u32_array ring_of; /* of each event */
	struct {
		FATHOM_ARRAY_OF(struct fathom_perf_event);
	} switches;                /* events of switches, where they are permitted */
	struct fathom_key_map ids; /* of @events; the numbers say nothing */
	bool is_sampling_switches;
	bool lacks_descriptors; /* for more than there is */
	struct fathom_record_wakers wakers;
	uint64_t *written; /* weights, of each ring */
	uint32_t *gaps;    /* of each ring: how often samples may be missing */
	struct fathom_record_kernel kernel;
	uint64_t period;   /* of the last sample */
	size_t most_open;  /* address spaces, at one time */
	uint32_t n_denied; /* threads that may not be observed */
	int32_t own_pid;
	int64_t script_pause; /* how long a look at a script is good, in ns; 0: there was none */
	int64_t script_wait;  /* likewise, in this round: as long on the average */
	uint32_t drawn;       /* the last number of those by chance */
	int64_t script_ns;    /* processor time that looks have taken in this round */
	bool has_lost;        /* samples, since the recording began */
	bool has_nice;        /* this thread hurries */
	int nice;             /* of it before, to be set again */
};

/*
 * Writes what was counted and no sample stands for. Where samples in the kernel are not permitted,
 * the thread was there if it is more than lies between two samples.
 */
static void write_rest(struct fathom_recording *r, struct fathom_record_thread *thread, uint64_t ns,
		       uint64_t weight)
{
	struct perf *p = r->state;
	const bool is_hidden = p->setup.is_kernel_hidden && !p->has_lost && weight > p->period;

	fathom_recording_write(r, thread, ns,
			       is_hidden ? FATHOM_PROFILE_KERNEL_HIDDEN : FATHOM_PROFILE_UNSAMPLED,
			       weight, NULL);
}

/*
 * Returns the weight of sample @s of a thread; *@ret_rest: what was counted before it, besides.
 * Where no sample is missing, a long time before it means that its timer came late: it was there
 * all the time.
 */
static uint64_t weigh(struct fathom_recording *r, const struct fathom_perf_record *s, uint32_t ring,
		      struct fathom_record_count *count, uint64_t *ret_rest)
{
	struct perf *p = r->state;
	uint64_t weight = s->sample.period;

	*ret_rest = 0;
	if (p->setup.has_counts) {
		const uint64_t all =
			s->sample.count > count->last ? s->sample.count - count->last : 0;
		const bool has_gap = p->setup.is_kernel_hidden || count->gaps != p->gaps[ring];

		weight = has_gap && all >= 2 * s->sample.period ? s->sample.period : all;
		*ret_rest = all - weight;
		count->last = s->sample.count;
		count->gaps = p->gaps[ring];
	}
	p->period = s->sample.period;
	count->written += weight + *ret_rest;
	p->written[ring] += weight + *ret_rest;
	return weight;
}

/* Samples switches from now on, or does so no more. */
static void sample_switches(struct fathom_recording *r, bool is_on)
{
	struct perf *p = r->state;
	const uint64_t before = (uint64_t)fathom_now_ns();

	p->is_sampling_switches = is_on;
	for (size_t i = 0; i < p->switches.n; i++) {
		if (is_on)
			fathom_perf_enable(&p->switches.items[i]);
		else
			fathom_perf_disable(&p->switches.items[i]);
	}
	fathom_record_waits_have_sampled(r, (uint64_t)fathom_now_ns() - before);
}

/* Walks sample @s of a thread that leaves its processor: its SWITCH record follows. */
static fathom_err take_leave(struct fathom_recording *r, const struct fathom_perf_record *s,
			     struct fathom_record_thread *thread, struct fathom_record_space *space)
{
	struct perf *p = r->state;
	const uint64_t before = (uint64_t)fathom_now_ns();
	uint64_t took;
	char reason[64];

	FATHOM_TRY(fathom_record_space_walk(space, s, &r->table, &thread->leave.stack));
	FATHOM_TRY(fathom_record_kernel_reason(&p->kernel, s, reason, sizeof reason,
					       &thread->leave.is_disk));
	FATHOM_TRY(fathom_record_reason(&r->table, reason, &thread->leave.reason));
	thread->leave.ns = s->ns;
	took = (uint64_t)fathom_now_ns() - before;
	fathom_record_waits_have_sampled(r, took < WALK_NS ? took : WALK_NS);
	/* Else a ring full of samples is walked, before the next round looks at the time. */
	if (!fathom_record_waits_may_sample(r, (uint64_t)fathom_now_ns(), true))
		sample_switches(r, false);
	return FATHOM_OK;
}

/*
 * Takes that @thread has left its processor at @ns, and its switch was sampled: what that took, the
 * event has counted, but not the thread's own clock. So it is no weight. Cycles are not known.
 */
static fathom_err discount_leave(struct fathom_recording *r, struct fathom_record_thread *thread,
				 uint64_t ns, uint32_t ring)
{
	struct perf *p = r->state;
	const uint64_t took = ns > thread->left ? ns - thread->left : 0;
	struct fathom_record_count *count;

	thread->left = 0;
	if (took > SWITCH_NS)
		return FATHOM_OK;
	fathom_record_waits_have_sampled(r, took);
	if (p->setup.is_cycles || p->setup.is_all)
		return FATHOM_OK;
	count = fathom_record_count_at(thread, ring);
	if (!count)
		return FATHOM_E_MEMORY;
	count->last += took;
	count->written += took;
	p->written[ring] += took;
	return FATHOM_OK;
}

/*
 * Returns whether @s is a sample of an event of switches. Where another recorder has one of the
 * same thread, both are made from one place, and the kernel (Linux 6.18) gives both the first one's
 * id: what is of no other event of ours is one of switches.
 */
static bool is_leave(const struct perf *p, const struct fathom_perf_record *s)
{
	return p->switches.n && fathom_key_map_find(&p->ids, s->sample.id) == FATHOM_KEY_NEW;
}

/* Looks at @thread, whose interpreter executes a script, unless it sleeps by now. */
static fathom_err look_at_script(struct fathom_recording *r, struct fathom_record_thread *thread,
				 struct fathom_record_space *space)
{
	const struct fathom_record_look look = { .may_stop = true, .is_watched = true };
	const int64_t before = fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct perf *p = r->state;
	struct fathom_record_sight sight = { .has_stack = false };

	/* A child of fork() may share the space of its parent. */
	if (!fathom_record_space_is_of(space, thread->pid))
		space = fathom_record_threads_own_space(&r->threads, thread->pid);
	if (!space)
		return FATHOM_E_MEMORY;
	if (!fathom_record_is_asleep(thread))
		FATHOM_TRY(fathom_record_look(space, thread->tid, look, &r->table, &sight));
	thread->script = sight.stack;
	thread->script_looked = fathom_now_ns();
	p->script_ns += fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	return FATHOM_OK;
}

/*
 * Takes the stack that @thread has now in place of *@stack, of sample @s, in which an interpreter
 * executes a script: what frames the script had then, nothing says any more. The thread is stopped
 * for that; several samples may have one look. The sample says how much time it is, and what the
 * kernel did if the thread stands at the same place. One that sleeps by now is left alone.
 */
static fathom_err take_script(struct fathom_recording *r, const struct fathom_perf_record *s,
			      struct fathom_record_thread *thread,
			      struct fathom_record_space *space, struct fathom_record_stack *stack)
{
	struct perf *p = r->state;
	const int64_t age = fathom_now_ns() - thread->script_looked;
	const int64_t good = thread->script.has_script ? p->script_wait : SCRIPT_LEAST;
	bool is_there;

	/* A process cannot stop its own threads. */
	if (age >= good && thread->pid != p->own_pid)
		FATHOM_TRY(look_at_script(r, thread, space));
	if (!thread->script.has_script)
		r->result->scripts_missed++;
	is_there = !thread->script.has_script || thread->script.shape == stack->shape;
	if (thread->script.has_script)
		*stack = thread->script;
	return is_there ? fathom_record_kernel_walk(&p->kernel, s, &r->table, stack->node,
						    &stack->node)
			: FATHOM_OK;
}

static fathom_err take_sample(struct fathom_recording *r, const struct fathom_perf_record *s,
			      uint32_t ring)
{
	struct perf *p = r->state;
	struct fathom_record_thread *thread;
	struct fathom_record_stack stack;
	struct fathom_record_space *space;
	struct fathom_record_count *count;
	uint64_t weight;
	uint64_t rest;

	if (s->pid <= 0 || s->tid <= 0) {
		/* Of a processor that was idle, nothing says how long it took. */
		if (is_leave(p, s))
			fathom_record_waits_have_sampled(r, IDLE_LEAVE_NS);
		return FATHOM_OK;
	}
	thread = fathom_record_thread_at(&r->threads, s->pid, s->tid);
	space = fathom_record_threads_space(&r->threads, s->pid);
	count = thread ? fathom_record_count_at(thread, ring) : NULL;
	if (!space || !count)
		return FATHOM_E_MEMORY;
	/* It has a processor, whatever was lost; or it is on its way out. */
	if (thread->wait.is_assumed)
		thread->wait.began = 0;
	if (s->ns > thread->wait.began + SWITCH_NS)
		FATHOM_TRY(fathom_record_wait_end(r, thread, s->ns));
	if (is_leave(p, s)) {
		thread->left = s->ns;
		return p->is_sampling_switches && !thread->is_kernel
			       ? take_leave(r, s, thread, space)
			       : FATHOM_OK;
	}
	FATHOM_TRY(fathom_record_space_walk(space, s, &r->table, &stack));
	if (stack.has_runtime)
		FATHOM_TRY(take_script(r, s, thread, space, &stack));
	else
		FATHOM_TRY(fathom_record_kernel_walk(&p->kernel, s, &r->table, stack.node,
						     &stack.node));
	weight = weigh(r, s, ring, count, &rest);
	write_rest(r, thread, s->ns, rest);
	fathom_recording_write(r, thread, s->ns, FATHOM_PROFILE_SAMPLED, weight, &stack);
	return FATHOM_OK;
}

/* Takes the count of a thread that has ended. */
static fathom_err take_count(struct fathom_recording *r, const struct fathom_perf_record *record,
			     uint32_t ring)
{
	struct perf *p = r->state;
	struct fathom_record_thread *thread;
	struct fathom_record_count *count;

	if (record->pid <= 0 || record->tid <= 0)
		return FATHOM_OK;
	thread = fathom_record_thread_at(&r->threads, record->pid, record->tid);
	count = thread ? fathom_record_count_at(thread, ring) : NULL;
	if (!count)
		return FATHOM_E_MEMORY;
	if (record->count > count->written) {
		const uint64_t rest = record->count - count->written;

		write_rest(r, thread, record->ns, rest);
		count->written += rest;
		p->written[ring] += rest;
	}
	return FATHOM_OK;
}

/* Takes that a thread has left a processor, or got one. */
static fathom_err take_switch(struct fathom_recording *r, const struct fathom_perf_record *s,
			      uint32_t ring)
{
	struct fathom_record_thread *thread;

	/* A thread that has ended has no numbers any more. */
	if (s->pid <= 0 || s->tid <= 0)
		return FATHOM_OK;
	thread = fathom_record_thread_at(&r->threads, s->pid, s->tid);
	if (!thread)
		return FATHOM_E_MEMORY;
	if (!(s->misc & PERF_RECORD_MISC_SWITCH_OUT))
		return fathom_record_wait_end(r, thread, s->ns);
	/* A processor's event sees it leave for the last time after its end. */
	if (thread->ended)
		return FATHOM_OK;
	if (thread->left)
		FATHOM_TRY(discount_leave(r, thread, s->ns, ring));
	/* It got a processor since, and that was lost: when it was woken, at the soonest. */
	if (thread->wait.woken)
		FATHOM_TRY(fathom_record_wait_end(r, thread, thread->wait.woken));
	if (thread->wait.began && !thread->wait.is_assumed)
		return FATHOM_OK;
	return fathom_record_wait_begin(r, thread, s->ns,
					s->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
						? FATHOM_PROFILE_RUNNABLE
						: FATHOM_PROFILE_WAITING);
}

/* Takes what is told of threads; one that is new waits for a processor. */
static fathom_err take_thread(struct fathom_recording *r, const struct fathom_perf_record *record)
{
	struct fathom_record_thread *thread;

	FATHOM_TRY(fathom_record_threads_take(&r->threads, record));
	if (!r->has_waits || (record->type != PERF_RECORD_FORK && record->type != PERF_RECORD_EXIT))
		return FATHOM_OK;
	thread = fathom_record_thread_find(&r->threads, record->pid, record->tid);
	if (!thread)
		return FATHOM_OK;
	return record->type == PERF_RECORD_EXIT
		       ? fathom_record_wait_last(r, thread, record->ns)
		       : fathom_record_wait_begin(r, thread, record->ns, FATHOM_PROFILE_RUNNABLE);
}

static fathom_err take_record(struct fathom_recording *r, const struct fathom_perf_record *record,
			      uint32_t ring)
{
	struct perf *p = r->state;

	switch (record->type) {
	case PERF_RECORD_SWITCH:
		return take_switch(r, record, ring);
	case PERF_RECORD_SAMPLE:
		return take_sample(r, record, ring);
	case FATHOM_PERF_WAKING:
		return fathom_record_wakers_take(r, &p->wakers, record);
	case PERF_RECORD_READ:
		return take_count(r, record, ring);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		p->has_lost = true;
		p->gaps[ring]++;
		r->result->lost += record->lost;
		fathom_profile_write_lost(&r->writer, fathom_recording_since(r, record->ns),
					  record->lost);
		return FATHOM_OK;
	case PERF_RECORD_THROTTLE:
		p->gaps[ring]++;
		r->result->throttled++;
		fathom_profile_write_throttled(&r->writer, fathom_recording_since(r, record->ns));
		return FATHOM_OK;
	default:
		return take_thread(r, record);
	}
}

/*
 * Returns how long looks are good that took @ns, and as much on the thread that stops others, after
 * some that were good for @last. The first ones read what is known from then on: they count little.
 */
static int64_t script_pause(int64_t ns, int64_t last)
{
	const int64_t pause = SCRIPT_SHARE * 2 * ns;
	const int64_t most = 2 * last < SCRIPT_MOST ? 2 * last : SCRIPT_MOST;

	return pause < SCRIPT_LEAST || most < SCRIPT_LEAST ? SCRIPT_LEAST
	       : pause > most                              ? most
							   : pause;
}

/*
 * Returns from half of @pause to one and a half, by chance: what a program does again and again may
 * take as long (a linear congruential generator: Numerical Recipes in C, section 7.1).
 */
static int64_t by_chance(struct perf *p, int64_t pause)
{
	p->drawn = p->drawn * 1664525 + 1013904223;
	return pause / 2 + (int64_t)((uint64_t)pause * (p->drawn >> 16) >> 16);
}

/* Takes the records of all rings that are not later than @until, in the order of time. */
static fathom_err take_round(struct fathom_recording *r, uint64_t until)
{
	struct perf *p = r->state;
	struct fathom_perf_record *next = p->next;
	bool *has = p->has_next;
	fathom_err err = FATHOM_OK;

	p->script_ns = 0;

	for (uint32_t i = 0; i < p->n_rings; i++) {
		fathom_perf_ring_look(&p->rings[i]);
		has[i] = fathom_perf_ring_peek(&p->rings[i], &p->setup, &next[i]);
	}
	while (!err) {
		uint32_t first = p->n_rings;

		for (uint32_t i = 0; i < p->n_rings; i++)
			if (has[i] && next[i].ns <= until &&
			    (first == p->n_rings || next[i].ns < next[first].ns))
				first = i;
		if (first == p->n_rings)
			break;
		err = take_record(r, &next[first], first);
		fathom_perf_ring_pass(&p->rings[first]);
		has[first] = fathom_perf_ring_peek(&p->rings[first], &p->setup, &next[first]);
	}
	if (p->script_ns)
		p->script_pause = script_pause(p->script_ns, p->script_pause);
	p->script_wait = by_chance(p, p->script_pause);
	return err;
}

/* Closes the events from number @first on. */
static void close_events_from(struct perf *p, size_t first)
{
	for (size_t i = first; i < p->events.n; i++)
		close(p->events.items[i].fd);
	p->events.n = p->ring_of.n = first;
}

/* Closes the last @n events of switches. */
static void close_switches(struct perf *p, size_t n)
{
	while (n--)
		close(p->switches.items[--p->switches.n].fd);
}

/* Closes all events and rings. */
static void close_events(struct perf *p)
{
	close_switches(p, p->switches.n);
	fathom_record_wakers_deinit(&p->wakers);
	p->setup.waking_ids = NULL;
	for (uint32_t i = 0; i < p->n_rings; i++)
		fathom_perf_ring_deinit(&p->rings[i]);
	close_events_from(p, 0);
}

/* Opens the event of thread @tid on the processors, until one fails. */
static fathom_err open_everywhere(struct perf *p, int32_t tid, struct fathom_errinfo *reterr)
{
	const size_t first = p->events.n;

	for (uint32_t i = 0; i < p->n_rings; i++) {
		struct fathom_perf_event event;
		const fathom_err err = fathom_perf_open(&p->setup, &p->rings[i], p->ring_size, tid,
							&event, reterr);
		uint32_t *number;

		/* A processor may be off. */
		if (err == FATHOM_E_UNSUPPORTED && p->events.n > first)
			continue;
		if (err)
			return err;
		number = fathom_key_map_at(&p->ids, event.id);
		if (!number || !fathom_array_room(&p->events, 1) ||
		    !fathom_array_push(&p->ring_of, i)) {
			close(event.fd);
			return fathom_fail_memory(reterr);
		}
		*number = 1;
		(void)fathom_array_push(&p->events, event);
	}
	return FATHOM_OK;
}

/* Opens the event of thread @tid on all processors, or on none. */
static fathom_err open_thread(struct perf *p, int32_t tid, struct fathom_errinfo *reterr)
{
	const size_t first = p->events.n;
	const fathom_err err = open_everywhere(p, tid, reterr);

	/* The rings are those of the first thread. */
	if (err && first)
		close_events_from(p, first);
	else if (err)
		close_events(p);
	return err;
}

/* Returns whether the kernel has denied what was tried. */
static bool is_denied(fathom_err err, const struct fathom_errinfo *info)
{
	return err == FATHOM_E_OS && (info->os_errno == EACCES || info->os_errno == EPERM);
}

/* Returns whether @err may be of a setup that this kernel or user does not have. */
static bool is_of_setup(fathom_err err, const struct fathom_errinfo *info)
{
	return err == FATHOM_E_UNSUPPORTED || is_denied(err, info);
}

/* Opens the event of thread @tid with the largest rings that the user may have. */
static fathom_err open_rings(struct perf *p, int32_t tid, struct fathom_errinfo *info)
{
	fathom_err err = FATHOM_E_LIMIT;

	for (size_t size = MAX_RING; size >= MIN_RING && err == FATHOM_E_LIMIT; size /= 2) {
		p->ring_size = size;
		p->setup.stack_size =
			(uint32_t)(size / RING_SAMPLES < MAX_STACK ? size / RING_SAMPLES
								   : MAX_STACK);
		err = open_thread(p, tid, info);
		if (info->os_errno == EMFILE || info->os_errno == ENFILE)
			break;
	}
	return err;
}

/*
 * Opens the event of thread @tid with the best setup that there is: with the kernel's stacks, by
 * cycles, with counts and build-ids.
 */
static fathom_err open_first(struct fathom_recording *r, int32_t tid, struct fathom_errinfo *reterr)
{
	struct perf *p = r->state;
	const uint32_t event = r->options.event;
	struct fathom_errinfo info = { 0 };
	fathom_err err = FATHOM_E_UNSUPPORTED;

	for (unsigned lack = 0; lack < 16 && err; lack++) {
		p->setup.is_kernel_hidden = lack & 8;
		p->setup.is_cycles = !(lack & 4);
		p->setup.has_counts = !(lack & 2);
		p->setup.has_build_ids = !(lack & 1);
		/* The counts of a processor are of no thread. */
		if (r->is_all && p->setup.has_counts)
			continue;
		/* Cycles in the kernel are not counted where samples there are not permitted. */
		if (p->setup.is_cycles ? event == FATHOM_PROFILE_EVENT_TASK_CLOCK ||
						 (!event && p->setup.is_kernel_hidden)
				       : event == FATHOM_PROFILE_EVENT_CYCLES)
			continue;
		err = open_rings(p, tid, &info);
		if (err && !is_of_setup(err, &info))
			break;
	}
	if (err && reterr) {
		*reterr = info;
		if (is_of_setup(err, &info))
			reterr->what = err == FATHOM_E_OS
					       ? "perf events are not permitted to this user "
						 "(kernel.perf_event_paranoid, or a container's "
						 "filter of system calls)"
					       : "this kernel or machine does not count the event";
	}
	return err;
}

/*
 * Opens an event of switches beside each event, where the kernel's stacks are permitted: as many as
 * descriptors are left for. It is no loss if some are not there: waits are looked at from outside.
 */
static fathom_err open_switches(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	struct perf *p = r->state;
	struct fathom_perf_setup setup = p->setup;
	fathom_err err = FATHOM_OK;

	setup.is_of_switches = true;
	setup.stack_size = setup.stack_size < LEAVE_STACK ? setup.stack_size : LEAVE_STACK;
	if (!r->has_waits || setup.is_kernel_hidden)
		return FATHOM_OK;
	for (size_t i = 0; i < p->events.n && err != FATHOM_E_LIMIT; i++) {
		struct fathom_perf_event event;

		err = fathom_perf_open(&setup, &p->rings[p->ring_of.items[i]], p->ring_size,
				       p->events.items[i].tid, &event, NULL);
		if (err)
			continue;
		if (!fathom_array_push(&p->switches, event)) {
			close(event.fd);
			return fathom_fail_memory(reterr);
		}
	}
	p->lacks_descriptors = err == FATHOM_E_LIMIT;
	if (p->lacks_descriptors)
		close_switches(p, p->switches.n < SPARE_DESCRIPTORS ? p->switches.n
								    : SPARE_DESCRIPTORS);
	p->is_sampling_switches = p->switches.n != 0;
	/* Samples of switches would pay for it, and could be no more of a short recording. */
	return p->is_sampling_switches ? fathom_record_kernel_prepare(&p->kernel) : FATHOM_OK;
}

/*
 * Closes the events of the last threads, but not of the first one, until as many descriptors are
 * free as looking at processes needs; returns of how many threads.
 */
static uint32_t leave_descriptors(struct perf *p)
{
	const struct fathom_perf_event *e = p->events.items;
	size_t n = p->events.n;
	uint32_t n_threads = 0;

	while (p->events.n - n < SPARE_DESCRIPTORS) {
		size_t first = n - 1;

		while (first && e[first - 1].tid == e[n - 1].tid)
			first--;
		if (!first)
			break;
		n = first;
		n_threads++;
	}
	close_events_from(p, n);
	return n_threads;
}

/* Threads of a process that is attached to. */
struct attaching {
	struct fathom_recording *r;
	struct perf *perf;
	struct fathom_errinfo *reterr;
	struct fathom_key_map seen;
	int32_t pid;
	uint32_t n_new;
	uint32_t n_open;
	fathom_err err;
};

static bool attach_thread(void *data, pid_t tid)
{
	struct attaching *a = data;
	uint32_t *seen = fathom_key_map_at(&a->seen, (uint32_t)tid);
	fathom_err err;

	if (!seen) {
		a->err = fathom_fail_memory(a->reterr);
		return false;
	}
	if (*seen != FATHOM_KEY_NEW)
		return true;
	*seen = 1;
	err = a->perf->events.n ? open_thread(a->perf, tid, a->reterr)
				: open_first(a->r, tid, a->reterr);
	/* A thread may have ended meanwhile. */
	if (err == FATHOM_E_NOT_FOUND)
		return true;
	a->err = err;
	a->n_new++;
	a->n_open += !err;
	if (!err && !fathom_record_thread_at(&a->r->threads, a->pid, tid))
		a->err = fathom_fail_memory(a->reterr);
	return !a->err;
}

/* Opens the events of all threads of process @pid. */
static fathom_err attach(struct fathom_recording *r, int32_t pid, struct fathom_errinfo *reterr)
{
	struct perf *p = r->state;
	struct attaching a = { .r = r, .perf = p, .reterr = reterr, .pid = pid };
	const size_t before = p->events.n;
	size_t n_threads;
	int tasks = fathom_threads_open(pid);

	if (tasks < 0)
		return fathom_recording_no_process(pid, reterr);
	/* Threads that were started before their parent was seen are found by the next look. */
	do {
		a.n_new = 0;
		(void)fathom_threads_each(tasks, attach_thread, &a);
	} while (a.n_new && !a.err);
	n_threads = fathom_threads_count(tasks);
	close(tasks);
	fathom_key_map_deinit(&a.seen);
	if (a.err == FATHOM_E_LIMIT && p->events.n) {
		r->result->n_left_out +=
			(uint32_t)(n_threads > a.n_open ? n_threads - a.n_open : 0);
		r->result->n_left_out += leave_descriptors(p);
		return FATHOM_OK;
	}
	/* One process that may not be observed is no reason to observe no other so. */
	if (is_denied(a.err, reterr)) {
		p->n_denied += (uint32_t)(n_threads > a.n_open ? n_threads - a.n_open : 0);
		return FATHOM_OK;
	}
	if (!a.err && p->events.n == before)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", (uint64_t)pid,
				   "the process has ended");
	return a.err;
}

/* Attaches to all processes but those that may not be observed, unless these are all. */
static fathom_err attach_all(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	struct perf *p = r->state;

	for (size_t i = 0; i < r->options.n_pids; i++)
		FATHOM_TRY(attach(r, r->options.pids[i], reterr));
	/* The last one that was denied has filled *@reterr. */
	if (!p->events.n)
		return FATHOM_E_OS;
	r->result->n_left_out += p->n_denied;
	return FATHOM_OK;
}

/* Waits for records, for a round at most. */
static void wait_round(struct fathom_recording *r)
{
	struct perf *p = r->state;
	struct pollfd *fds = p->waited;
	const int most = r->frequency <= SLOW_FREQUENCY ? SLOW_ROUND_MS : ROUND_MS;
	const int64_t due = 1000000 * (int64_t)fathom_record_waits_due_ms(r, most);
	/* The sooner after a sample its thread is looked at, the better. */
	const int64_t ns = p->script_pause && p->script_wait < due ? p->script_wait : due;
	const struct timespec wait = { .tv_nsec = (long)ns };
	nfds_t n = 0;

	for (uint32_t i = 0; i < p->n_rings; i++)
		if (p->rings[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = p->rings[i].fd, .events = POLLIN };
	/* An event whose threads have all ended reports that without end. */
	if (ppoll(fds, n, &wait, NULL) > 0) {
		bool is_full = false;

		for (nfds_t i = 0; i < n; i++)
			is_full |= (fds[i].revents & POLLIN) != 0;
		if (!is_full)
			(void)ppoll(NULL, 0, &wait, NULL);
	}
}

/* Writes what the events have counted and no thread's end has told. */
static fathom_err write_rests(struct fathom_recording *r)
{
	struct perf *p = r->state;
	const uint64_t ns = (uint64_t)fathom_now_ns();

	/* The events have counted what other threads ran, too. */
	if (r->is_all)
		return FATHOM_OK;
	for (uint32_t ring = 0; ring < p->n_rings; ring++) {
		uint64_t total = 0;
		uint64_t rest;

		for (size_t i = 0; i < p->events.n; i++) {
			struct fathom_perf_event *e = &p->events.items[i];

			if (p->ring_of.items[i] == ring && fathom_perf_read(e, &e->counted))
				total += e->counted;
		}
		rest = total > p->written[ring] ? total - p->written[ring] : 0;
		for (size_t i = 0; i < p->events.n && rest; i++) {
			const struct fathom_perf_event *e = &p->events.items[i];
			struct fathom_record_thread *thread;
			struct fathom_record_count *count;
			uint64_t own;

			if (p->ring_of.items[i] != ring)
				continue;
			thread = fathom_record_thread_at(&r->threads, r->first_pid, e->tid);
			count = thread ? fathom_record_count_at(thread, ring) : NULL;
			if (!count)
				return FATHOM_E_MEMORY;
			own = e->counted > count->written ? e->counted - count->written : 0;
			own = own < rest ? own : rest;
			write_rest(r, thread, ns, own);
			count->written += own;
			rest -= own;
		}
	}
	return FATHOM_OK;
}

/* Takes precedence over what is recorded, where that is permitted: a full ring loses samples. */
static fathom_err start(struct fathom_recording *r)
{
	struct perf *p = r->state;
	const bool is_attached = r->is_attached && !r->is_all;

	for (size_t i = 0; is_attached && i < p->events.n; i++)
		fathom_perf_enable(&p->events.items[i]);
	if (is_attached && p->switches.n)
		sample_switches(r, true);
	/* Threads without events, that were left out, tell nothing. */
	for (size_t i = 0; is_attached && r->has_waits && i < p->events.n; i++) {
		struct fathom_record_thread *thread =
			fathom_record_thread_known(&r->threads, p->events.items[i].tid);

		if (!thread || thread->wait.began)
			continue;
		FATHOM_TRY(fathom_record_wait_begin(r, thread, (uint64_t)r->began,
						    FATHOM_PROFILE_WAITING));
		thread->wait.is_assumed = true;
	}
	fathom_record_wakers_go_on(r, &p->wakers, (uint64_t)fathom_now_ns(), false);
	p->nice = getpriority(PRIO_PROCESS, 0);
	p->has_nice = true;
	(void)setpriority(PRIO_PROCESS, 0, -20);
	return FATHOM_OK;
}

static fathom_err take(struct fathom_recording *r, bool is_last)
{
	struct perf *p = r->state;
	uint64_t until;

	for (size_t i = 0; is_last && i < p->events.n; i++)
		fathom_perf_disable(&p->events.items[i]);
	until = (uint64_t)fathom_now_ns();
	if (p->switches.n && !p->is_sampling_switches && !is_last &&
	    fathom_record_waits_may_sample(r, until, false))
		sample_switches(r, true);
	fathom_record_wakers_go_on(r, &p->wakers, until, is_last);
	FATHOM_TRY(take_round(r, is_last ? UINT64_MAX : until));
	fathom_record_threads_close_spaces(&r->threads, p->most_open);
	FATHOM_TRY(is_last ? fathom_record_waits_finish(r, until)
			   : fathom_record_waits_keep_up(r, until));
	fathom_record_threads_forget(&r->threads, until - KEEP_ENDED);
	return FATHOM_OK;
}

/* Returns how many samples a second the kernel permits. */
static uint32_t most_samples(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	uint32_t most = UINT32_MAX;

	if (f && fscanf(f, "%" SCNu32, &most) != 1)
		most = UINT32_MAX;
	if (f)
		fclose(f);
	return most;
}

/* Takes the frequency that was asked for, which may be too high, or the highest that there is. */
static fathom_err choose_frequency(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	const uint32_t most = most_samples();

	if (r->frequency > most && r->options.frequency)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "the kernel permits fewer samples a second: its limit is "
				   "kernel.perf_event_max_sample_rate");
	r->frequency = r->frequency < most ? r->frequency : most;
	return FATHOM_OK;
}

/* Returns how many address spaces may be open: half of the descriptors are for them. */
static size_t most_spaces(void)
{
	struct rlimit limit;
	size_t most;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	most = (size_t)limit.rlim_cur / 2 / FATHOM_RECORD_SPACE_DESCRIPTORS;
	return most > 4 ? most : 4;
}

static fathom_err begin(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);
	struct perf *p = calloc(1, sizeof *p);
	fathom_err err = FATHOM_OK;

	r->state = p;
	if (!p)
		return fathom_fail_memory(reterr);
	p->n_rings = n > 0 ? (uint32_t)n : 1;
	p->own_pid = getpid();
	p->rings = calloc(p->n_rings, sizeof *p->rings);
	p->written = calloc(p->n_rings, sizeof *p->written);
	p->next = calloc(p->n_rings, sizeof *p->next);
	p->has_next = calloc(p->n_rings, sizeof *p->has_next);
	p->waited = calloc(p->n_rings, sizeof *p->waited);
	p->gaps = calloc(p->n_rings, sizeof *p->gaps);
	if (!p->rings || !p->written || !p->gaps || !p->next || !p->has_next || !p->waited)
		return fathom_fail_memory(reterr);
	for (uint32_t i = 0; i < p->n_rings; i++)
		fathom_perf_ring_init(&p->rings[i], (int)i);
	p->kernel.session = r->session;
	p->most_open = most_spaces();
	FATHOM_TRY(choose_frequency(r, reterr));
	p->setup.frequency = r->frequency;
	p->setup.is_on_exec = !r->is_attached && !r->is_all;
	p->setup.is_all = r->is_all;
	p->setup.has_switches = r->has_waits;
	if (r->is_all)
		err = open_first(r, -1, reterr);
	else if (!r->is_attached)
		err = open_first(r, r->first_pid, reterr);
	else
		err = attach_all(r, reterr);
	r->is_cycles = p->setup.is_cycles;
	r->is_kernel_hidden = p->setup.is_kernel_hidden;
	err = err ? err : open_switches(r, reterr);
	if (!err && r->has_waits && !p->lacks_descriptors && !r->result->n_left_out &&
	    fathom_record_wakers_open(&p->wakers, p->rings, p->n_rings, p->ring_size, &p->setup))
		err = fathom_fail_memory(reterr);
	r->has_wakers = p->wakers.events.n != 0;
	/* A program is seen from its exec() on, which no event of a processor waits for. */
	for (size_t i = 0; !err && r->is_all && i < p->events.n; i++)
		fathom_perf_enable(&p->events.items[i]);
	if (!err && r->is_all && p->switches.n)
		sample_switches(r, true);
	return err;
}

static void free_perf(struct fathom_recording *r)
{
	struct perf *p = r->state;

	if (!p)
		return;
	if (p->has_nice)
		(void)setpriority(PRIO_PROCESS, 0, p->nice);
	if (p->rings)
		close_events(p);
	fathom_array_free(&p->events);
	fathom_array_free(&p->ring_of);
	fathom_array_free(&p->switches);
	fathom_key_map_deinit(&p->ids);
	fathom_record_kernel_deinit(&p->kernel);
	free(p->rings);
	free(p->written);
	free(p->next);
	free(p->has_next);
	free(p->waited);
	free(p->gaps);
	free(p);
}

const struct fathom_record_method fathom_record_perf = {
	.name = "perf-events",
	.number = FATHOM_PROFILE_METHOD_PERF,
	.frequency = 997,
	.begin = begin,
	.start = start,
	.wait = wait_round,
	.take = take,
	.finish = write_rests,
	.free = free_perf,
};
