/* SPDX-License-Identifier: MIT */
#include "cli/trace_sink.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/launch.h"

struct trace_sink {
	const struct trace_wants *wants;
	struct fathom_trace_writer *writer;
	int fd;
	uint64_t n_events;
	bool is_due; /* what is kept was asked for */
	/* Leave what is traced then, in nanoseconds of the monotonic clock; 0: not known yet, or
	 * never. */
	_Atomic int64_t end;
	bool has_failed; /* what is written is lost */
	bool is_closed;  /* whoever reads it wants no more */
};

/* A signal has come that asks for what is kept, or for an end. */
static volatile sig_atomic_t is_asked;
static volatile sig_atomic_t is_over;

void trace_words_add(struct trace_words *words, const char *word)
{
	words->items = must(realloc(words->items, (words->n + 1) * sizeof *words->items));
	words->items[words->n++] = word;
}

void trace_wants_at(struct trace_wants *w, const char *word)
{
	static const char *const actions[] = { "start", "stop", "stack", "dump" };
	const char *colon = strrchr(word, ':');
	struct fathom_trace_at at = { .query = NULL };

	for (size_t i = 0; colon && i < sizeof actions / sizeof *actions; i++)
		if (!strcmp(colon + 1, actions[i]))
			at.actions = 1u << i;
	if (!at.actions || colon == word) {
		complain("--at", "takes QUERY:start, :stop, :stack or :dump", word);
		exit(EXIT_USAGE);
	}
	at.query = must(strndup(word, (size_t)(colon - word)));
	w->at = must(realloc(w->at, (w->n_at + 1) * sizeof *w->at));
	w->at[w->n_at++] = at;
}

/* Returns whether the thread of @e was asked for, by its number or its name. */
static bool is_wanted(const struct trace_sink *s, const struct fathom_trace_event *e)
{
	const struct trace_words *threads = &s->wants->threads;
	char number[16];

	if (!threads->n)
		return true;
	(void)snprintf(number, sizeof number, "%d", e->tid);
	for (size_t i = 0; i < threads->n; i++)
		if (!strcmp(threads->items[i], number) ||
		    (e->thread && !strcmp(threads->items[i], e->thread)))
			return true;
	return false;
}

static void put(struct trace_sink *s, const struct fathom_trace_event *events, size_t n)
{
	s->n_events += n;
	s->has_failed |= !fathom_trace_writer_take(s->writer, events, n);
}

static int take(void *data, const struct fathom_trace_event *events, size_t n)
{
	struct trace_sink *s = data;

	if (s->wants->threads.n) {
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
	return !s->has_failed;
}

static int64_t now(void)
{
	struct timespec ts = { .tv_sec = 0 };

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
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

void trace_wants_options(struct trace_wants *w,
			 int (*events)(void *data, const struct fathom_trace_event *events,
				       size_t n),
			 void *data)
{
	struct fathom_trace_options *o = &w->options;

	o->size = sizeof *o;
	o->events = events;
	o->data = data;
	o->only = w->only.items;
	o->n_only = w->only.n;
	o->under = w->under.items;
	o->n_under = w->under.n;
	o->except = w->except.items;
	o->n_except = w->except.n;
	w->syscalls.size = sizeof w->syscalls;
	w->syscalls.inject = w->inject.items;
	w->syscalls.n_inject = w->inject.n;
	w->syscalls.paths = w->paths.items;
	w->syscalls.n_paths = w->paths.n;
	o->syscalls = w->has_syscalls ? &w->syscalls : NULL;
	o->at = w->at;
	o->n_at = w->n_at;
}

/* Keeps the last events; the rings of a run do it where calls need nothing else. */
static void keep_last(struct trace_sink *s, struct trace_wants *w)
{
	struct fathom_errinfo info;

	if (fathom_trace_writer_keep(s->writer, w->last, &info)) {
		complain_error(&info);
		exit(EXIT_USAGE);
	}
	watch(SIGUSR1);
	w->options.flags |= FATHOM_TRACE_LOSSY;
	if (w->last <= FATHOM_TRACE_KEPT && !w->n_at && !w->threads.n && !w->under.n &&
	    !w->options.max_rate)
		w->options.flags |= FATHOM_TRACE_LATEST;
}

static enum fathom_trace_format format_of(const struct common *c, const struct trace_wants *w)
{
	if (w->format)
		return (enum fathom_trace_format)w->format;
	if (w->counts)
		return c->json ? FATHOM_TRACE_COUNTS_JSON : FATHOM_TRACE_COUNTS;
	if (c->json)
		return FATHOM_TRACE_JSON;
	return w->has_durations ? FATHOM_TRACE_TEXT_DURATIONS : FATHOM_TRACE_TEXT;
}

struct trace_sink *trace_sink_create(const struct common *c, struct trace_wants *wants, int fd)
{
	struct trace_sink *s = must(calloc(1, sizeof *s));
	struct fathom_errinfo info;

	s->wants = wants;
	s->fd = fd;
	trace_wants_options(wants, take, s);
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
	if (!wants->attaches && wants->has_syscalls &&
	    wants->syscalls.way == FATHOM_SYSCALL_BY_REWRITING) {
		launch_outlive_signals();
		launch_watch(SIGTERM, ask);
		launch_watch(SIGHUP, ask);
	}
	if (fathom_trace_writer_create(format_of(c, wants), write_bytes, s, &s->writer, &info)) {
		complain("--export", info.what, NULL);
		exit(EXIT_USAGE);
	}
	if (wants->last)
		keep_last(s, wants);
	/* With their times, each. */
	if (wants->format)
		wants->options.flags |= FATHOM_TRACE_NO_FOLD;
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
	is_written = !s->has_failed || s->is_closed;
	fathom_trace_writer_free(s->writer);
	free(s);
	return is_written;
}

void trace_wants_deinit(struct trace_wants *w)
{
	for (size_t i = 0; i < w->n_at; i++)
		free((char *)w->at[i].query);
	free(w->at);
	free(w->only.items);
	free(w->under.items);
	free(w->except.items);
	free(w->threads.items);
	free(w->inject.items);
	free(w->paths.items);
}
