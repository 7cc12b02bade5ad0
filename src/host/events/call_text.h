/* SPDX-License-Identifier: MIT */
/* Texts of system calls, from their records. */
#ifndef FATHOM_EVENTS_CALL_TEXT_H
#define FATHOM_EVENTS_CALL_TEXT_H

#include "fathom/trace.h"
#include "host/syscalls/call_format.h"
#include "host/syscalls/call_table.h"

/* Names the kernel in place of the file of a function. */
#define FATHOM_CALL_MODULE "[kernel]"

/* Functions that stand for system calls have the first numbers of a run. */
#define FATHOM_CALL_FUNCTIONS (FATHOM_SYSCALL_TABLES * FATHOM_CALLS_EACH)
#define FATHOM_CALLS_EACH     512

/* Memory of a text. */
struct fathom_call_text {
	char *text;
	size_t cap;
};

/* Makes texts, one at a time. */
struct fathom_call_teller {
	struct fathom_syscall_options options;
	struct fathom_call_text line;
	struct fathom_call_text dump;
	char name[32]; /* of a call that has none in the table */
	struct fathom_trace_syscall told;
	struct fathom_trace_function *functions; /* FATHOM_CALL_FUNCTIONS; NULL: none yet */
};

/* Copies what @from says of texts; NULL: the seed's texts. */
void fathom_call_options(const struct fathom_trace_syscalls *from,
			 struct fathom_syscall_options *ret);

/* Makes @t tell of calls as @options say; NULL: in the seed's texts. */
void fathom_call_teller_init(struct fathom_call_teller *t,
			     const struct fathom_trace_syscalls *options);
void fathom_call_teller_deinit(struct fathom_call_teller *t);

/*
 * Returns what @record, of @n bytes, tells; it is valid until the next call. NULL: it is no record,
 * or without memory.
 */
struct fathom_trace_syscall *fathom_call_tell(struct fathom_call_teller *t, const void *record,
					      size_t n);

/*
 * Returns the function that stands for call @number of @machine; all that have no name are one.
 * NULL without memory.
 */
const struct fathom_trace_function *fathom_call_function(struct fathom_call_teller *t,
							 uint32_t machine, uint64_t number);

#endif
