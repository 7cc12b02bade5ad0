/* SPDX-License-Identifier: MIT */
/*
 * How stacks go through code that is put into this process beside compiled code: call frame
 * information of compilers does not reach there. It is published as that of JIT code.
 */
#ifndef FATHOM_TRACE_CODE_ROWS_H
#define FATHOM_TRACE_CODE_ROWS_H

#include "fathom/jit.h"
#include "host/base/array.h"

/* The published code. All zero, there is none. */
struct fathom_code_rows {
	FATHOM_ARRAY_OF(struct fathom_jit_arena *);
};

/*
 * Publishes the @n @functions, which are sorted by address. Those that lie @far bytes or more from
 * the one before begin another arena. What fails is left out.
 */
void fathom_code_rows_publish(struct fathom_code_rows *rows,
			      const struct fathom_jit_function *functions, size_t n, uint64_t far);
void fathom_code_rows_withdraw(struct fathom_code_rows *rows);

#endif
