/* SPDX-License-Identifier: MIT */
/*
 * System calls of a process that changes its own text: each instruction that calls the kernel, in
 * the program, the dynamic linker and all libraries, leads to a stub, which calls the hook
 * (src/trace/syscall_linked.h). Each processor has these functions of its own (text_calls_x86_64.c
 * and so on).
 *
 * Not handled: libraries that are loaded later, code that the program makes, the vDSO.
 */
#ifndef FATHOM_SELF_TRACE_TEXT_CALLS_H
#define FATHOM_SELF_TRACE_TEXT_CALLS_H

#include "fathom/trace.h"
#include "host/module/place.h"
#include "host/self_trace/stub_sets.h"
#include "host/patch/text_plan.h"

/* The rewritten system calls of the modules. */
struct fathom_text_calls {
	struct fathom_stub_sets *sets;
	struct fathom_text_plan *plan; /* what leads to stubs (aarch64) */
	bool is_wanted;                /* system calls are */
	bool is_only;                  /* sites of functions are not wanted */
	fathom_err err;                /* the first one */
	struct fathom_errinfo info;
};

/*
 * Makes the plans that the hook follows, as @options say; without options->syscalls it records
 * nothing. FATHOM_E_UNSUPPORTED: what they want takes a tracer; FATHOM_E_ARGUMENT, FATHOM_E_MEMORY.
 */
fathom_err fathom_text_calls_plan(const struct fathom_trace_options *options,
				  struct fathom_errinfo *reterr);

/*
 * Adds the calls of @m to @data, a struct fathom_text_calls. Returns whether its sites of functions
 * are wanted (fathom_wants_module_fn).
 */
bool fathom_text_calls_take(void *data, const struct fathom_module_at *m);

/* Called when @c has those of all modules. */
void fathom_text_calls_made(const struct fathom_text_calls *c);

/*
 * Makes the instructions lead to their stubs, or, unless @now, what they were, where they are not
 * in that plan. FATHOM_E_OS, FATHOM_E_UNSUPPORTED, FATHOM_E_MEMORY: nothing has changed.
 */
fathom_err fathom_text_calls_put(bool now, struct fathom_errinfo *reterr);

/* Returns how many instructions cannot lead elsewhere. */
uint64_t fathom_text_calls_left(void);

#endif
