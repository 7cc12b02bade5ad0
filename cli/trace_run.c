/* SPDX-License-Identifier: MIT */
#include "cli/trace_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch.h"

/* Statuses of our own failures, as those of env(1) and timeout(1). */
enum { EXIT_FAILED = 125 };

/* Says what was not recorded. */
static void complain_missing(const char *program, const struct trace_wants *w,
			     const struct fathom_trace_result *r)
{
	static const char *const reasons[] = {
		[FATHOM_TRACE_NO_ROOM] = "have no room for a call",
		[FATHOM_TRACE_CHANGED] = "have other bytes than their file",
		[FATHOM_TRACE_TOO_FAR] = "are too far from the hook",
		[FATHOM_TRACE_NO_FRAME] = "have a frame that is not known (-finstrument-functions)",
	};
	char text[128];

	for (size_t i = 1; i < sizeof reasons / sizeof *reasons; i++) {
		if (!r->n_refused[i])
			continue;
		(void)snprintf(text, sizeof text, "%llu sites %s",
			       (unsigned long long)r->n_refused[i], reasons[i]);
		complain(program, text, NULL);
	}
	if (w->syscalls.flags & FATHOM_SYSCALLS_ONLY)
		return;
	if (!r->n_sites && r->n_calls)
		complain(
			program, "has no sites: these are its calls of libraries",
			"to see its own functions, build it with -fpatchable-function-entry=18,16");
	else if (!r->n_sites && !w->only.n)
		complain(program, "has no function whose entry can be recorded",
			 "build it with -fpatchable-function-entry=18,16");
	else if (!r->n_sites)
		complain(program, "no function that --only names can be recorded",
			 "see 'fathom trace --sites'");
}

static int fail(const char *program, const struct fathom_errinfo *info)
{
	complain(program, info->what, info->os_errno ? strerror(info->os_errno) : NULL);
	if (info->err == FATHOM_E_NOT_FOUND)
		return EXIT_NOT_FOUND;
	return info->err == FATHOM_E_OS ? EXIT_NOT_RUN : EXIT_FAILED;
}

int trace_run(struct common *c, struct trace_wants *wants, char **argv)
{
	struct trace_sink *sink = trace_sink_create(c, wants, launch_open_log(wants->log));
	struct fathom_trace_result r = { .size = sizeof r };
	struct fathom_errinfo info;
	fathom_err err;

	launch_leave_signals();
	err = fathom_trace_run(common_session(c), argv, &wants->options, &r, &info);
	if (!trace_sink_finish(sink, err ? NULL : &r, !err && r.status != 0))
		complain(wants->log ? wants->log : "standard error", "cannot be written", NULL);
	if (!err)
		complain_missing(argv[0], wants, &r);
	trace_wants_deinit(wants);
	common_deinit(c);
	return err ? fail(argv[0], &info) : launch_end_as(r.status);
}

int trace_attach(struct common *c, struct trace_wants *wants, int32_t *pids, size_t n)
{
	struct trace_sink *sink;
	struct fathom_trace_result r = { .size = sizeof r };
	struct fathom_errinfo info;
	char name[32] = "the processes";
	fathom_err err;

	wants->attaches = true;
	sink = trace_sink_create(c, wants, launch_open_log(wants->log));
	if (n == 1)
		(void)snprintf(name, sizeof name, "process %d", pids[0]);
	err = fathom_trace_attach(common_session(c), pids, n, &wants->options, &r, &info);
	if (!trace_sink_finish(sink, err ? NULL : &r, true))
		complain(wants->log ? wants->log : "standard error", "cannot be written", NULL);
	if (err)
		complain(name, info.what, info.os_errno ? strerror(info.os_errno) : NULL);
	else
		complain_missing(name, wants, &r);
	trace_wants_deinit(wants);
	common_deinit(c);
	free(pids);
	return err ? EXIT_USAGE : EXIT_ANSWERED;
}

int trace_read(struct common *c, struct trace_wants *wants, const char *path)
{
	const int fd = wants->log ? launch_open_log(wants->log) : STDOUT_FILENO;
	struct trace_sink *sink = trace_sink_create(c, wants, fd);
	struct fathom_trace_result r = { .size = sizeof r };
	struct fathom_errinfo info;
	uint64_t n;
	fathom_err err = fathom_trace_read(common_session(c), path, &wants->options, &r, &info);

	n = trace_sink_count(sink);
	if (!trace_sink_finish(sink, err ? NULL : &r, true)) {
		complain(wants->log ? wants->log : "standard output", "cannot be written", NULL);
		n = 0;
	}
	if (err)
		complain(path, info.what, info.os_errno ? strerror(info.os_errno) : NULL);
	trace_wants_deinit(wants);
	common_deinit(c);
	if (err)
		return EXIT_USAGE;
	return n ? 0 : EXIT_UNANSWERED;
}
