/* SPDX-License-Identifier: MIT */
/* The words by which a process says how it wants to be traced (fathom_trace_start()). */
#ifndef FATHOM_SELF_TRACE_SELF_OPTIONS_H
#define FATHOM_SELF_TRACE_SELF_OPTIONS_H

#include "fathom/trace.h"

struct fathom_self_trace_options {
	struct fathom_trace_options trace;
	struct fathom_trace_syscalls syscalls;
	struct fathom_trace_settings settings; /* which point to both */
	char *text;                            /* the words */
};

/* Reads @text, which may be NULL. FATHOM_E_ARGUMENT says what is wrong; FATHOM_E_MEMORY. */
fathom_err fathom_self_trace_options_read(const char *text, struct fathom_self_trace_options *o,
					  struct fathom_errinfo *reterr);
void fathom_self_trace_options_deinit(struct fathom_self_trace_options *o);

#endif
