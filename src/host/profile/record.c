/* SPDX-License-Identifier: MIT */
/*
 * Records profiles by perf events. Each round takes the records of all rings that were written
 * before it, in the order of time: what they say of threads and maps is noted, samples are walked
 * as they lie in the ring, and what is new of a stack is written. No copy of a stack is kept.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fathom/profile.h"
#include "host/base/clock.h"
#include "host/base/option_struct.h"
#include "host/base/thread_list.h"
#include "host/profile/profile_format.h"
#include "host/profile/record_kernel.h"
#include "host/profile/record_threads.h"
#include "host/tracer/held_child.h"

#define DEFAULT_FREQUENCY 997

/* The most samples a second. */
#define MAX_FREQUENCY 100000

/* Bytes of the stack that a sample copies at most: as many as a record has room for. */
#define MAX_STACK 65528u

/* Bytes of a ring, where so many are permitted, and at least; it holds so many of the longest
 * samples. */
#define MAX_RING     ((size_t)8 << 20)
#define MIN_RING     ((size_t)1 << 17)
#define RING_SAMPLES 16

/* Milliseconds between two rounds at most. */
#define ROUND_MS 10

/* How long what is known of a thread is kept after its end, in ns: its last records come late. */
#define KEEP_ENDED 1000000000

struct recording {
	struct fathom_record_options options;
	struct fathom_record_result *result;
	struct fathom *session;
	struct fathom_perf_setup setup;
	struct fathom_perf_ring *rings;
	uint32_t n_rings;
	size_t ring_size; /* bytes */
	struct {
		FATHOM_ARRAY_OF(struct fathom_perf_event);
	} events;
	struct fathom_u32_array ring_of; /* of each event */
	uint64_t *written;               /* weights, of each ring */
	uint32_t *gaps;                  /* of each ring: how often samples may be missing */
	struct fathom_profile_writer writer;
	struct fathom_stack_table table;
	struct fathom_record_threads threads;
	struct fathom_record_kernel kernel;
	int32_t first_pid; /* the program, or the first process */
	int64_t began;     /* monotonic */
	int64_t flushed;
	int nice;        /* of this thread before, to be set again */
	uint64_t period; /* of the last sample */
	bool has_lost;   /* samples, since the recording began */
	bool is_attached;
	bool has_exited; /* the program was waited for */
};

/* Returns the time of a record since the recording began. */
static uint64_t since_begin(const struct recording *r, uint64_t ns)
{
	return ns > (uint64_t)r->began ? ns - (uint64_t)r->began : 0;
}

/* Returns the number of @thread in the profile; UINT32_MAX without memory. */
static uint32_t number_of(struct recording *r, struct fathom_record_thread *thread, uint64_t ns)
{
	const struct fathom_profile_thread t = { .pid = thread->pid,
						 .tid = thread->tid,
						 .parent = thread->parent,
						 .ns = since_begin(r, ns),
						 .name = thread->name };

	if (thread->number == UINT32_MAX)
		thread->number = fathom_profile_write_thread(&r->writer, &t);
	return thread->number;
}

/* Writes a sample of @weight, if that is not 0. */
static void write_sample(struct recording *r, struct fathom_record_thread *thread, uint64_t ns,
			 enum fathom_profile_part part, uint64_t weight,
			 const struct fathom_record_stack *stack)
{
	const struct fathom_profile_sample s = { .ns = since_begin(r, ns),
						 .weight = weight,
						 .thread = number_of(r, thread, ns),
						 .node = stack ? stack->node : 0,
						 .part = (uint8_t)part,
						 .stop = stack ? stack->stop : FATHOM_STOP_NONE };

	if (!weight)
		return;
	fathom_profile_write_sample(&r->writer, &s);
	r->result->weight += weight;
	r->result->hidden += part == FATHOM_PROFILE_SAMPLED ? 0 : weight;
}

/*
 * Writes what was counted and no sample stands for. Where samples in the kernel are not permitted,
 * the thread was there if it is more than lies between two samples.
 */
static void write_rest(struct recording *r, struct fathom_record_thread *thread, uint64_t ns,
		       uint64_t weight)
{
	const bool is_hidden = r->setup.is_kernel_hidden && !r->has_lost && weight > r->period;

	write_sample(r, thread, ns,
		     is_hidden ? FATHOM_PROFILE_KERNEL_HIDDEN : FATHOM_PROFILE_UNSAMPLED, weight,
		     NULL);
}

/*
 * Returns the weight of sample @s of a thread; *@ret_rest: what was counted before it, besides.
 * Where no sample is missing, a long time before it means that its timer came late: it was there
 * all the time.
 */
static uint64_t weigh(struct recording *r, const struct fathom_perf_record *s, uint32_t ring,
		      struct fathom_record_count *count, uint64_t *ret_rest)
{
	uint64_t weight = s->sample.period;

	*ret_rest = 0;
	if (r->setup.has_counts) {
		const uint64_t all =
			s->sample.count > count->last ? s->sample.count - count->last : 0;
		const bool has_gap = r->setup.is_kernel_hidden || count->gaps != r->gaps[ring];

		weight = has_gap && all >= 2 * s->sample.period ? s->sample.period : all;
		*ret_rest = all - weight;
		count->last = s->sample.count;
		count->gaps = r->gaps[ring];
	}
	r->period = s->sample.period;
	count->written += weight + *ret_rest;
	r->written[ring] += weight + *ret_rest;
	return weight;
}

static fathom_err take_sample(struct recording *r, const struct fathom_perf_record *s,
			      uint32_t ring)
{
	struct fathom_record_thread *thread;
	struct fathom_record_stack stack;
	struct fathom_record_space *space;
	struct fathom_record_count *count;
	uint64_t weight;
	uint64_t rest;

	if (s->pid <= 0 || s->tid <= 0)
		return FATHOM_OK;
	thread = fathom_record_thread_at(&r->threads, s->pid, s->tid);
	space = fathom_record_threads_space(&r->threads, s->pid);
	count = thread ? fathom_record_count_at(thread, ring) : NULL;
	if (!space || !count)
		return FATHOM_E_MEMORY;
	FATHOM_TRY(fathom_record_space_walk(space, s, &r->table, &stack));
	FATHOM_TRY(fathom_record_kernel_walk(&r->kernel, s, &r->table, stack.node, &stack.node));
	weight = weigh(r, s, ring, count, &rest);
	write_rest(r, thread, s->ns, rest);
	write_sample(r, thread, s->ns, FATHOM_PROFILE_SAMPLED, weight, &stack);
	r->result->n_samples++;
	r->result->n_whole += stack.stop == FATHOM_STOP_ENTRY;
	return FATHOM_OK;
}

/* Takes the count of a thread that has ended. */
static fathom_err take_count(struct recording *r, const struct fathom_perf_record *record,
			     uint32_t ring)
{
	struct fathom_record_thread *thread;
	struct fathom_record_count *count;

	if (record->pid <= 0 || record->tid <= 0)
		return FATHOM_OK;
	thread = fathom_record_thread_at(&r->threads, record->pid, record->tid);
	count = thread ? fathom_record_count_at(thread, ring) : NULL;
	if (!count)
		return FATHOM_E_MEMORY;
	if (record->read.count > count->written) {
		const uint64_t rest = record->read.count - count->written;

		write_rest(r, thread, record->ns, rest);
		count->written += rest;
		r->written[ring] += rest;
	}
	return FATHOM_OK;
}

static fathom_err take_record(struct recording *r, const struct fathom_perf_record *record,
			      uint32_t ring)
{
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		return take_sample(r, record, ring);
	case PERF_RECORD_READ:
		return take_count(r, record, ring);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		r->has_lost = true;
		r->gaps[ring]++;
		r->result->lost += record->lost;
		fathom_profile_write_lost(&r->writer, since_begin(r, record->ns), record->lost);
		return FATHOM_OK;
	case PERF_RECORD_THROTTLE:
		r->gaps[ring]++;
		r->result->throttled++;
		fathom_profile_write_throttled(&r->writer, since_begin(r, record->ns));
		return FATHOM_OK;
	default:
		return fathom_record_threads_take(&r->threads, record);
	}
}

/* Takes the records of all rings that are not later than @until, in the order of time. */
static fathom_err take_round(struct recording *r, uint64_t until)
{
	struct fathom_perf_record *next = calloc(r->n_rings, sizeof *next);
	bool *has = calloc(r->n_rings, sizeof *has);
	fathom_err err = next && has ? FATHOM_OK : FATHOM_E_MEMORY;

	for (uint32_t i = 0; !err && i < r->n_rings; i++) {
		fathom_perf_ring_look(&r->rings[i]);
		has[i] = fathom_perf_ring_peek(&r->rings[i], &r->setup, &next[i]);
	}
	while (!err) {
		uint32_t first = r->n_rings;

		for (uint32_t i = 0; i < r->n_rings; i++)
			if (has[i] && next[i].ns <= until &&
			    (first == r->n_rings || next[i].ns < next[first].ns))
				first = i;
		if (first == r->n_rings)
			break;
		err = take_record(r, &next[first], first);
		fathom_perf_ring_pass(&r->rings[first]);
		has[first] = fathom_perf_ring_peek(&r->rings[first], &r->setup, &next[first]);
	}
	free(next);
	free(has);
	return err;
}

/* Fails as writing has failed. */
static fathom_err fail_write(const struct recording *r, struct fathom_errinfo *reterr)
{
	if (r->writer.no_memory)
		return fathom_fail_memory(reterr);
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "the profile cannot be written");
	if (reterr)
		reterr->os_errno = r->writer.number;
	return FATHOM_E_OS;
}

/* Passes on what was written, once in a second or @now. */
static fathom_err flush(struct recording *r, bool now, struct fathom_errinfo *reterr)
{
	const int64_t ns = fathom_now_ns();

	if (!now && ns - r->flushed < 1000000000)
		return r->writer.has_failed || r->writer.no_memory ? fail_write(r, reterr)
								   : FATHOM_OK;
	r->flushed = ns;
	return fathom_profile_writer_flush(&r->writer) ? FATHOM_OK : fail_write(r, reterr);
}

/* Opens the event of thread @tid on all processors. */
static fathom_err open_thread(struct recording *r, int32_t tid, struct fathom_errinfo *reterr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_rings; i++) {
		struct fathom_perf_event event;
		const fathom_err err = fathom_perf_open(&r->setup, &r->rings[i], r->ring_size, tid,
							&event, reterr);

		/* A processor may be off. */
		if (err == FATHOM_E_UNSUPPORTED && n)
			continue;
		if (err)
			return err;
		n++;
		if (!fathom_array_room(&r->events, 1) || !fathom_array_push(&r->ring_of, i)) {
			close(event.fd);
			return fathom_fail_memory(reterr);
		}
		(void)fathom_array_push(&r->events, event);
	}
	return FATHOM_OK;
}

static void close_events(struct recording *r)
{
	for (uint32_t i = 0; i < r->n_rings; i++)
		fathom_perf_ring_deinit(&r->rings[i]);
	for (size_t i = 0; i < r->events.n; i++)
		close(r->events.items[i].fd);
	r->events.n = r->ring_of.n = 0;
}

/* Returns whether @err may be of a setup that this kernel or user does not have. */
static bool is_of_setup(fathom_err err, const struct fathom_errinfo *info)
{
	return err == FATHOM_E_UNSUPPORTED ||
	       (err == FATHOM_E_OS && (info->os_errno == EACCES || info->os_errno == EPERM));
}

/* Opens the event of thread @tid with the largest rings that the user may have. */
static fathom_err open_rings(struct recording *r, int32_t tid, struct fathom_errinfo *info)
{
	fathom_err err = FATHOM_E_LIMIT;

	for (size_t size = MAX_RING; size >= MIN_RING && err == FATHOM_E_LIMIT; size /= 2) {
		r->ring_size = size;
		r->setup.stack_size =
			(uint32_t)(size / RING_SAMPLES < MAX_STACK ? size / RING_SAMPLES
								   : MAX_STACK);
		err = open_thread(r, tid, info);
		if (err)
			close_events(r);
		if (info->os_errno == EMFILE || info->os_errno == ENFILE)
			break;
	}
	return err;
}

/*
 * Opens the event of thread @tid with the best setup that there is: with the kernel's stacks, by
 * cycles, with counts and build-ids.
 */
static fathom_err open_first(struct recording *r, int32_t tid, struct fathom_errinfo *reterr)
{
	const uint32_t event = r->options.event;
	struct fathom_errinfo info = { 0 };
	fathom_err err = FATHOM_E_UNSUPPORTED;

	for (unsigned lack = 0; lack < 16 && err; lack++) {
		r->setup.is_kernel_hidden = lack & 8;
		r->setup.is_cycles = !(lack & 4);
		r->setup.has_counts = !(lack & 2);
		r->setup.has_build_ids = !(lack & 1);
		/* Cycles in the kernel are not counted where samples there are not permitted. */
		if (r->setup.is_cycles ? event == FATHOM_PROFILE_EVENT_TASK_CLOCK ||
						 (!event && r->setup.is_kernel_hidden)
				       : event == FATHOM_PROFILE_EVENT_CYCLES)
			continue;
		err = open_rings(r, tid, &info);
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

/* Threads of a process that is attached to. */
struct attaching {
	struct recording *r;
	struct fathom_errinfo *reterr;
	struct fathom_key_map seen;
	int32_t pid;
	uint32_t n_new;
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
	err = a->r->events.n ? open_thread(a->r, tid, a->reterr) : open_first(a->r, tid, a->reterr);
	/* A thread may have ended meanwhile. */
	if (err == FATHOM_E_NOT_FOUND)
		return true;
	a->err = err;
	a->n_new++;
	if (!err && !fathom_record_thread_at(&a->r->threads, a->pid, tid))
		a->err = fathom_fail_memory(a->reterr);
	return !a->err;
}

/* Opens the events of all threads of process @pid. */
static fathom_err attach(struct recording *r, int32_t pid, struct fathom_errinfo *reterr)
{
	struct attaching a = { .r = r, .reterr = reterr, .pid = pid };
	const size_t before = r->events.n;
	int tasks = fathom_threads_open(pid);

	if (tasks < 0) {
		const int number = errno;

		(void)fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", (uint64_t)pid,
				  "there is no such process");
		if (reterr)
			reterr->os_errno = number == ENOENT ? 0 : number;
		return FATHOM_E_NOT_FOUND;
	}
	/* Threads that were started before their parent was seen are found by the next look. */
	do {
		a.n_new = 0;
		(void)fathom_threads_each(tasks, attach_thread, &a);
	} while (a.n_new && !a.err);
	close(tasks);
	fathom_key_map_deinit(&a.seen);
	if (a.err == FATHOM_E_LIMIT && r->events.n > before)
		return FATHOM_OK;
	if (!a.err && r->events.n == before)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", (uint64_t)pid,
				   "the process has ended");
	return a.err;
}

static void about_number(struct recording *r, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	fathom_profile_write_about(&r->writer, key, text);
}

/* Writes the program with its arguments, or the processes. */
static void about_command(struct recording *r)
{
	struct fathom_bytes_array text = { 0 };
	bool is_whole = true;

	for (const char *const *a = r->options.argv; a && *a && is_whole; a++) {
		const size_t n = strlen(*a);

		is_whole = fathom_array_room(&text, n + 1);
		if (is_whole) {
			memcpy(text.items + text.n, *a, n);
			text.n += n;
			text.items[text.n++] = ' ';
		}
	}
	for (size_t i = 0; !r->options.argv && i < r->options.n_pids && is_whole; i++) {
		is_whole = fathom_array_room(&text, 16);
		if (is_whole)
			text.n += (size_t)snprintf(text.items + text.n, 16, "%s%d ", i ? "" : "-p ",
						   (int)r->options.pids[i]);
	}
	r->writer.no_memory |= !is_whole;
	if (is_whole && text.n) {
		text.items[text.n - 1] = '\0';
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_COMMAND, text.items);
	}
	fathom_array_free(&text);
}

static void write_head(struct recording *r)
{
	struct utsname name;

	fathom_profile_writer_begin(&r->writer, r->options.write, r->options.data);
	about_command(r);
	fathom_profile_write_about(&r->writer, FATHOM_ABOUT_EVENT,
				   r->setup.is_cycles ? "cycles" : "task-clock");
	fathom_profile_write_about(&r->writer, FATHOM_ABOUT_UNIT,
				   r->setup.is_cycles ? "cycles" : "ns");
	fathom_profile_write_about(&r->writer, FATHOM_ABOUT_METHOD, "perf-events");
	if (!uname(&name)) {
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_MACHINE, name.machine);
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_KERNEL, name.release);
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_HOST, name.nodename);
	}
	about_number(r, FATHOM_ABOUT_FREQUENCY, r->setup.frequency);
	about_number(r, FATHOM_ABOUT_STARTED, (uint64_t)fathom_clock_ns(CLOCK_REALTIME));
	about_number(r, FATHOM_ABOUT_BEGAN, (uint64_t)r->began);
	if (r->setup.is_kernel_hidden)
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_HIDDEN, "1");
}

/* Waits for records, for a round at most. */
static void wait_round(struct recording *r)
{
	struct pollfd *fds = calloc(r->n_rings, sizeof *fds);
	nfds_t n = 0;

	for (uint32_t i = 0; fds && i < r->n_rings; i++)
		if (r->rings[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = r->rings[i].fd, .events = POLLIN };
	/* An event whose threads have all ended reports that without end. */
	if (poll(fds, n, ROUND_MS) > 0) {
		bool is_full = false;

		for (nfds_t i = 0; i < n; i++)
			is_full |= (fds[i].revents & POLLIN) != 0;
		if (!is_full)
			(void)poll(NULL, 0, ROUND_MS);
	}
	free(fds);
}

/* Returns whether the program, or all processes, have ended. */
static bool has_ended(struct recording *r)
{
	if (!r->is_attached) {
		int status = 0;

		if (!r->has_exited && waitpid(r->first_pid, &status, WNOHANG) == r->first_pid) {
			r->has_exited = true;
			r->result->status = status;
		}
		return r->has_exited;
	}
	for (size_t i = 0; i < r->options.n_pids; i++) {
		const int tasks = fathom_threads_open(r->options.pids[i]);

		if (tasks >= 0)
			close(tasks);
		if (tasks >= 0)
			return false;
	}
	return true;
}

/* Returns whether the recording is to end. */
static bool is_over(struct recording *r)
{
	const uint64_t ns = (uint64_t)(fathom_now_ns() - r->began);

	if (r->options.max_bytes && r->writer.bytes + r->writer.out.n >= r->options.max_bytes)
		r->result->is_cut = 1;
	return has_ended(r) || r->result->is_cut ||
	       (r->options.for_ns && ns >= r->options.for_ns) ||
	       (r->options.is_done && r->options.is_done(r->options.data));
}

/* Writes what the events have counted and no thread's end has told. */
static fathom_err write_rests(struct recording *r)
{
	const uint64_t ns = (uint64_t)fathom_now_ns();

	for (uint32_t ring = 0; ring < r->n_rings; ring++) {
		uint64_t total = 0;
		uint64_t rest;

		for (size_t i = 0; i < r->events.n; i++) {
			struct fathom_perf_event *e = &r->events.items[i];

			if (r->ring_of.items[i] == ring && fathom_perf_read(e, &e->counted))
				total += e->counted;
		}
		rest = total > r->written[ring] ? total - r->written[ring] : 0;
		for (size_t i = 0; i < r->events.n && rest; i++) {
			const struct fathom_perf_event *e = &r->events.items[i];
			struct fathom_record_thread *thread;
			struct fathom_record_count *count;
			uint64_t own;

			if (r->ring_of.items[i] != ring)
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
static void hurry(struct recording *r)
{
	r->nice = getpriority(PRIO_PROCESS, 0);
	(void)setpriority(PRIO_PROCESS, 0, -20);
}

/* Records until it is over. */
static fathom_err run_rounds(struct recording *r, struct fathom_errinfo *reterr)
{
	bool is_last = false;

	while (!is_last) {
		uint64_t until;

		wait_round(r);
		is_last = is_over(r);
		for (size_t i = 0; is_last && i < r->events.n; i++)
			fathom_perf_disable(&r->events.items[i]);
		until = (uint64_t)fathom_now_ns();
		if (take_round(r, is_last ? UINT64_MAX : until))
			return fathom_fail_memory(reterr);
		fathom_record_threads_forget(&r->threads, until - KEEP_ENDED);
		FATHOM_TRY(flush(r, false, reterr));
	}
	if (write_rests(r))
		return fathom_fail_memory(reterr);
	r->result->wall_ns = (uint64_t)(fathom_now_ns() - r->began);
	fathom_profile_write_end(&r->writer, r->result->wall_ns);
	return flush(r, true, reterr);
}

/* Starts the program, with its events. */
static fathom_err start_program(struct recording *r, struct fathom_held_child *child,
				struct fathom_errinfo *reterr)
{
	int number = 0;

	FATHOM_TRY(fathom_held_child_start(child, (char *const *)(uintptr_t)r->options.argv, NULL,
					   NULL, reterr));
	r->first_pid = child->pid;
	r->setup.is_on_exec = true;
	FATHOM_TRY(open_first(r, child->pid, reterr));
	r->began = fathom_now_ns();
	FATHOM_TRY(fathom_held_child_go(child, reterr));
	if (read(child->report, &number, sizeof number) == sizeof number) {
		(void)fathom_fail(reterr, number == ENOENT ? FATHOM_E_NOT_FOUND : FATHOM_E_OS, "",
				  0, "the program cannot be run");
		if (reterr)
			reterr->os_errno = number;
		return number == ENOENT ? FATHOM_E_NOT_FOUND : FATHOM_E_OS;
	}
	return FATHOM_OK;
}

/* Attaches to the processes. */
static fathom_err start_processes(struct recording *r, struct fathom_errinfo *reterr)
{
	r->is_attached = true;
	r->first_pid = r->options.pids[0];
	for (size_t i = 0; i < r->options.n_pids; i++)
		FATHOM_TRY(attach(r, r->options.pids[i], reterr));
	r->began = fathom_now_ns();
	for (size_t i = 0; i < r->events.n; i++)
		fathom_perf_enable(&r->events.items[i]);
	return FATHOM_OK;
}

static fathom_err prepare(struct recording *r, const struct fathom_record_options *options,
			  struct fathom_errinfo *reterr)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);
	struct fathom_record_options *o = &r->options;

	if (!options || !FATHOM_STRUCT_READ(options, o))
		return fathom_fail_options(reterr);
	if (!o->write || (o->argv ? !o->argv[0] || o->n_pids : !o->n_pids) ||
	    o->frequency > MAX_FREQUENCY || o->event > FATHOM_PROFILE_EVENT_CYCLES)
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "options of recording: a program or processes, and write, are "
				   "needed; at most 100,000 samples a second");
	r->setup.frequency = o->frequency ? o->frequency : DEFAULT_FREQUENCY;
	r->n_rings = n > 0 ? (uint32_t)n : 1;
	r->rings = calloc(r->n_rings, sizeof *r->rings);
	r->written = calloc(r->n_rings, sizeof *r->written);
	r->gaps = calloc(r->n_rings, sizeof *r->gaps);
	if (!r->rings || !r->written || !r->gaps)
		return fathom_fail_memory(reterr);
	for (uint32_t i = 0; i < r->n_rings; i++)
		fathom_perf_ring_init(&r->rings[i], (int)i);
	r->table.writer = &r->writer;
	r->threads.session = r->kernel.session = r->session;
	return FATHOM_OK;
}

static void deinit(struct recording *r)
{
	if (r->rings)
		close_events(r);
	fathom_array_free(&r->events);
	fathom_array_free(&r->ring_of);
	fathom_record_threads_deinit(&r->threads);
	fathom_record_kernel_deinit(&r->kernel);
	fathom_stack_table_deinit(&r->table);
	fathom_profile_writer_deinit(&r->writer);
	free(r->rings);
	free(r->written);
	free(r->gaps);
}

/* Waits for the program, which runs on when its recording has ended. */
static void wait_for_program(struct recording *r)
{
	int status = 0;

	if (r->is_attached || r->first_pid <= 0 || r->has_exited)
		return;
	while (waitpid(r->first_pid, &status, 0) < 0 && errno == EINTR)
		;
	r->result->status = status;
}

fathom_err fathom_record_run(struct fathom *session, const struct fathom_record_options *options,
			     struct fathom_record_result *ret, struct fathom_errinfo *reterr)
{
	struct recording r = { .session = session, .result = ret };
	struct fathom_held_child child = { .go = -1, .report = -1 };
	const int64_t used = fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	fathom_err err;

	*ret = (struct fathom_record_result){ 0 };
	err = prepare(&r, options, reterr);
	if (!err)
		err = r.options.argv ? start_program(&r, &child, reterr)
				     : start_processes(&r, reterr);
	if (!err) {
		write_head(&r);
		hurry(&r);
		err = run_rounds(&r, reterr);
		(void)setpriority(PRIO_PROCESS, 0, r.nice);
	}
	ret->event =
		r.setup.is_cycles ? FATHOM_PROFILE_EVENT_CYCLES : FATHOM_PROFILE_EVENT_TASK_CLOCK;
	ret->is_kernel_hidden = r.setup.is_kernel_hidden;
	ret->bytes = r.writer.bytes;
	ret->n_threads = r.threads.n_seen;
	ret->recorder_ns = (uint64_t)(fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID) - used);
	fathom_held_child_close(&child);
	wait_for_program(&r);
	deinit(&r);
	return err;
}
