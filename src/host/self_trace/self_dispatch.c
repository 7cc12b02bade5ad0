/* SPDX-License-Identifier: MIT */
/*
 * A process that traces its own system calls without ptrace(2), which may be forbidden, or used by
 * somebody else: the kernel dispatches them (trace/user_dispatch.h). Its functions are not traced
 * then; stacks and injection need a thread that stands.
 */
#include <stdlib.h>
#include <unistd.h>

#include "host/base/context.h"
#include "host/base/thread_list.h"
#include "host/self_trace/self_follow.h"
#include "host/self_trace/self_plans.h"
#include "host/self_trace/self_rings.h"
#include "trace/linked.h"
#include "trace/user_dispatch.h"

static fathom_err prepare(const struct fathom_trace_options *options, struct fathom_errinfo *reterr)
{
	/* The reader of the last trace may have been killed. */
	fathom_user_dispatch_end();
	FATHOM_TRY(fathom_self_trace_plans_make(options->syscalls, reterr));
	return fathom_self_trace_rings_make(options, reterr);
}

static bool ask(void *data, pid_t tid)
{
	(void)data;
	if (tid != gettid())
		fathom_user_dispatch_ask(tid);
	return true;
}

/* Asks the other threads of the process to be dispatched, too. */
static void ask_others(void)
{
	const int tasks = fathom_threads_open(0);

	if (tasks < 0)
		return;
	(void)fathom_threads_each(tasks, ask, NULL);
	close(tasks);
}

static fathom_err begin_dispatched(pid_t reader, struct fathom_errinfo *reterr)
{
	if (!reader)
		return FATHOM_OK;
	fathom_self_trace_rings_begin(reader);
	if (!fathom_user_dispatch_begin(fathom_self_trace_reader_exit))
		return fathom_fail(
			reterr, FATHOM_E_OS, "", 0,
			"a kernel without syscall user dispatch (Linux 5.11), or no memory for "
			"signal stacks");
	ask_others();
	return FATHOM_OK;
}

static fathom_err read_own(struct fathom *session, pid_t pid,
			   const struct fathom_trace_options *options,
			   struct fathom_self_trace_talk *talk, struct fathom_errinfo *reterr)
{
	const struct fathom_self_trace_follow f = {
		.program = fathom_self_trace_rings(), .pid = pid, .options = options, .talk = talk
	};

	(void)session;
	return fathom_self_trace_follow(&f, reterr);
}

static fathom_err end(struct fathom_errinfo *reterr)
{
	(void)reterr;
	fathom_user_dispatch_end();
	fathom_self_trace_rings_end();
	return FATHOM_OK;
}

const struct fathom_capture_method fathom_capture_by_dispatch = {
	.prepare = prepare,
	.begin = begin_dispatched,
	.read = read_own,
	.end = end,
	.silence = fathom_user_dispatch_set_own,
	.change = fathom_self_trace_rings_change
};
