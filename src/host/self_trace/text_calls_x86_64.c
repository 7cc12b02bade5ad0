/* SPDX-License-Identifier: MIT */
/*
 * A `syscall` leads to its stub by two jumps, or one that instructions before it make room for. So
 * that is done while the process has one thread. Instructions that cannot be rewritten are not
 * seen.
 *
 * Not handled: stacks, injection.
 */
#include "host/self_trace/text_calls.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/base/context.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/sites/syscall_insns.h"
#include "host/self_trace/self_plans.h"
#include "trace/cancellation_point.h"
#include "trace/linked.h"
#include "host/patch/own_text.h"
#include "host/patch/syscall_change.h"
#include "trace/syscall_linked.h"
#include "trace/machine.h"

/* Where the tracer's own calls are: the linker's symbols. */
extern const char __start_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));
extern const char __stop_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));

/* The state of this process. A child of fork() has the same. */
static struct {
	struct fathom_text_plan plan; /* what leads to stubs */
	bool is_written;
	bool is_made; /* stubs stay, and the plan is that of the first time */
	uint64_t n_left;
} fathom_trace_self_rewriting;

static bool is_own(uint64_t avma)
{
	const uint64_t begin = (uintptr_t)__start_fathom_tracer_syscalls;

	return avma - begin < (uintptr_t)__stop_fathom_tracer_syscalls - begin;
}

/*
 * Returns whether the call at @site must stay where it is: the C library cancels a thread only
 * there. A stub would make it wait for ever.
 */
static bool must_stay(uint64_t site)
{
	uint8_t code[FATHOM_CANCELLATION_BYTES];

	return fathom_trace_read_memory(code, site + FATHOM_X86_SYSCALL_SIZE - sizeof code,
					sizeof code) &&
	       fathom_is_cancellation_point(code, sizeof code);
}

/* Makes the stubs of @calls, of the module at @bias, and plans what leads there. */
static fathom_err place(struct fathom_text_calls *c, const struct fathom_syscall_insns *calls,
			uint64_t bias)
{
	struct fathom_stub_set set = { .hook = (uintptr_t)fathom_trace_syscall_before,
				       .second = (uintptr_t)fathom_trace_syscall_behind };
	struct fathom_own_text text;
	fathom_err err = FATHOM_OK;
	bool fits;

	if (!fathom_own_text_open(&text))
		return fathom_text_fail(&c->info, errno, "/proc/self/mem cannot be opened");
	for (size_t i = 0; !err && i < calls->n; i++) {
		const struct fathom_syscall_insn *call = &calls->items[i];
		const uint64_t site = call->svma + bias;
		const struct fathom_stub_site add = { .site = site,
						      .back = site + FATHOM_X86_SYSCALL_SIZE,
						      .call = call };

		if (is_own(site))
			continue;
		if (!fathom_syscall_can_change(call, bias, &text.memory) || must_stay(site))
			fathom_trace_self_rewriting.n_left++;
		else if (!fathom_array_push(&set, add))
			err = FATHOM_E_MEMORY;
	}
	if (!err && set.n)
		err = fathom_stub_sets_get(c->sets, &set, &c->info);
	for (size_t i = 0; !err && i < set.n; i++) {
		const struct fathom_stub_site *s = &set.items[i];

		fits = true;
		if (!fathom_syscall_plan_change(s->call, bias, s->stub, &text.memory,
						&fathom_trace_self_rewriting.plan, &fits))
			err = FATHOM_E_MEMORY;
		fathom_trace_self_rewriting.n_left += !fits;
	}
	fathom_own_text_close(&text);
	fathom_array_free(&set);
	return err;
}

static fathom_err take_module(struct fathom_text_calls *c, const struct fathom_module_at *m)
{
	struct fathom_syscall_insns calls;
	fathom_err err = fathom_syscall_insns_find(m->module, &calls);

	if (err == FATHOM_E_UNSUPPORTED)
		(void)fathom_fail(&c->info, err, "", 0, "calls cannot be found without libZydis");
	if (!err)
		err = place(c, &calls, m->bias);
	if (err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(&c->info);
	fathom_array_free(&calls);
	return err;
}

bool fathom_text_calls_take(void *data, const struct fathom_module_at *m)
{
	struct fathom_text_calls *c = data;

	/* The vDSO, which the kernel has made, has no name of a file. */
	if (c->is_wanted && !fathom_trace_self_rewriting.is_made && !c->err && m->name[0] != '[')
		c->err = take_module(c, m);
	return !c->is_only;
}

void fathom_text_calls_made(const struct fathom_text_calls *c)
{
	if (!c->is_wanted || fathom_trace_self_rewriting.is_made || c->err)
		return;
	fathom_trace_self_rewriting.is_made = true;
}

/*
 * Makes the text lead to stubs, or, unless @now, what it was, while no handler runs; without memory
 * of the C library's. Undone, an instruction comes before the padding that it jumps to: with empty
 * padding, the `syscall` of the next write would not be reached.
 */
static fathom_err put_plan(bool now, struct fathom_errinfo *reterr)
{
	sigset_t all, before;
	fathom_err err;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = fathom_text_put_unused(&fathom_trace_self_rewriting.plan, now, reterr);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		fathom_trace_self_rewriting.is_written = now;
	return err;
}

static fathom_err change_text(bool now, struct fathom_errinfo *reterr)
{
	if (fathom_trace_self_rewriting.is_written == now)
		return FATHOM_OK;
	if (!fathom_text_is_alone())
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "calls are rewritten only while the process has one thread");
	return put_plan(now, reterr);
}

/*
 * Makes the text what it was, on the way to a call of the program's. Other threads may be in stubs.
 */
static bool leave(void)
{
	return fathom_trace_self_rewriting.is_written && fathom_text_is_alone() &&
	       !put_plan(false, NULL);
}

fathom_err fathom_text_calls_plan(const struct fathom_trace_options *options,
				  struct fathom_errinfo *reterr)
{
	fathom_trace_self_syscalls.is_on = false;
	if (!options->syscalls)
		return FATHOM_OK;
	FATHOM_TRY(fathom_self_trace_plans_make(options->syscalls, reterr));
	if (!fathom_trace_self_rewriting.is_made) {
		fathom_text_plan_clear(&fathom_trace_self_rewriting.plan);
		fathom_trace_self_rewriting.n_left = 0;
	}
	fathom_trace_self_syscalls.leaves = leave;
	fathom_trace_self_syscalls.is_on = true;
	return FATHOM_OK;
}

fathom_err fathom_text_calls_put(bool now, struct fathom_errinfo *reterr)
{
	if (now && !fathom_trace_self_syscalls.is_on)
		return FATHOM_OK;
	if (!now)
		fathom_trace_self_syscalls.is_on = false;
	return change_text(now, reterr);
}

uint64_t fathom_text_calls_left(void)
{
	return fathom_trace_self_syscalls.is_on ? fathom_trace_self_rewriting.n_left : 0;
}
