/* SPDX-License-Identifier: MIT */
/*
 * fathom strace: prints the system calls of a program or process as strace 6.1 does, by ptrace(2).
 * What strace can do and this cannot yet is an error that says so.
 */
#include <fathom/fathom.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/compat/strace/call_lines.h"
#include "cli/compat/strace/summary.h"
#include "cli/launch.h"

struct strace {
	struct strace_options options;
	struct strace_lines *lines;     /* NULL: only counted */
	struct strace_summary *summary; /* NULL: not counted */
	int32_t first;                  /* the first thread of the program */
	bool has_failed;
};

/* A signal has come that asks to leave what was attached to. */
static volatile sig_atomic_t is_over;

static void leave(int number)
{
	(void)number;
	is_over = 1;
}

static int take(void *data, const struct fathom_trace_event *events, size_t n)
{
	struct strace *s = data;

	for (size_t i = 0; i < n; i++) {
		const struct fathom_trace_event *e = &events[i];

		if (!s->first)
			s->first = e->tid;
		if (s->lines)
			s->has_failed |= !strace_lines_take(s->lines, e);
		if (s->summary && (s->options.follows || s->options.n_pids || e->tid == s->first))
			strace_summary_take(s->summary, e);
	}
	if (!n && s->lines)
		s->has_failed |= !strace_lines_flush(s->lines);
	return !s->has_failed;
}

static int control(void *data)
{
	(void)data;
	return is_over ? FATHOM_TRACE_LEAVE : FATHOM_TRACE_GO_ON;
}

static void set_environment(const struct strace_options *o)
{
	for (size_t i = 0; i < o->n_environment; i++) {
		if (strchr(o->environment[i], '='))
			(void)putenv(o->environment[i]);
		else
			(void)unsetenv(o->environment[i]);
	}
}

/* Says why nothing was traced; returns strace's status of that. */
static int fail(const struct strace_options *o, const struct fathom_errinfo *info)
{
	if (o->program && !info->file[0])
		complain(o->program[0], info->what,
			 info->os_errno ? strerror(info->os_errno) : NULL);
	else
		complain_error(info);
	return 1;
}

static fathom_err run(struct strace *s, struct fathom *session, struct fathom_trace_result *result,
		      struct fathom_errinfo *info)
{
	struct strace_options *o = &s->options;
	struct fathom_trace_options t = { .size = sizeof t,
					  .events = take,
					  .data = s,
					  .control = control,
					  .syscalls = &o->calls };

	o->calls.size = sizeof o->calls;
	o->calls.set = o->set;
	o->calls.inject = o->inject;
	o->calls.n_inject = o->n_inject;
	o->calls.paths = o->paths;
	o->calls.n_paths = o->n_paths;
	if (o->lists)
		o->calls.flags |= FATHOM_SYSCALLS_ENTRIES;
	else
		o->calls.flags &= ~(uint32_t)FATHOM_SYSCALLS_STACKS;
	if (!o->follows)
		t.flags |= FATHOM_TRACE_NO_CHILDREN;
	if (o->program) {
		t.user = o->user;
		set_environment(o);
		launch_leave_signals();
		return fathom_trace_run(session, o->program, &t, result, info);
	}
	for (int i = 0; i < 3; i++)
		(void)signal((int[]){ SIGINT, SIGTERM, SIGHUP }[i], leave);
	return fathom_trace_attach(session, o->pids, o->n_pids, &t, result, info);
}

int verb_strace(int argc, char **argv)
{
	struct strace s = { .first = 0 };
	struct fathom_trace_result result = { .size = sizeof result };
	struct fathom_errinfo info;
	struct fathom *session;
	fathom_err err;
	int fd;

	strace_options_read(&s.options, argc, argv);
	if (fathom_create(NULL, &session, &info))
		return fail(&s.options, &info);
	if (s.options.lists)
		s.lines = strace_lines_create(&s.options);
	if (s.options.counts)
		s.summary = strace_summary_create(&s.options);
	err = run(&s, session, &result, &info);
	if (s.lines)
		s.has_failed |= !strace_lines_finish(s.lines);
	fd = s.options.output && !s.lines ? launch_open_log(s.options.output) : STDERR_FILENO;
	if (s.summary)
		s.has_failed |= !strace_summary_finish(s.summary, fd);
	fathom_destroy(session);
	if (s.has_failed)
		complain(s.options.output ? s.options.output : "standard error",
			 "cannot be written", NULL);
	strace_options_deinit(&s.options);
	if (err)
		return fail(&s.options, &info);
	return s.options.program ? launch_end_as(result.status) : 0;
}
