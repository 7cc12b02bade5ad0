/* SPDX-License-Identifier: MIT */
#include "host/self_trace/text_calls.h"

#include "host/base/context.h"
#include "host/code/aarch64/arm_instructions.h"
#include "host/sites/syscall_insns.h"
#include "host/self_trace/self_plans.h"
#include "safe/base/peek.h"
#include "trace/syscall_linked.h"

/* Where the tracer's own calls are (src/trace/machine_aarch64.c): the linker's symbols. */
extern const char __start_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));
extern const char __stop_fathom_tracer_syscalls[] __attribute__((visibility("hidden")));

/* Returns why @s cannot be had here, or NULL. */
static const char *refusal(const struct fathom_trace_syscalls *s)
{
	if (s->n_inject)
		return "--inject on this machine";
	return s->flags & FATHOM_SYSCALLS_STACKS ? "--stacks on this machine" : NULL;
}

fathom_err fathom_text_calls_plan(const struct fathom_trace_options *options,
				  struct fathom_errinfo *reterr)
{
	const struct fathom_trace_syscalls *wanted = options->syscalls;

	fathom_trace_self_syscalls.is_on = false;
	if (!wanted)
		return FATHOM_OK;
	if (refusal(wanted))
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0, refusal(wanted));
	FATHOM_TRY(fathom_self_trace_plans_make(wanted, reterr));
	fathom_trace_self_syscalls.is_on = true;
	return FATHOM_OK;
}

/* Returns whether the instruction at @avma is one of those that make the tracer's own calls. */
static bool is_own(uint64_t avma)
{
	const uint64_t begin = (uintptr_t)__start_fathom_tracer_syscalls;

	return avma - begin < (uintptr_t)__stop_fathom_tracer_syscalls - begin;
}

static bool is_svc(uint64_t avma)
{
	uint32_t op;

	return fathom_peek(avma, &op, sizeof op) == sizeof op && op == FATHOM_ARM_SVC;
}

/* Collects the calls of @m that can be changed. */
static fathom_err collect(const struct fathom_syscall_insns *calls, uint64_t bias,
			  struct fathom_stub_set *ret)
{
	for (size_t i = 0; i < calls->n; i++) {
		const uint64_t avma = calls->items[i].svma + bias;
		const struct fathom_stub_site site = { .site = avma,
						       .back = avma + FATHOM_ARM_SIZE };

		if (!is_own(avma) && is_svc(avma) && !fathom_array_push(ret, site))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

/* Adds the changes by which the calls in @set lead to their stubs. */
static fathom_err add_changes(const struct fathom_stub_set *set, struct fathom_text_plan *plan)
{
	const uint32_t svc = FATHOM_ARM_SVC;
	uint32_t jump;

	for (size_t i = 0; i < set->n; i++) {
		const struct fathom_stub_site *s = &set->items[i];

		if (s->stub && fathom_arm_jump(s->site, s->stub, &jump) &&
		    !fathom_text_plan_add(plan, s->site, &svc, &jump, sizeof jump, 0))
			return FATHOM_E_MEMORY;
	}
	return FATHOM_OK;
}

static fathom_err take_module(struct fathom_text_calls *c, const struct fathom_module_at *m)
{
	struct fathom_stub_set set = { .hook = (uintptr_t)fathom_trace_syscall_before,
				       .second = (uintptr_t)fathom_trace_syscall_behind };
	struct fathom_syscall_insns calls;
	fathom_err err = fathom_syscall_insns_find(m->module, &calls);

	if (!err)
		err = collect(&calls, m->bias, &set);
	if (!err && set.n)
		err = fathom_stub_sets_get(c->sets, &set, &c->info);
	if (!err)
		err = add_changes(&set, c->plan);
	if (err == FATHOM_E_MEMORY)
		(void)fathom_fail_memory(&c->info);
	fathom_array_free(&calls);
	fathom_array_free(&set);
	return err;
}

bool fathom_text_calls_take(void *data, const struct fathom_module_at *m)
{
	struct fathom_text_calls *c = data;

	/* The vDSO, which the kernel has made, has no name of a file. */
	if (c->is_wanted && !c->err && m->name[0] != '[')
		c->err = take_module(c, m);
	return !c->is_only;
}

void fathom_text_calls_made(const struct fathom_text_calls *c)
{
	(void)c;
}

/* They are in the plan of all. */
fathom_err fathom_text_calls_put(bool now, struct fathom_errinfo *reterr)
{
	(void)now;
	(void)reterr;
	return FATHOM_OK;
}

uint64_t fathom_text_calls_left(void)
{
	return 0;
}
