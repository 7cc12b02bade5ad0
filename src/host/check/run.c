/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fathom/disasm.h"
#include "host/base/clock.h"
#include "host/base/context.h"
#include "host/base/option_struct.h"
#include "host/check/checker.h"
#include "host/space/target.h"

/* Instructions of a slice, unless the caller says otherwise. */
#define SLICE 1000
/* Bytes of the longest instruction. */
#define LONGEST_INSTRUCTION 15

/* If this process ends, so does the program. */
#define OPTIONS                                                                                 \
	(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | \
	 PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC)

/* How long the other threads run between two slices of one, and how often they are looked after. */
#define OTHERS_NS 10000000
#define LOOK_NS   100000

/* Passes @b on to the caller. */
static void tell(struct fathom_shadow_work *w, const struct fathom_shadow_break *b)
{
	struct fathom_checker *c = (struct fathom_checker *)w;
	const struct fathom_disasm_options o = { .size = sizeof o,
						 .flags = FATHOM_DISASM_NO_LINES,
						 .max_instructions = 1 };
	struct fathom_jit_finding f = { .address = b->address,
					.pc = b->pc,
					.actual = b->actual,
					.described = b->described,
					.function = b->function->name,
					.offset = b->address - b->function->low,
					.kind = b->kind,
					.reg = b->reg,
					.flags =
						b->address == b->pc ? 0 : FATHOM_JIT_FINDING_BEHIND,
					.tid = c->tasks.items[c->last_turn]->tid };
	struct fathom_disasm *d = NULL;

	if (!c->options.finding)
		return;
	if (!fathom_disassemble(c->target, &o, b->address, b->address + LONGEST_INSTRUCTION, &d,
				NULL) &&
	    fathom_disasm_count(d)) {
		const struct fathom_instruction *i = fathom_disasm_get(d, 0);

		f.text = i->text;
		f.bytes = i->bytes;
		f.n_bytes = i->size;
	}
	c->options.finding(c->options.data, &f);
	fathom_disasm_free(d);
}

/* Takes note of what has happened, if anything has; waits for it if @wait. */
static bool take_events(struct fathom_checker *c, bool wait)
{
	int flags = __WALL | __WNOTHREAD | (wait ? 0 : WNOHANG);
	bool any = false;
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, flags)) > 0 || (tid < 0 && errno == EINTR)) {
		if (tid < 0)
			continue;
		fathom_checker_note(c, tid, status);
		any = true;
		flags |= WNOHANG;
	}
	return any;
}

/* Handles all events that can be; returns whether there were some. */
static bool handle_events(struct fathom_checker *c)
{
	bool any = false;

	for (size_t i = 0; i < c->tasks.n && !c->err && !c->has_ended; i++) {
		struct fathom_checked_task *task = c->tasks.items[i];

		if (!task->has_event || (task->is_unknown && WIFSTOPPED(task->event)))
			continue;
		any = true;
		fathom_checker_handle(c, task);
		/* The array may have changed. */
		i = (size_t)-1;
	}
	return any;
}

/* Returns whether some task may run without a stop. */
static bool any_runs(const struct fathom_checker *c)
{
	for (size_t i = 0; i < c->tasks.n; i++) {
		const struct fathom_checked_task *task = c->tasks.items[i];

		if (!task->is_stopped && !task->is_listening && !task->in_call)
			return true;
	}
	return false;
}

/* Lets threads run that the one whose slice is over may wait for, until something happens. */
static void let_others_run(struct fathom_checker *c)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const int64_t until = fathom_now_ns() + OTHERS_NS;

	c->owes_others = false;
	while (!take_events(c, false) && any_runs(c) && fathom_now_ns() < until)
		nanosleep(&pause, NULL);
}

/* Gives the next task that wants one a turn; returns false if none does. */
static bool give_turn(struct fathom_checker *c)
{
	for (size_t k = 1; k <= c->tasks.n; k++) {
		const size_t i = (c->last_turn + k) % c->tasks.n;
		struct fathom_checked_task *task = c->tasks.items[i];

		if (!task->wants_turn || !task->is_stopped || task->has_event)
			continue;
		c->last_turn = i;
		fathom_checker_turn(c, task);
		c->owes_others = task->wants_turn;
		return true;
	}
	return false;
}

/* Follows the program until it has ended. */
static void follow(struct fathom_checker *c)
{
	while (c->tasks.n && !c->err && !c->has_ended) {
		/* Threads with another reason to stop run on before it is somebody's turn. */
		if (handle_events(c))
			continue;
		if (c->owes_others)
			let_others_run(c);
		else if (!give_turn(c) && !take_events(c, true))
			break;
	}
	if (!c->err && c->closed.failed)
		c->err = fathom_fail(c->reterr, FATHOM_E_OS, "", 0,
				     "pages of its code cannot be protected (mprotect)");
}

/* Fails with what @report has of the program that did not start. */
static void take_report(struct fathom_checker *c, int report)
{
	int number = 0;

	if (c->is_started || c->err)
		return;
	(void)!read(report, &number, sizeof number);
	c->err = fathom_fail(c->reterr, FATHOM_E_OS, "", 0, "the program cannot be run");
	if (c->reterr)
		c->reterr->os_errno = number;
}

/* Ends the program if it runs, and frees all. */
static void deinit(struct fathom_checker *c)
{
	int status;

	if (!c->has_ended) {
		kill(c->tracee.pid, SIGKILL);
		c->tracee.note = NULL;
		do
			status = fathom_tracee_wait(&c->tracee, c->tracee.pid);
		while (status != -1 && WIFSTOPPED(status));
	}
	while (c->tasks.n)
		fathom_checker_remove(c, c->tasks.items[c->tasks.n - 1]);
	fathom_array_free(&c->tasks);
	fathom_array_free(&c->interfaces);
	fathom_array_free(&c->closed);
	fathom_published_destroy(c->published);
	fathom_target_release(c->target);
	fathom_tracee_deinit(&c->tracee);
}

struct run {
	struct fathom_checker checker;
	char *const *argv;
};

static void note(void *data, pid_t tid, int status)
{
	fathom_checker_note(data, tid, status);
}

/* The thread that traces: nobody else's children are waited for on it. */
static void *run_main(void *data)
{
	struct run *run = data;
	struct fathom_checker *c = &run->checker;
	int report;

	c->err = fathom_tracee_start(&c->tracee, run->argv, OPTIONS, false, NULL, NULL, &report,
				     c->reterr);
	if (c->err)
		return NULL;
	c->tracee.note = note;
	c->tracee.data = c;
	if (fathom_checker_add(c, c->tracee.pid)) {
		follow(c);
		take_report(c, report);
	}
	close(report);
	deinit(c);
	return NULL;
}

fathom_err fathom_jit_check_run(struct fathom *session, char *const *argv,
				const struct fathom_jit_check_options *options,
				struct fathom_jit_check_result *ret_result,
				struct fathom_errinfo *reterr)
{
	struct run run = { .argv = argv };
	struct fathom_checker *c = &run.checker;
	pthread_t thread;
	size_t size;

	c->options.size = sizeof c->options;
	if (!argv || !argv[0] ||
	    (options && !FATHOM_OPTIONS_READ(options, &c->options, FATHOM_JIT_CHECK_FRAMES_ONLY)))
		return fathom_fail_options(reterr);
	if (!c->options.slice)
		c->options.slice = SLICE;
	c->session = session;
	c->reterr = reterr;
	c->work.tracee = &c->tracee;
	c->work.flags = c->options.flags;
	c->work.found = tell;
	if (pthread_create(&thread, NULL, run_main, &run))
		return fathom_fail(reterr, FATHOM_E_OS, "", 0, "no thread can be started");
	pthread_join(thread, NULL);
	if (c->err)
		return c->err;
	c->work.count.status = c->status;
	size = ret_result->size < sizeof *ret_result ? ret_result->size : sizeof *ret_result;
	c->work.count.size = size;
	memcpy(ret_result, &c->work.count, size);
	return FATHOM_OK;
}
