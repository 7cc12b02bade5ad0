/* SPDX-License-Identifier: MIT */
#include "host/syscalls/syscall_plans.h"

#include <string.h>
#include <sys/prctl.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/syscall_table.h"
#include "host/syscalls/decoder.h"
#include "host/syscalls/plan_ranges.h"

/*
 * Calls that go on elsewhere, or nowhere, depend on the stack that they are made on, or have the
 * tracer change how it traces.
 */
static bool is_for_tracer(const struct fathom_plan_making *m)
{
	static const char *const names[] = {
		"clone",        "clone3",          "fork",    "vfork",
		"execve",       "execveat",        "exit",    "exit_group",
		"rt_sigreturn", "restart_syscall", "seccomp", "arch_prctl",
		"ptrace",       "modify_ldt",      "iopl",    "personality",
		"sigaltstack",  "set_thread_area",
	};
	const char *name = fathom_syscall_name(m->machine, m->number);

	for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
		if (!strcmp(names[i], name))
			return !m->is_alone;
	return false;
}

static bool is_prctl(const struct fathom_plan_making *m)
{
	return (int32_t)m->number == fathom_syscall_by_name(m->machine, "prctl");
}

/* Returns whether @value of the argument that selects makes it such a call. */
static bool is_case_for_tracer(const struct fathom_plan_making *m, uint32_t value)
{
	switch (value) {
	case PR_SET_SECCOMP:
	case PR_GET_SECCOMP:
	case PR_SET_NO_NEW_PRIVS:
	case PR_GET_NO_NEW_PRIVS:
	case PR_SET_TSC:
		return !m->is_alone && is_prctl(m);
	default:
		return false;
	}
}

static bool is_out(uint16_t number)
{
	const uint8_t kind = fathom_types[number].kind;

	return kind == FATHOM_KIND_POINTER_OUT || kind == FATHOM_KIND_POINTER_OUT_ALWAYS ||
	       kind == FATHOM_KIND_POINTER_BOTH || kind == FATHOM_KIND_FUNCTION_OUT ||
	       kind == FATHOM_KIND_FUNCTION_BOTH;
}

/* Adds what is needed of an argument of type @number. */
static bool add_argument(struct fathom_plan_making *m, uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];

	if (m->names_files &&
	    (type->kind == FATHOM_KIND_DESCRIPTOR || type->kind == FATHOM_KIND_DIRECTORY))
		return false;
	if (type->kind <= FATHOM_KIND_ENUM)
		return true;
	switch (type->kind) {
	case FATHOM_KIND_PATH:
		return fathom_plan_add_string(m, FATHOM_TRACE_BEFORE, FATHOM_DECODE_PATH);
	case FATHOM_KIND_STRING:
		return fathom_plan_add_string(m, FATHOM_TRACE_BEFORE,
					      fathom_plan_string_size(m->options));
	case FATHOM_KIND_POINTER:
		return fathom_plan_add_pointed(
			m, m->is_late ? FATHOM_TRACE_AFTER_SUCCESS : FATHOM_TRACE_BEFORE, type->a);
	case FATHOM_KIND_POINTER_OUT:
		return fathom_plan_add_pointed(m, FATHOM_TRACE_AFTER_SUCCESS, type->a);
	case FATHOM_KIND_POINTER_OUT_ALWAYS:
		return fathom_plan_add_pointed(m, FATHOM_TRACE_AFTER, type->a);
	case FATHOM_KIND_POINTER_BOTH:
		m->is_both = true;
		return fathom_plan_add_pointed(m, FATHOM_TRACE_BEFORE, (uint16_t)type->n) &&
		       fathom_plan_add_pointed(m, FATHOM_TRACE_AFTER_SUCCESS, type->a);
	case FATHOM_KIND_FUNCTION:
	case FATHOM_KIND_FUNCTION_OUT:
	case FATHOM_KIND_FUNCTION_BOTH:
		return fathom_plan_add_function(m, type);
	case FATHOM_KIND_IF:
		return add_argument(m, type->a);
	default:
		return false;
	}
}

/* Adds arguments of the @n types at @types, from the one that is added on. */
static bool add_types(struct fathom_plan_making *m, uint16_t types, uint8_t n)
{
	const unsigned first = m->argument;
	bool is_done = true;

	m->n_types = first + n;
	for (unsigned i = 0; i < n && is_done; i++) {
		const uint16_t type = fathom_type_lists[types + i];
		const unsigned before = m->n;

		m->argument = first + i;
		m->is_late |= is_out(type);
		m->is_both = false;
		/* Those that the last one selects are added for each of its cases. */
		is_done = !type || (fathom_types[type].kind == FATHOM_KIND_CASES && i + 1 == n) ||
			  add_argument(m, type);
		/* Where nobody else reads it, the others are better than none. */
		if (!is_done && m->is_alone) {
			m->n = before;
			is_done = true;
		}
	}
	m->argument = first;
	return is_done;
}

/* Makes the run of the arguments of the @n types at @types, and of a result of type @result. */
static void make_run(struct fathom_plan_making *m, uint16_t types, uint8_t n, uint16_t result,
		     struct fathom_trace_run *ret)
{
	const unsigned argument = m->argument;
	const bool is_late = m->is_late;
	const unsigned before = m->n;

	*ret = (struct fathom_trace_run){ 0 };
	if (add_types(m, types, n) && (fathom_plan_add_result(m, result) || m->is_alone))
		fathom_plan_end_run(m, ret);
	m->argument = argument;
	m->is_late = is_late;
	m->n = before;
}

/* Adds the case @c of the group, in the order of values; the first of a value counts. */
static void add_case(struct fathom_plan_making *m, struct fathom_trace_plan *plan,
		     const struct fathom_case *c, uint16_t result)
{
	struct fathom_trace_plans *plans = m->plans;
	struct fathom_trace_case *cases = &plans->cases[plan->first_case];
	struct fathom_trace_case fresh = { .value = c->value };
	unsigned i = 0;

	while (i < plan->n_cases && cases[i].value < c->value)
		i++;
	if (i < plan->n_cases && cases[i].value == c->value)
		return;
	if (!is_case_for_tracer(m, c->value))
		make_run(m, c->types, c->n, c->result ? c->result : result, &fresh.run);
	for (unsigned k = plan->n_cases; k > i; k--)
		cases[k] = cases[k - 1];
	cases[i] = fresh;
	plan->n_cases++;
	plans->n_cases++;
}

/* Makes the cases that the argument before selects, and the run of all others. */
static void make_cases(struct fathom_plan_making *m, const struct fathom_case_group *g,
		       uint16_t result, struct fathom_trace_plan *plan)
{
	const uint8_t arch = fathom_syscall_arch_bit(m->machine);
	const uint16_t others = g->result ? g->result : result;

	if (g->n > FATHOM_TRACE_CASES - m->plans->n_cases)
		return;
	plan->selector = (uint8_t)m->argument;
	plan->mask = g->mask;
	plan->first_case = (uint16_t)m->plans->n_cases;
	plan->n_args = FATHOM_DECODE_ARGUMENTS;
	/* A newer request of prctl() may change how calls are made. */
	if (m->is_alone || !is_prctl(m))
		make_run(m, g->types, g->n_types, others, &plan->run);
	for (const struct fathom_case *c = &fathom_cases[g->first];
	     c < &fathom_cases[g->first] + g->n; c++)
		if (c->arches & arch)
			add_case(m, plan, c, others);
}

/* Returns the cases that the last argument of @call is; NULL: it is none. */
static const struct fathom_case_group *cases_of(const struct fathom_syscall *call)
{
	const struct fathom_type *last =
		call->n_types > 1
			? &fathom_types[fathom_type_lists[call->types + call->n_types - 1]]
			: NULL;

	return last && last->kind == FATHOM_KIND_CASES ? &fathom_case_groups[last->a] : NULL;
}

static bool has_one(const struct fathom_trace_plans *plans, const struct fathom_trace_plan *plan)
{
	bool has = plan->run.is_recorded;

	for (unsigned i = 0; i < plan->n_cases; i++)
		has |= plans->cases[plan->first_case + i].run.is_recorded != 0;
	return has;
}

/* Makes the plan of the call of @m in its plans; false if it has none. */
static bool make(struct fathom_plan_making *m)
{
	const struct fathom_syscall *call = fathom_syscall_find(m->machine, m->number);
	const struct fathom_case_group *cases = call ? cases_of(call) : NULL;
	struct fathom_trace_plan *plan = &m->plans->plans[m->number];

	*plan = (struct fathom_trace_plan){ 0 };
	if (!call || is_for_tracer(m) || (m->names_files && call->result))
		return false;
	plan->n_args = call->n_types;
	if (!cases) {
		make_run(m, call->types, call->n_types, call->result, &plan->run);
	} else if (add_types(m, call->types, call->n_types)) {
		m->argument = call->n_types - 1u;
		make_cases(m, cases, call->result, plan);
	}
	/* Of what has no types, the registers are shown. */
	if (plan->n_args < call->n_arguments)
		plan->n_args = call->n_arguments;
	m->plans->may_be_recorded[m->number] = has_one(m->plans, plan);
	return m->plans->may_be_recorded[m->number];
}

bool fathom_syscall_plan_make(uint32_t machine, uint32_t number,
			      const struct fathom_syscall_options *options, bool names_files,
			      struct fathom_trace_plans *plans)
{
	struct fathom_plan_making m = { .plans = plans,
					.machine = machine,
					.number = number,
					.options = options,
					.names_files = names_files };

	return make(&m);
}

void fathom_syscall_plan_alone(uint32_t machine, uint32_t number,
			       const struct fathom_syscall_options *options,
			       struct fathom_trace_plans *plans)
{
	struct fathom_plan_making m = { .plans = plans,
					.machine = machine,
					.number = number,
					.options = options,
					.is_alone = true };

	(void)make(&m);
}
