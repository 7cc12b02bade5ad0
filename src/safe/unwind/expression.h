/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions (DWARF 5, 2.5) as far as call frame information may use them (6.4.2): no calls,
 * no pieces, no types, no frame base.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_EXPRESSION_H
#define FATHOM_UNWIND_EXPRESSION_H

#include "fathom/trust.h"
#include "safe/base/reader.h"
#include "safe/unwind/row.h"

/* Frame in which an expression is evaluated. */
struct fathom_expression_frame {
	const struct fathom_registers *registers;
	const struct fathom_unwind_arch *arch;
	const struct fathom_reader *memory;
	uint64_t bias;    /* of the module: added to DW_OP_addr */
	bool swap;        /* its byte order is not this machine's */
	bool has_initial; /* the stack begins with @initial: the CFA */
	uint64_t initial;
};

/*
 * Evaluates @expression; it runs at most FATHOM_EXPRESSION_STEPS operations and keeps at most
 * FATHOM_EXPRESSION_DEPTH values, which are as wide as the machine's registers. Returns
 * FATHOM_STOP_NONE with *@ret; FATHOM_STOP_REGISTER if it needs an unknown register;
 * FATHOM_STOP_UNREADABLE; or FATHOM_STOP_NO_RULE if it is damaged, uses something else, or meets a
 * limit.
 */
enum fathom_stop fathom_expression_run(const struct fathom_expression_frame *f,
				       struct fathom_bytes expression, uint64_t *ret);

#endif
