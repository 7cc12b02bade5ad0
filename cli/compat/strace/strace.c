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
	bool is_passed;                 /* the program was sent the signal that asks to leave */
	bool has_failed;
};

/* The signal that has come, and asks to leave what is traced; 0: none. */
static volatile sig_atomic_t left_by;

static void leave(int number)
{
	left_by = number;
}

/* Returns whether the program stops at a filter, so that it must be traced until it ends. */
static bool has_filter(const struct strace_options *o)
{
	return o->calls.flags & FATHOM_SYSCALLS_FILTER ||
	       o->calls.method == FATHOM_SYSCALL_BY_REWRITING;
}

/* Passes the signal that asks to leave on to the program, as strace does, once. */
static void pass_on(struct strace *s)
{
	if (s->options.program && s->first && !s->is_passed)
		(void)kill(s->first, left_by);
	s->is_passed = true;
}

static int take_events(void *data, const struct fathom_trace_event *events, size_t n)
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
	struct strace *s = data;

	if (!left_by)
		return FATHOM_TRACE_GO_ON;
	if (has_filter(&s->options))
		pass_on(s);
	return FATHOM_TRACE_LEAVE;
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
					  .events = take_events,
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
		/* As strace does; what stops at a filter would end with this process. */
		if (o->output || has_filter(o))
			launch_outlive_signals();
		for (int i = 0; !o->output && i < 2; i++)
			launch_watch((int[]){ SIGTERM, SIGHUP }[i], leave);
		t.flags |= FATHOM_TRACE_NO_WAIT;
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
	if (left_by)
		pass_on(&s);
	strace_options_deinit(&s.options);
	if (err)
		return fail(&s.options, &info);
	if (left_by && s.options.program)
		return launch_end_as(left_by);
	return s.options.program ? launch_end_as(result.status) : 0;
}
