/* SPDX-License-Identifier: MIT */
/*
 * A process that rewrites its own `syscall` instructions, without ptrace(2) (x86-64): each leads to
 * a stub, which calls the hook (src/trace/syscall_linked.h). That is done while the process has one
 * thread. Instructions that cannot be rewritten are not seen, and the log says how many they are.
 *
 * Not handled: functions, stacks, injection; libraries that are loaded later; code that the program
 * makes; the vDSO.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fathom/target.h"
#include "host/base/context.h"
#include "host/code/x86_64/x86_instructions.h"
#include "host/sites/syscall_insns.h"
#include "host/sites/list.h"
#include "host/self_trace/self_follow.h"
#include "host/self_trace/self_plans.h"
#include "host/self_trace/self_rings.h"
#include "host/self_trace/stub_pool.h"
#include "trace/cancellation_point.h"
#include "trace/linked.h"
#include "host/patch/own_text.h"
#include "trace/syscall_linked.h"
#include "trace/machine.h"

/* Where the tracer's own calls are: the linker's symbols. */
extern const char __start_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));
extern const char __stop_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));

/* The state of this process. A child of fork() has the same. */
static struct {
	struct fathom_stub_pools pools;
	struct fathom_text_plan plan; /* what leads to stubs */
	bool is_written;
	bool is_made; /* stubs stay, and the plan is that of the first time */
	uint64_t n_left;
} fathom_trace_self_rewriting;

/* The result of listing the modules. */
struct finding {
	fathom_err err;
	struct fathom_errinfo *reterr;
};

static bool is_own(uint64_t avma)
{
	const uint64_t begin = (uintptr_t)__start_fathom_tracer_syscalls;

	return avma - begin < (uintptr_t)__stop_fathom_tracer_syscalls - begin;
}

/* Adds a change of @size bytes at @avma. */
static bool add_change(uint64_t avma, const uint8_t *bytes, size_t size)
{
	return fathom_text_plan_add(&fathom_trace_self_rewriting.plan, avma,
				    (const void *)(uintptr_t)avma, bytes, size, 0);
}

/* Adds the changes by which the call at @s, of the module at @bias, leads to its stub. */
static bool add_changes(const struct fathom_stub_site *s, uint64_t bias)
{
	const struct fathom_syscall_insn *c = s->call;
	const uint64_t jump = c->moved_size ? s->site - c->moved_size : c->padding + bias;
	uint8_t code[FATHOM_X86_BRANCH_SIZE];
	uint8_t to_padding[FATHOM_X86_SHORT_SIZE];

	if (!s->stub || !fathom_x86_put_jump(jump, s->stub, code)) {
		fathom_trace_self_rewriting.n_left++;
		return true;
	}
	return add_change(jump, code, sizeof code) &&
	       (c->moved_size || !fathom_x86_put_short_jump(s->site, jump, to_padding) ||
		add_change(s->site, to_padding, sizeof to_padding));
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

/* Returns whether call @c is at @site, where the file says, and can lead elsewhere. */
static bool can_move(const struct fathom_syscall_insn *c, uint64_t site)
{
	return (c->moved_size || c->padding) &&
	       fathom_x86_is_syscall((const void *)(uintptr_t)site) && !must_stay(site);
}

/* Makes the stubs of the calls of the module at @bias, and plans what leads there. */
static fathom_err place(const struct fathom_syscall_insns *calls, uint64_t bias,
			struct fathom_errinfo *reterr)
{
	struct fathom_stub_pool pool = { .hook = (uintptr_t)fathom_trace_syscall_before,
					 .second = (uintptr_t)fathom_trace_syscall_behind };
	fathom_err err = FATHOM_OK;

	for (size_t i = 0; !err && i < calls->n; i++) {
		const struct fathom_syscall_insn *c = &calls->items[i];
		const uint64_t site = c->svma + bias;
		const struct fathom_stub_site add = { .site = site,
						      .behind = site + FATHOM_X86_SYSCALL_SIZE,
						      .call = c };

		if (is_own(site))
			continue;
		if (!can_move(c, site))
			fathom_trace_self_rewriting.n_left++;
		else if (!fathom_array_push(&pool, add))
			err = FATHOM_E_MEMORY;
	}
	if (!err && pool.n)
		err = fathom_stub_pools_get(&fathom_trace_self_rewriting.pools, &pool, reterr);
	for (size_t i = 0; !err && i < pool.n; i++)
		if (!add_changes(&pool.items[i], bias))
			err = FATHOM_E_MEMORY;
	fathom_array_free(&pool);
	return err;
}

/* Takes the calls of @m (fathom_wants_module_fn). */
static bool take_module(void *data, const struct fathom_module_at *m)
{
	struct finding *f = data;
	struct fathom_syscall_insns calls;

	/* The vDSO, which the kernel has made, has no name of a file. */
	if (f->err || m->name[0] == '[')
		return false;
	f->err = fathom_syscall_insns_find(m->module, &calls);
	if (f->err == FATHOM_E_UNSUPPORTED)
		(void)fathom_fail(f->reterr, f->err, "", 0,
				  "calls cannot be found without libZydis");
	if (!f->err)
		f->err = place(&calls, m->bias, f->reterr);
	if (f->err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(f->reterr);
	fathom_array_free(&calls);
	return false;
}

/* Makes the stubs of all modules, once. */
static fathom_err make_stubs(struct fathom_errinfo *reterr)
{
	const struct fathom_options o = { .size = sizeof o, .threads = 1 };
	struct finding f = { .reterr = reterr };
	const struct fathom_sites_choice choice = { .wants = take_module, .data = &f };
	struct fathom_sites *sites = NULL;
	struct fathom_target *self = NULL;
	struct fathom *session;
	fathom_err err;

	if (fathom_trace_self_rewriting.is_made)
		return FATHOM_OK;
	FATHOM_TRY(fathom_create(&o, &session, reterr));
	err = fathom_target_open_self(session, NULL, &self, reterr);
	if (!err)
		err = fathom_sites_list(self, NULL, &choice, &sites, reterr);
	if (!err)
		err = f.err;
	fathom_sites_free(sites);
	if (self)
		fathom_target_release(self);
	fathom_destroy(session);
	fathom_trace_self_rewriting.is_made = !err;
	return err;
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

static fathom_err prepare(const struct fathom_trace_options *options, struct fathom_errinfo *reterr)
{
	/* Of a parent, or where that was not possible. */
	FATHOM_TRY(change_text(false, reterr));
	FATHOM_TRY(fathom_self_trace_plans_make(options->syscalls, reterr));
	FATHOM_TRY(fathom_self_trace_rings_make(options, reterr));
	return make_stubs(reterr);
}

/*
 * Makes the text what it was, on the way to a call of the program's. Other threads may be in stubs.
 */
static bool leave(void)
{
	return fathom_trace_self_rewriting.is_written && fathom_text_is_alone() &&
	       !put_plan(false, NULL);
}

static fathom_err begin(pid_t reader, struct fathom_errinfo *reterr)
{
	if (!reader)
		return FATHOM_OK;
	fathom_self_trace_rings_begin(reader);
	fathom_trace_self_syscalls.is_on = true;
	fathom_trace_self_syscalls.leaves = leave;
	return change_text(true, reterr);
}

static fathom_err read_own(struct fathom *session, pid_t pid,
			   const struct fathom_trace_options *options,
			   struct fathom_self_trace_page *talk, struct fathom_errinfo *reterr)
{
	struct fathom_self_trace_follow f = {
		.program = fathom_self_trace_rings(), .pid = pid, .options = options, .talk = talk
	};
	char note[80];

	(void)session;
	if (fathom_trace_self_rewriting.n_left) {
		(void)snprintf(note, sizeof note, "not seen: calls of %llu instruction%s",
			       (unsigned long long)fathom_trace_self_rewriting.n_left,
			       fathom_trace_self_rewriting.n_left == 1 ? "" : "s");
		f.note = note;
	}
	return fathom_self_trace_follow(&f, reterr);
}

static fathom_err end(struct fathom_errinfo *reterr)
{
	fathom_self_trace_rings_end();
	fathom_trace_self_syscalls.is_on = false;
	return change_text(false, reterr);
}

const struct fathom_capture_method fathom_capture_by_rewriting = {
	.prepare = prepare,
	.begin = begin,
	.read = read_own,
	.end = end,
	.silence = fathom_trace_syscalls_silence,
	.change = fathom_self_trace_rings_change
};
