/* SPDX-License-Identifier: MIT */
#include "cli/trace_sink.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/launch.h"

struct trace_sink {
	const struct trace_wants *wants;
	struct fathom_trace_writer *writer;
	int fd;
	uint64_t n_events;
	bool is_due; /* what is kept was asked for */
	/*
	 * Leave what is traced then, in nanoseconds of the monotonic clock; 0: not known yet, or
	 * never.
	 */
	_Atomic int64_t end;
	char *spool;        /* of wants.options */
	int64_t rest_since; /* the end of what is traced, if records waited then; else 0 */
	bool is_told;       /* that the rest is being written */
	bool is_cut;        /* the user wants no more of it */
	bool has_failed;    /* what is written is lost */
	bool is_closed;     /* whoever reads it wants no more */
};

/* A signal has come that asks for what is kept, or for an end. */
static volatile sig_atomic_t is_asked;
static volatile sig_atomic_t is_over;

void trace_wants_init(struct trace_wants *w)
{
	*w = (struct trace_wants){
		.options.size = sizeof w->options,
		.syscalls = { .size = sizeof w->syscalls,
			      .string_limit = FATHOM_SYSCALLS_STRING_LIMIT },
		.settings = { .size = sizeof w->settings,
			      .options = &w->options,
			      .syscalls = &w->syscalls },
	};
}

void trace_wants_deinit(struct trace_wants *w)
{
	fathom_trace_settings_free(&w->settings);
	free(w->given);
}

/* Returns whether the thread of @e was asked for, by its number or its name. */
static bool is_wanted(const struct trace_sink *s, const struct fathom_trace_event *e)
{
	const struct fathom_trace_settings *wanted = &s->wants->settings;
	char number[16];

	if (!wanted->n_threads)
		return true;
	(void)snprintf(number, sizeof number, "%d", e->tid);
	for (size_t i = 0; i < wanted->n_threads; i++)
		if (!strcmp(wanted->threads[i], number) ||
		    (e->thread && !strcmp(wanted->threads[i], e->thread)))
			return true;
	return false;
}

static void put(struct trace_sink *s, const struct fathom_trace_event *events, size_t n)
{
	s->n_events += n;
	s->has_failed |= !fathom_trace_writer_take(s->writer, events, n);
}

static int64_t now(void)
{
	struct timespec ts = { .tv_sec = 0 };

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* After which the user hears of it. */
#define LONG_REST_NS 1000000000

/* Looks after the rest, which is written when nothing is traced any more. */
static void look_after_rest(struct trace_sink *s)
{
	s->is_cut |= is_over != 0;
	if (s->is_told || now() - s->rest_since < LONG_REST_NS)
		return;
	s->is_told = true;
	(void)fprintf(stderr,
		      "fathom: %s: calls that waited are still being written; Ctrl-C ends that\n",
		      s->wants->settings.log);
}

static int take_events(void *data, const struct fathom_trace_event *events, size_t n)
{
	struct trace_sink *s = data;

	if (s->wants->settings.n_threads) {
		for (size_t i = 0; i < n; i++)
			if (is_wanted(s, &events[i]))
				put(s, &events[i], 1);
	} else if (n) {
		put(s, events, n);
	}
	if (!n && s->is_due) {
		s->is_due = false;
		s->has_failed |= !fathom_trace_writer_tell(s->writer);
	}
	if (!n)
		put(s, NULL, 0);
	if (s->rest_since)
		look_after_rest(s);
	return !s->has_failed && !s->is_cut;
}

/* All is traced from now on. */
static void begin_time(void *data)
{
	struct trace_sink *s = data;

	if (s->wants->seconds > 0)
		atomic_store(&s->end, now() + (int64_t)(s->wants->seconds * 1e9));
}

/* Prints the kept events when the signal has come, and leaves the programs when it is time. */
static int control(void *data)
{
	struct trace_sink *s = data;
	const int64_t end = atomic_load(&s->end);

	if (is_over || (end && now() >= end))
		return FATHOM_TRACE_LEAVE;
	if (!is_asked)
		return FATHOM_TRACE_GO_ON;
	is_asked = 0;
	s->is_due = true;
	return FATHOM_TRACE_TELL;
}

static int write_bytes(void *data, const void *bytes, size_t n)
{
	struct trace_sink *s = data;
	const int is_written = launch_write(s->fd, bytes, n);

	s->is_closed |= !is_written && errno == EPIPE;
	return is_written;
}

static void ask(int number)
{
	if (number == SIGUSR1)
		is_asked = 1;
	else
		is_over = 1;
}

static void watch(int number)
{
	const struct sigaction sa = { .sa_handler = ask, .sa_flags = SA_RESTART };

	(void)sigaction(number, &sa, NULL);
}

/* Nothing is traced any more, but not all is written: signals are not for the program. */
static void begin_rest(void *data)
{
	struct trace_sink *s = data;

	s->rest_since = now();
	is_over = 0;
	watch(SIGINT);
	watch(SIGTERM);
	watch(SIGHUP);
}

static void keep_last(struct trace_sink *s, uint32_t n)
{
	struct fathom_errinfo info;

	if (fathom_trace_writer_keep(s->writer, n, &info)) {
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	watch(SIGUSR1);
}

/* Bytes of records that may wait beside a log. */
#define SPOOL_SIZE ((uint64_t)4 << 30)

/* Lets records wait in the folder of the log, if that is a file: what is shown at once cannot. */
static void let_spool(struct trace_sink *s, struct trace_wants *wants)
{
	const char *log = wants->settings.log;
	const char *slash = log ? strrchr(log, '/') : NULL;
	struct stat file;
	struct stat folder;

	/* Whoever asks by SIGUSR1 wants all of it at once. */
	if (!log || wants->settings.last || fstat(s->fd, &file) || !S_ISREG(file.st_mode))
		return;
	s->spool = must(slash ? strndup(log, (size_t)(slash - log) + 1) : strdup("."));
	/* Not in /dev, where the log is /dev/stderr. */
	if (stat(s->spool, &folder) || folder.st_dev != file.st_dev)
		return;
	wants->options.spool = s->spool;
	wants->options.spool_size = SPOOL_SIZE;
	wants->options.rest = begin_rest;
}

struct trace_sink *trace_sink_create(struct trace_wants *wants, int fd)
{
	struct trace_sink *s = must(calloc(1, sizeof *s));
	struct fathom_errinfo info;

	s->wants = wants;
	s->fd = fd;
	let_spool(s, wants);
	fathom_trace_settings_complete(&wants->settings);
	wants->options.events = take_events;
	wants->options.data = s;
	wants->options.control = control;
	if (wants->attaches)
		wants->options.ready = begin_time;
	else
		begin_time(s);
	if (wants->attaches) {
		watch(SIGINT);
		watch(SIGTERM);
		watch(SIGHUP);
	}
	/* A program that stops at a filter would end with this process. */
	if (!wants->attaches && wants->options.syscalls &&
	    wants->syscalls.method == FATHOM_SYSCALL_BY_REWRITING) {
		launch_outlive_signals();
		launch_watch(SIGTERM, ask);
		launch_watch(SIGHUP, ask);
	}
	if (fathom_trace_writer_create((enum fathom_trace_format)wants->settings.format,
				       write_bytes, s, &s->writer, &info)) {
		complain("--export", info.what, NULL);
		exit(EXIT_USAGE);
	}
	if (wants->settings.last)
		keep_last(s, wants->settings.last);
	return s;
}

uint64_t trace_sink_count(const struct trace_sink *s)
{
	return s->n_events;
}

bool trace_sink_finish(struct trace_sink *s, const struct fathom_trace_result *result,
		       bool is_failure)
{
	bool is_written;

	if (is_failure)
		s->has_failed |= !fathom_trace_writer_tell(s->writer);
	s->has_failed |= fathom_trace_writer_finish(s->writer, result, NULL) != FATHOM_OK;
	if (s->is_cut)
		complain(s->wants->settings.log, "is not complete: its end was not written", NULL);
	is_written = !s->has_failed || s->is_closed;
	fathom_trace_writer_free(s->writer);
	free(s->spool);
	free(s);
	return is_written;
}
