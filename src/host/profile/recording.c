/* SPDX-License-Identifier: MIT */
/* Records profiles: starts the program, and lets a method sample it until it is over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/option_struct.h"
#include "host/file/process_status.h"
#include "host/profile/record_cgroup.h"
#include "host/profile/samples_format.h"
#include "host/profile/recording.h"
#include "host/tracer/held_child.h"

/* The most samples a second. */
#define MAX_FREQUENCY 100000

/* How often processes are asked whether they have ended, in ns: that reads files of threads. */
#define LOOK_NS 50000000

static const struct fathom_record_method *const methods[] = { &fathom_record_perf,
							      &fathom_record_poll };

#define N_METHODS (sizeof methods / sizeof *methods)

uint32_t fathom_recording_number(struct fathom_recording *r, struct fathom_record_thread *thread,
				 uint64_t ns)
{
	const struct fathom_profile_thread t = { .pid = thread->pid,
						 .tid = thread->tid,
						 .parent = thread->parent,
						 .ns = fathom_recording_since(r, ns),
						 .name = thread->name };

	if (thread->number == UINT32_MAX)
		thread->number = fathom_profile_write_thread(
			&r->writer, &t, fathom_record_cgroup(&r->threads, &r->table, thread));
	return thread->number;
}

/* Writes @s, of which the thread is missing, of @thread at monotonic @ns. */
static void write_sample(struct fathom_recording *r, struct fathom_record_thread *thread,
			 uint64_t ns, struct fathom_profile_sample *s,
			 const struct fathom_record_stack *stack)
{
	const uint64_t weight = s->weight;

	if (!weight)
		return;
	s->ns = fathom_recording_since(r, ns);
	s->thread = fathom_recording_number(r, thread, ns);
	s->node = stack ? stack->node : 0;
	s->stop = stack ? stack->stop : FATHOM_STOP_NONE;
	fathom_profile_write_sample(&r->writer, s);
	switch ((enum fathom_profile_part)s->part) {
	case FATHOM_PROFILE_WAITING:
		r->result->waiting_ns += weight;
		r->result->unseen_ns += stack && stack->stop ? 0 : weight;
		break;
	case FATHOM_PROFILE_RUNNABLE:
		r->result->runnable_ns += weight;
		break;
	default:
		r->result->weight += weight;
		r->result->n_samples += stack != NULL;
		r->result->n_whole += stack && stack->stop == FATHOM_STOP_ENTRY;
		r->result->hidden += s->part == FATHOM_PROFILE_SAMPLED ? 0 : weight;
	}
}

void fathom_recording_write(struct fathom_recording *r, struct fathom_record_thread *thread,
			    uint64_t ns, enum fathom_profile_part part, uint64_t weight,
			    const struct fathom_record_stack *stack)
{
	struct fathom_profile_sample s = { .weight = weight, .part = (uint8_t)part };

	write_sample(r, thread, ns, &s, stack);
}

void fathom_recording_write_wait(struct fathom_recording *r, struct fathom_record_thread *thread,
				 uint64_t ns, uint64_t weight,
				 const struct fathom_record_stack *stack, uint32_t waker,
				 bool goes_on)
{
	struct fathom_profile_sample s = {
		.weight = weight, .part = FATHOM_PROFILE_WAITING, .goes_on = goes_on, .waker = waker
	};

	write_sample(r, thread, ns, &s, stack);
}

fathom_err fathom_recording_no_process(int32_t pid, struct fathom_errinfo *reterr)
{
	const int number = errno;

	(void)fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", (uint64_t)pid,
			  "there is no such process");
	if (reterr)
		reterr->os_errno = number == ENOENT ? 0 : number;
	return FATHOM_E_NOT_FOUND;
}

/* Fails as writing has failed. */
static fathom_err fail_write(const struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	if (r->writer.no_memory)
		return fathom_fail_memory(reterr);
	(void)fathom_fail(reterr, FATHOM_E_OS, "", 0, "the profile cannot be written");
	if (reterr)
		reterr->os_errno = r->writer.number;
	return FATHOM_E_OS;
}

/* Passes on what was written, once in a second or @now. */
static fathom_err flush(struct fathom_recording *r, bool now, struct fathom_errinfo *reterr)
{
	const int64_t ns = fathom_now_ns();

	if (!now && ns - r->flushed < 1000000000)
		return r->writer.has_failed || r->writer.no_memory ? fail_write(r, reterr)
								   : FATHOM_OK;
	r->flushed = ns;
	return fathom_profile_writer_flush(&r->writer) ? FATHOM_OK : fail_write(r, reterr);
}

static void about_number(struct fathom_recording *r, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	fathom_profile_write_about(&r->writer, key, text);
}

/* Appends @word and a space to @text. False without memory. */
static bool add_word(struct fathom_bytes_array *text, const char *word)
{
	const size_t n = strlen(word);

	if (!fathom_array_room(text, n + 1))
		return false;
	memcpy(text->items + text->n, word, n);
	text->n += n;
	text->items[text->n++] = ' ';
	return true;
}

/* Writes the program with its arguments, or the processes. */
static void about_command(struct fathom_recording *r)
{
	struct fathom_bytes_array text = { 0 };
	bool is_whole = !r->is_all || add_word(&text, "-a");

	for (const char *const *a = r->options.argv; a && *a && is_whole; a++)
		is_whole = add_word(&text, *a);
	for (size_t i = 0; i < r->options.n_pids && is_whole; i++) {
		char word[24];

		(void)snprintf(word, sizeof word, "%s%d", i ? "" : "-p ", (int)r->options.pids[i]);
		is_whole = add_word(&text, word);
	}
	r->writer.no_memory |= !is_whole;
	if (is_whole && text.n) {
		text.items[text.n - 1] = '\0';
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_COMMAND, text.items);
	}
	fathom_array_free(&text);
}

static void write_head(struct fathom_recording *r)
{
	struct utsname name;

	r->writer.observer = r->options.sample ? &r->observer : NULL;
	fathom_profile_writer_begin(&r->writer, r->options.write, r->options.data);
	about_command(r);
	fathom_profile_write_about(&r->writer, FATHOM_ABOUT_EVENT,
				   r->is_cycles ? "cycles"
				   : r->is_all  ? "cpu-clock"
						: "task-clock");
	fathom_profile_write_about(&r->writer, FATHOM_ABOUT_UNIT, r->is_cycles ? "cycles" : "ns");
	fathom_profile_write_about(&r->writer, FATHOM_ABOUT_METHOD, r->method->name);
	if (!uname(&name)) {
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_MACHINE, name.machine);
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_KERNEL, name.release);
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_HOST, name.nodename);
	}
	about_number(r, FATHOM_ABOUT_FREQUENCY, r->frequency);
	about_number(r, FATHOM_ABOUT_STARTED, (uint64_t)fathom_clock_ns(CLOCK_REALTIME));
	about_number(r, FATHOM_ABOUT_BEGAN, (uint64_t)r->began);
	if (r->is_kernel_hidden)
		fathom_profile_write_about(&r->writer, FATHOM_ABOUT_HIDDEN, "1");
}

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

/* Returns whether the program, or all processes, have ended. */
static bool has_ended(struct fathom_recording *r)
{
	if (!r->is_attached) {
		struct rusage usage;
		int status = 0;

		pid_t found;

		if (r->has_exited)
			return true;
		found = wait4(r->first_pid, &status, WNOHANG, &usage);
		/* Somebody else may have waited for it, or nobody can: SIGCHLD is ignored. */
		r->has_exited = found == r->first_pid || (found < 0 && errno == ECHILD);
		if (found == r->first_pid) {
			r->result->status = status;
			r->ran_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
		}
		return r->has_exited;
	}
	if (r->is_all || fathom_now_ns() - r->looked_for_end < LOOK_NS)
		return false;
	r->looked_for_end = fathom_now_ns();
	for (size_t i = 0; i < r->options.n_pids; i++)
		if (!fathom_status_has_ended(r->options.pids[i]))
			return false;
	return true;
}

/* Returns whether the recording is to end. */
static bool is_over(struct fathom_recording *r)
{
	const uint64_t ns = (uint64_t)(fathom_now_ns() - r->began);

	if (r->options.max_bytes && r->writer.bytes + r->writer.out.n >= r->options.max_bytes)
		r->result->is_cut = 1;
	return has_ended(r) || r->result->is_cut || r->observer.is_over ||
	       (r->options.for_ns && ns >= r->options.for_ns) ||
	       (r->options.is_done && r->options.is_done(r->options.data));
}

/* Records until it is over. */
static fathom_err run_rounds(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	bool is_last = false;

	while (!is_last) {
		r->method->wait(r);
		is_last = is_over(r);
		if (r->method->take(r, is_last))
			return fathom_fail_memory(reterr);
		FATHOM_TRY(flush(r, false, reterr));
	}
	if (r->method->finish(r))
		return fathom_fail_memory(reterr);
	r->result->wall_ns = (uint64_t)(fathom_now_ns() - r->began);
	fathom_profile_write_end(&r->writer, r->result->wall_ns);
	return flush(r, true, reterr);
}

/* Returns whether @err, of a method, is no fault of what is recorded: another method may do. */
static bool is_of_method(fathom_err err, const struct fathom_errinfo *info)
{
	if (err == FATHOM_E_LIMIT)
		return info->os_errno != EMFILE && info->os_errno != ENFILE;
	return err == FATHOM_E_UNSUPPORTED ||
	       (err == FATHOM_E_OS && (info->os_errno == EACCES || info->os_errno == EPERM));
}

/* Ends what the method does, and frees its state. */
static void end_method(struct fathom_recording *r)
{
	if (r->state)
		r->method->free(r);
	r->state = NULL;
}

/* Begins with the method that was asked for, else with the first that is there. */
static fathom_err begin_method(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	struct fathom_errinfo info = { 0 };
	fathom_err err = FATHOM_E_UNSUPPORTED;

	for (size_t i = 0; i < N_METHODS && err; i++) {
		const struct fathom_record_method *m = methods[i];

		if (r->options.method ? m->number != r->options.method
				      : i && (r->is_all || !is_of_method(err, &info)))
			continue;
		r->method = m;
		r->frequency = r->options.frequency ? r->options.frequency : m->frequency;
		err = m->begin(r, &info);
		if (err)
			end_method(r);
	}
	if (err && reterr)
		*reterr = info;
	return err;
}

/* Starts the program; it is recorded from exec() on. */
static fathom_err start_program(struct fathom_recording *r, struct fathom_held_child *child,
				struct fathom_errinfo *reterr)
{
	int number = 0;
	const struct fathom_held_child_options how = {
		.streams = r->options.streams,
		.restores_signals = r->options.flags & FATHOM_RECORD_RESTORE_SIGNALS,
	};

	FATHOM_TRY(fathom_held_child_start(child, (char *const *)(uintptr_t)r->options.argv, &how,
					   reterr));
	r->first_pid = child->pid;
	FATHOM_TRY(begin_method(r, reterr));
	r->began = fathom_now_ns();
	if (r->options.pid)
		*r->options.pid = child->pid;
	FATHOM_TRY(fathom_held_child_go(child, reterr));
	if (read(child->report, &number, sizeof number) == sizeof number) {
		(void)fathom_fail(reterr, number == ENOENT ? FATHOM_E_NOT_FOUND : FATHOM_E_OS, "",
				  0,
				  number == ENOENT ? "there is no such program"
						   : "the program cannot be run");
		if (reterr)
			reterr->os_errno = number;
		return number == ENOENT ? FATHOM_E_NOT_FOUND : FATHOM_E_OS;
	}
	return FATHOM_OK;
}

/* Attaches to the processes. */
static fathom_err start_processes(struct fathom_recording *r, struct fathom_errinfo *reterr)
{
	r->is_attached = true;
	r->first_pid = r->is_all ? 0 : r->options.pids[0];
	FATHOM_TRY(begin_method(r, reterr));
	r->began = fathom_now_ns();
	return FATHOM_OK;
}

static fathom_err prepare(struct fathom_recording *r, const struct fathom_record_options *options,
			  struct fathom_errinfo *reterr)
{
	struct fathom_record_options *o = &r->options;
	bool has_target;

	if (!options || !FATHOM_STRUCT_READ(options, o))
		return fathom_fail_options(reterr);
	r->is_all = o->flags & FATHOM_RECORD_ALL;
	has_target = o->argv ? o->argv[0] && !o->n_pids : r->is_all != (o->n_pids != 0);
	if ((!o->write && !o->sample) || !has_target || o->frequency > MAX_FREQUENCY ||
	    o->event > FATHOM_PROFILE_EVENT_CYCLES || o->method > FATHOM_PROFILE_METHOD_POLLING ||
	    o->flags & ~(uint32_t)(FATHOM_RECORD_NO_WAITS | FATHOM_RECORD_ALL |
				   FATHOM_RECORD_RESTORE_SIGNALS | FATHOM_RECORD_LEAVE_PROGRAM))
		return fathom_fail(reterr, FATHOM_E_ARGUMENT, "", 0,
				   "options of recording: a program, processes or all, and write "
				   "or sample, are "
				   "needed; at most 100,000 samples a second");
	r->has_waits = !(o->flags & FATHOM_RECORD_NO_WAITS);
	r->observer.sample = o->sample;
	r->observer.data = o->data;
	r->table.writer = &r->writer;
	r->threads.session = r->session;
	return FATHOM_OK;
}

static void deinit(struct fathom_recording *r)
{
	fathom_record_waits_deinit(&r->waits);
	fathom_record_threads_deinit(&r->threads);
	fathom_stack_table_deinit(&r->table);
	fathom_profile_writer_deinit(&r->writer);
	fathom_record_observer_deinit(&r->observer);
}

/*
 * Waits for the program, which runs on when its recording has ended. The caller, who is asked
 * meanwhile, may end it.
 */
static void wait_for_program(struct fathom_recording *r)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	const int flags = r->options.is_done ? WNOHANG : 0;
	int status = 0;
	pid_t found;

	if (r->is_attached || r->first_pid <= 0 || r->has_exited ||
	    (r->has_begun && r->options.flags & FATHOM_RECORD_LEAVE_PROGRAM))
		return;
	while ((found = waitpid(r->first_pid, &status, flags)) == 0 ||
	       (found < 0 && errno == EINTR))
		if (!found) {
			(void)r->options.is_done(r->options.data);
			(void)nanosleep(&pause, NULL);
		}
	r->result->status = status;
}

/* Puts into the result how it is sampled. */
static void tell_method(struct fathom_recording *r)
{
	r->result->event =
		r->is_cycles ? FATHOM_PROFILE_EVENT_CYCLES : FATHOM_PROFILE_EVENT_TASK_CLOCK;
	r->result->method = r->method ? r->method->number : 0;
	r->result->is_kernel_hidden = r->is_kernel_hidden;
}

fathom_err fathom_record_run(struct fathom *session, const struct fathom_record_options *options,
			     struct fathom_record_result *ret, struct fathom_errinfo *reterr)
{
	struct fathom_recording r = { .session = session, .result = ret };
	struct fathom_held_child child = { .go = -1, .report = -1 };
	const int64_t used = fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	fathom_err err;

	*ret = (struct fathom_record_result){ 0 };
	err = prepare(&r, options, reterr);
	if (!err)
		err = r.options.argv ? start_program(&r, &child, reterr)
				     : start_processes(&r, reterr);
	if (!err) {
		/* is_done() and sample() may look at it. */
		tell_method(&r);
		write_head(&r);
		r.has_begun = true;
		err = r.method->start(&r) ? fathom_fail_memory(reterr) : run_rounds(&r, reterr);
	}
	tell_method(&r);
	ret->bytes = r.writer.bytes;
	ret->n_threads = r.threads.n_seen;
	ret->recorder_ns = (uint64_t)(fathom_clock_ns(CLOCK_THREAD_CPUTIME_ID) - used);
	fathom_held_child_close(&child);
	end_method(&r);
	wait_for_program(&r);
	deinit(&r);
	return err;
}
