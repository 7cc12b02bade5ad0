/* SPDX-License-Identifier: MIT */
#include "cli/trace_run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch.h"

/* Statuses of our own failures, as those of env(1) and timeout(1). */
enum { EXIT_FAILED = 125 };

/*
 * Returns whether the file at @path is a program of Go's: its linker leaves this, at a multiple of
 * 16.
 */
static bool is_of_go(const char *path)
{
	static const char mark[] = "\xff Go buildinf:";
	enum { PIECE = 1 << 16 };
	char *bytes = must(malloc(PIECE));
	FILE *f = fopen(path, "re");
	bool is_found = false;
	size_t n;

	while (f && !is_found && (n = fread(bytes, 1, PIECE, f)) >= sizeof mark - 1)
		for (size_t i = 0; !is_found && i + sizeof mark - 1 <= n; i += 16)
			is_found = !memcmp(bytes + i, mark, sizeof mark - 1);
	if (f)
		(void)fclose(f);
	free(bytes);
	return is_found;
}

/* Says what was not recorded of @program, whose file is at @path. */
static void complain_missing(const char *program, const char *path, const struct trace_wants *w,
			     const struct fathom_trace_result *r)
{
	/* For one, and for several. */
	static const char *const reasons[][2] = {
		[FATHOM_TRACE_NO_ROOM] = { "has no room for a call", "have no room for a call" },
		[FATHOM_TRACE_CHANGED] = { "has other bytes than its file",
					   "have other bytes than their file" },
		[FATHOM_TRACE_TOO_FAR] = { "is too far from the hook",
					   "are too far from the hook" },
		[FATHOM_TRACE_NO_FRAME] = { "has a frame that is not known "
					    "(-finstrument-functions)",
					    "have a frame that is not known "
					    "(-finstrument-functions)" },
	};
	uint64_t n_refused = 0;
	char text[128];

	for (size_t i = 1; i < sizeof reasons / sizeof *reasons; i++) {
		const bool is_one = r->n_refused[i] == 1;

		n_refused += r->n_refused[i];
		if (!r->n_refused[i])
			continue;
		(void)snprintf(text, sizeof text, "%llu site%s %s",
			       (unsigned long long)r->n_refused[i], is_one ? "" : "s",
			       reasons[i][!is_one]);
		complain(program, text, NULL);
	}
	if (w->syscalls.flags & FATHOM_SYSCALLS_ONLY)
		return;
	/* Why there are none was said. */
	if (!r->n_sites && (n_refused || r->n_unrecorded))
		return;
	if (!r->n_sites && r->n_calls)
		complain(
			program, "has no sites: these are its calls of libraries",
			"to see its own functions, build it with -fpatchable-function-entry=18,16");
	else if (!r->n_sites && !w->options.n_only)
		complain(program, "has no function whose entry can be recorded",
			 is_of_go(path) ? "Go's compiler leaves no sites: fathom stack has samples"
					: "build it with -fpatchable-function-entry=18,16");
	else if (!r->n_sites)
		complain(program, "no function that --only names can be recorded",
			 "see 'fathom trace --sites'");
	if (w->options.flags & FATHOM_TRACE_EXITS && !r->n_returns)
		complain(program, "has no returns that can be recorded, so --exits tells of none",
			 "build it with -finstrument-functions, or -fxray-instrument (clang)");
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
	struct trace_sink *sink = trace_sink_create(wants, launch_open_log(wants->settings.log));
	struct fathom_trace_result r = { .size = sizeof r };
	struct fathom_errinfo info;
	char path[PATH_MAX];
	fathom_err err;

	launch_leave_signals();
	err = fathom_trace_run(common_session(c), argv, &wants->options, &r, &info);
	if (!trace_sink_finish(sink, err ? NULL : &r, !err && r.status != 0))
		complain(wants->settings.log ? wants->settings.log : "standard error",
			 "cannot be written", NULL);
	if (!err)
		complain_missing(argv[0],
				 fathom_find_program(argv[0], NULL, path, sizeof path) ? path
										       : argv[0],
				 wants, &r);
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
	char path[32] = "";
	fathom_err err;

	wants->attaches = true;
	sink = trace_sink_create(wants, launch_open_log(wants->settings.log));
	if (n == 1)
		(void)snprintf(name, sizeof name, "process %d", pids[0]);
	(void)snprintf(path, sizeof path, "/proc/%d/exe", pids[0]);
	err = fathom_trace_attach(common_session(c), pids, n, &wants->options, &r, &info);
	if (!trace_sink_finish(sink, err ? NULL : &r, true))
		complain(wants->settings.log ? wants->settings.log : "standard error",
			 "cannot be written", NULL);
	if (err)
		complain(name, info.what, info.os_errno ? strerror(info.os_errno) : NULL);
	else
		complain_missing(name, path, wants, &r);
	trace_wants_deinit(wants);
	common_deinit(c);
	free(pids);
	return err ? EXIT_USAGE : EXIT_ANSWERED;
}

int trace_read(struct common *c, struct trace_wants *wants, const char *path)
{
	const int fd = wants->settings.log ? launch_open_log(wants->settings.log) : STDOUT_FILENO;
	struct trace_sink *sink = trace_sink_create(wants, fd);
	struct fathom_trace_result r = { .size = sizeof r };
	struct fathom_errinfo info;
	uint64_t n;
	fathom_err err = fathom_trace_read(common_session(c), path, &wants->options, &r, &info);

	n = trace_sink_count(sink);
	if (!trace_sink_finish(sink, err ? NULL : &r, true)) {
		complain(wants->settings.log ? wants->settings.log : "standard output",
			 "cannot be written", NULL);
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
