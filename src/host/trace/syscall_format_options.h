/* SPDX-License-Identifier: MIT */
/* How single calls are shown, by sets of calls and of descriptors, as -e of strace(1) has them. */
#ifndef FATHOM_TRACE_SYSCALL_FORMAT_OPTIONS_H
#define FATHOM_TRACE_SYSCALL_FORMAT_OPTIONS_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/syscalls/syscall_record.h"
#include "host/trace/syscall_set.h"

/* Descriptors: these, or all others. */
struct fathom_descriptor_set {
	FATHOM_ARRAY_OF(int32_t);
	bool is_others;
};

struct fathom_syscall_format_options {
	struct fathom_syscall_set abbreviated;
	struct fathom_syscall_set structs; /* those whose structs are shown */
	struct fathom_syscall_set numbers;
	struct fathom_descriptor_set reads;
	struct fathom_descriptor_set writes;
	bool has_abbreviated; /* the set is given */
	bool has_structs;
	bool has_numbers;
	bool has_dumps;
};

/* Reads the sets of @from. FATHOM_E_ARGUMENT says what cannot be read; FATHOM_E_MEMORY. */
fathom_err fathom_syscall_format_options_read(const struct fathom_trace_syscalls *from,
					      struct fathom_syscall_format_options *ret,
					      struct fathom_errinfo *reterr);
void fathom_syscall_format_options_deinit(struct fathom_syscall_format_options *m);

/* Returns how @call is shown: enum fathom_syscall_format. */
uint16_t fathom_syscall_format_options_of(const struct fathom_syscall_format_options *m,
					  const struct fathom_syscall_call *call);

#endif
