/* SPDX-License-Identifier: MIT */
#include "host/self_trace/self_plans.h"

#include <elf.h>
#include <string.h>

#include "host/base/context.h"
#include "host/events/syscall_text.h"
#include "host/syscalls/syscall_plans.h"
#include "host/space/target.h"
#include "host/trace/syscall_set.h"
#include "trace/linked.h"

fathom_err fathom_self_trace_plans_make(const struct fathom_trace_syscalls *wanted,
					struct fathom_errinfo *reterr)
{
	const uint32_t machine = fathom_own_machine();
	struct fathom_trace_plans *plans = &fathom_trace_self_plans;
	struct fathom_syscall_options options;
	struct fathom_syscall_set set;

	/* Both need a thread that stands. */
	if (wanted->n_inject || wanted->flags & FATHOM_SYSCALLS_STACKS)
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "stacks and injection without ptrace(2)");
	fathom_syscall_set_fill(&set);
	if (wanted->set)
		FATHOM_TRY(fathom_syscall_set_read(wanted->set, &set, reterr));
	fathom_syscall_text_options(wanted, &options);
	memset(plans, 0, sizeof *plans);
	for (uint32_t i = 0; i < FATHOM_TRACE_PLANS; i++) {
		fathom_syscall_plan_alone(machine, i, &options, plans);
		plans->plans[i].is_left_out = (fathom_syscall_set_has(&set, machine, i) ? 0 : 1) |
					      (fathom_syscall_set_has(&set, EM_386, i) ? 0 : 2);
	}
	plans->has_words = !(wanted->flags & FATHOM_SYSCALLS_ONLY);
	plans->has_unknown = fathom_syscall_set_has(&set, machine, FATHOM_TRACE_PLANS);
	return FATHOM_OK;
}
