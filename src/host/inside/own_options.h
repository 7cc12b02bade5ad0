/* SPDX-License-Identifier: MIT */
/* The words by which a process says how it wants to be traced (fathom_trace_start()). */
#ifndef FATHOM_INSIDE_OWN_OPTIONS_H
#define FATHOM_INSIDE_OWN_OPTIONS_H

#include "fathom/trace.h"
#include "host/base/array.h"

struct fathom_own_words {
	FATHOM_ARRAY_OF(const char *);
};

struct fathom_own_options {
	struct fathom_trace_options trace;
	struct fathom_trace_syscalls syscalls;
	bool has_syscalls;
	enum fathom_trace_format format;
	bool is_json;
	bool counts;
	uint32_t last;   /* keep so many events; 0: all are written at once */
	const char *log; /* path; NULL: standard error */
	char *text;      /* which words point into */
	struct fathom_own_words only;
	struct fathom_own_words under;
	struct fathom_own_words except;
	struct fathom_own_words inject;
	struct {
		FATHOM_ARRAY_OF(struct fathom_trace_at);
	} at;
};

/* Reads @text, which may be NULL. FATHOM_E_ARGUMENT says what is wrong; FATHOM_E_MEMORY. */
fathom_err fathom_own_options_read(const char *text, struct fathom_own_options *o,
				   struct fathom_errinfo *reterr);
void fathom_own_options_deinit(struct fathom_own_options *o);

#endif
