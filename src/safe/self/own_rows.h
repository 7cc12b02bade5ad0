/* SPDX-License-Identifier: MIT */
/*
 * Steps by the call frame information that the modules of this process have in memory: of modules
 * that were not prepared, and where a rule of the prepared tables cannot say it. The loader knows
 * where a module's .eh_frame_hdr is. All of it is copied by reads that cannot fault, into buffers
 * of fixed sizes: it may be damaged, or go away at any time.
 *
 * Not handled: FDEs whose row stands after their first FATHOM_MAX_OWN_FDE bytes; modules whose
 * .eh_frame_hdr has no sorted table; C libraries without _dl_find_object().
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_SELF_OWN_ROWS_H
#define FATHOM_SELF_OWN_ROWS_H

#include "safe/unwind/step.h"

/*
 * Makes @r the registers of the caller, by the row of the code at @avma. *@ret_is_signal: the frame
 * is that of a signal, and the caller's pc exact. Returns as fathom_step_row();
 * FATHOM_STOP_NO_RULE, too, if no row covers @avma, or its module changed meanwhile: @r may
 * be changed then.
 */
enum fathom_stop fathom_own_step_row(uintptr_t avma, const struct fathom_unwind_arch *arch,
				     const struct fathom_step_memory *m, struct fathom_registers *r,
				     bool *ret_is_signal);

/* Finds the bounds of the FDE of the code at @avma; false if there is none. */
bool fathom_own_fde_bounds(uintptr_t avma, uintptr_t *ret_low, uintptr_t *ret_high);

#endif
