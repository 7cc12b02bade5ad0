/* SPDX-License-Identifier: MIT */
#include "cli/trace_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch.h"
#include "cli/out.h"
#include "cli/trace_count.h"
#include "cli/trace_text.h"

/* Statuses of our own failures, as those of env(1) and timeout(1). */
enum { EXIT_FAILED = 125, EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* Bytes that are collected before they are written. */
#define ENOUGH 65536

/* A thread that was seen, and whether it is wanted. */
struct seen {
	int32_t tid;
	bool is_wanted;
};

/* What takes the events. */
struct logger {
	const struct common *common;
	const struct trace_run *run;
	struct trace_count *count; /* NULL: lines are printed */
	struct out out;
	int fd;
	struct seen *seen;
	size_t n_seen;
	bool has_failed; /* the log cannot be written */
};

void trace_run_add(struct trace_words *words, const char *word)
{
	words->items = must(realloc(words->items, (words->n + 1) * sizeof *words->items));
	words->items[words->n++] = word;
}

/* Returns whether thread @tid is one that was asked for, by its number or its name. */
static bool is_asked_for(const struct logger *l, int32_t tid)
{
	char name[32] = "";
	char number[16];
	char path[64];
	FILE *f;

	(void)snprintf(number, sizeof number, "%d", tid);
	(void)snprintf(path, sizeof path, "/proc/%d/comm", tid);
	f = fopen(path, "re");
	if (f) {
		if (fgets(name, sizeof name, f))
			name[strcspn(name, "\n")] = '\0';
		(void)fclose(f);
	}
	for (size_t i = 0; i < l->run->threads.n; i++)
		if (!strcmp(l->run->threads.items[i], number) ||
		    !strcmp(l->run->threads.items[i], name))
			return true;
	return false;
}

static bool is_wanted(struct logger *l, int32_t tid)
{
	if (!l->run->threads.n)
		return true;
	for (size_t i = l->n_seen; i--;)
		if (l->seen[i].tid == tid)
			return l->seen[i].is_wanted;
	l->seen = must(realloc(l->seen, (l->n_seen + 1) * sizeof *l->seen));
	l->seen[l->n_seen] = (struct seen){ tid, is_asked_for(l, tid) };
	return l->seen[l->n_seen++].is_wanted;
}

static void flush(struct logger *l)
{
	l->has_failed |= !launch_write(l->fd, l->out.buf, l->out.n);
	l->out.n = 0;
}

static int take(void *data, const struct fathom_trace_event *events, size_t n)
{
	struct logger *l = data;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_trace_event *e = &events[i];

		if (!is_wanted(l, e->tid))
			continue;
		if (l->count)
			trace_count_event(l->count, e);
		else if (l->common->json)
			trace_json_event(&l->out, e);
		else
			trace_text_event(&l->out, e);
		if (l->out.n > ENOUGH)
			flush(l);
	}
	flush(l);
	return !l->has_failed;
}

/* Says what was not recorded. */
static void complain_missing(const struct trace_run *run, const struct fathom_trace_result *r)
{
	static const char *const reasons[] = {
		[FATHOM_TRACE_NO_ROOM] = "have no room for a call",
		[FATHOM_TRACE_CHANGED] = "have other bytes than their file",
		[FATHOM_TRACE_TOO_FAR] = "are too far from the hook",
		[FATHOM_TRACE_OWN_CALL] = "are calls of the program's own (-finstrument-functions)",
	};
	char text[128];

	for (size_t i = 1; i < sizeof reasons / sizeof *reasons; i++) {
		if (!r->n_refused[i])
			continue;
		(void)snprintf(text, sizeof text, "%llu sites %s",
			       (unsigned long long)r->n_refused[i], reasons[i]);
		complain(run->argv[0], text, NULL);
	}
	if (!r->n_sites && !run->only.n)
		complain(run->argv[0], "has no function whose entry can be recorded",
			 "build it with -fpatchable-function-entry=18,16");
	else if (!r->n_sites)
		complain(run->argv[0], "no function that --only names can be recorded",
			 "see 'fathom trace --sites'");
}

static int fail(const struct trace_run *run, const struct fathom_errinfo *info)
{
	complain(run->argv[0], info->what, info->os_errno ? strerror(info->os_errno) : NULL);
	if (info->err == FATHOM_E_NOT_FOUND)
		return EXIT_NOT_FOUND;
	return info->err == FATHOM_E_OS ? EXIT_NOT_RUN : EXIT_FAILED;
}

static void take_words(struct trace_run *run)
{
	struct fathom_trace_options *o = &run->options;

	o->only = run->only.items;
	o->n_only = run->only.n;
	o->under = run->under.items;
	o->n_under = run->under.n;
	o->except = run->except.items;
	o->n_except = run->except.n;
}

static void deinit(struct common *c, struct trace_run *run, struct logger *l)
{
	trace_count_destroy(l->count);
	out_deinit(&l->out);
	free(l->seen);
	free(run->only.items);
	free(run->under.items);
	free(run->except.items);
	free(run->threads.items);
	common_deinit(c);
}

int trace_run(struct common *c, struct trace_run *run)
{
	struct logger l = { .common = c, .run = run, .fd = launch_open_log(run->log) };
	struct fathom_trace_result r = { .size = sizeof r };
	struct fathom_errinfo info;
	fathom_err err;

	out_init_kept(&l.out);
	if (run->counts)
		l.count = trace_count_create();
	else if (!c->json)
		trace_text_head(&l.out);
	take_words(run);
	run->options.size = sizeof run->options;
	run->options.events = take;
	run->options.data = &l;
	launch_leave_signals();
	err = fathom_trace_run(common_session(c), run->argv, &run->options, &r, &info);
	if (!err && l.count)
		trace_count_print(l.count, &l.out, c->json);
	flush(&l);
	if (!err)
		complain_missing(run, &r);
	deinit(c, run, &l);
	return err ? fail(run, &info) : launch_end_as(r.status);
}
