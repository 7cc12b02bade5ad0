/* SPDX-License-Identifier: MIT */
#ifndef FATHOM_TRACE_TRACED_RUN_H
#define FATHOM_TRACE_TRACED_RUN_H

#include "fathom/trace.h"
#include "host/trace/injected_code.h"

/*
 * fathom_trace_attach() to the process that made this one, its reader, by fork(). @insider: what
 * both share.
 */
fathom_err fathom_trace_attach_telling(struct fathom *session, int32_t pid,
				       const struct fathom_trace_options *options,
				       const struct fathom_self_trace_link *insider,
				       struct fathom_trace_result *ret_result,
				       struct fathom_errinfo *reterr);

#endif
