/* SPDX-License-Identifier: MIT */
/* Texts of system calls, from their records. */
#ifndef FATHOM_EVENTS_SYSCALL_TEXT_H
#define FATHOM_EVENTS_SYSCALL_TEXT_H

#include "fathom/trace.h"
#include "host/syscalls/syscall_format.h"
#include "host/syscalls/syscall_table.h"

/* Names the kernel in place of the file of a function. */
#define FATHOM_SYSCALL_MODULE "[kernel]"

/* Functions that stand for system calls have the first numbers of a run. */
#define FATHOM_SYSCALL_FUNCTIONS (FATHOM_SYSCALL_TABLES * FATHOM_SYSCALLS_EACH)
#define FATHOM_SYSCALLS_EACH     512

/* Memory of a text. */
struct fathom_syscall_text {
	char *text;
	size_t cap;
};

/* Makes texts, one at a time. */
struct fathom_syscall_reporter {
	struct fathom_syscall_options options;
	struct fathom_syscall_text line;
	struct fathom_syscall_text dump;
	char name[32]; /* of a call that has none in the table */
	struct fathom_trace_syscall told;
	struct fathom_trace_function *functions; /* FATHOM_SYSCALL_FUNCTIONS; NULL: none yet */
};

/* Copies what @from says of texts; NULL: the seed's texts. */
void fathom_syscall_text_options(const struct fathom_trace_syscalls *from,
				 struct fathom_syscall_options *ret);

/* Makes @t tell of calls as @options say; NULL: in the seed's texts. */
void fathom_syscall_reporter_init(struct fathom_syscall_reporter *t,
				  const struct fathom_trace_syscalls *options);
void fathom_syscall_reporter_deinit(struct fathom_syscall_reporter *t);

/*
 * Returns what @record, of @n bytes, tells; it is valid until the next call. NULL: it is no record,
 * or without memory.
 */
struct fathom_trace_syscall *fathom_syscall_report(struct fathom_syscall_reporter *t,
						   const void *record, size_t n);

/*
 * Returns the function that stands for call @number of @machine; all that have no name are one.
 * NULL without memory.
 */
const struct fathom_trace_function *fathom_syscall_function(struct fathom_syscall_reporter *t,
							    uint32_t machine, uint64_t number);

#endif
