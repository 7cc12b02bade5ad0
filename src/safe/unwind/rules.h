/* SPDX-License-Identifier: MIT */
/*
 * Rows as rules: fathom/unwind.h has the form. A rule has what most rows say, for the stack
 * pointer, the frame pointer and the pc.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_RULES_H
#define FATHOM_UNWIND_RULES_H

#include "fathom/unwind.h"
#include "safe/unwind/row.h"

/* Returns the rule of @row; @is_signal: of a signal frame. */
struct fathom_unwind_rule fathom_rule_of_row(const struct fathom_row *row,
					     const struct fathom_unwind_arch *arch, bool is_signal);

#endif
