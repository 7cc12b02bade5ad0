/* SPDX-License-Identifier: MIT */
#include "host/patch/syscall_change.h"

#include "host/code/x86_64/x86_instructions.h"

uint64_t fathom_syscall_jump(const struct fathom_syscall_insn *c, uint64_t bias)
{
	return (c->moved_size ? c->svma - c->moved_size : c->padding) + bias;
}

bool fathom_syscall_can_change(const struct fathom_syscall_insn *c, uint64_t bias,
			       struct fathom_text_memory *m)
{
	return (c->moved_size || c->padding) &&
	       fathom_text_holds(m, c->svma + bias, fathom_x86_syscall, sizeof fathom_x86_syscall);
}

bool fathom_syscall_plan_change(const struct fathom_syscall_insn *c, uint64_t bias, uint64_t stub,
				struct fathom_text_memory *m, struct fathom_text_plan *plan,
				bool *ret_fits)
{
	const uint64_t site = c->svma + bias;
	const uint64_t jump = fathom_syscall_jump(c, bias);
	uint8_t old[FATHOM_X86_BRANCH_SIZE], code[sizeof old];
	uint8_t to_padding[FATHOM_X86_SHORT_SIZE];

	*ret_fits = stub && fathom_x86_put_jump(jump, stub, code) &&
		    m->read(m, jump, old, sizeof old) &&
		    (c->moved_size || fathom_x86_put_short_jump(site, jump, to_padding));
	return !*ret_fits ||
	       (fathom_text_plan_add(plan, jump, old, code, sizeof code, 0) &&
		(c->moved_size || fathom_text_plan_add(plan, site, fathom_x86_syscall, to_padding,
						       sizeof to_padding, 0)));
}
