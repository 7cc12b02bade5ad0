/* SPDX-License-Identifier: MIT */
/*
 * Code that objects of this process have published with <fathom/jit.h>: its names, and steps by its
 * rules, from their registries (registries.h).
 *
 * Not handled: lines.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_PUBLISHED_CODE_H
#define FATHOM_SELF_PUBLISHED_CODE_H

#include "safe/self/table.h"
#include "safe/unwind/step.h"

/*
 * Answers for the code at @at into @room, whose address is set; false if none is published there.
 */
bool fathom_self_answer_made(const struct fathom_self *self, uint64_t at,
			     struct fathom_self_room *room);

/*
 * Makes @r the registers of the caller, by the rule of the published code at @avma. Returns as
 * fathom_own_step_row(); FATHOM_STOP_NO_RULE if no code with a rule is published there.
 */
enum fathom_stop fathom_own_step_made(const struct fathom_self *self, uintptr_t avma,
				      const struct fathom_unwind_arch *arch,
				      const struct fathom_step_memory *m,
				      struct fathom_registers *r, bool *ret_is_signal);

#endif
