/* SPDX-License-Identifier: MIT */
/*
 * What descriptors of a call are open for, kept in its record: the pieces of memory that no program
 * has, so a text tells what was open at the moment of the call.
 */
#ifndef FATHOM_SYSCALLS_CALL_FILES_H
#define FATHOM_SYSCALLS_CALL_FILES_H

#include "host/syscalls/call_format.h"

/*
 * Adds what the descriptors in the text of @record, as it is with @options, are open for in thread
 * @tid, as /proc has it.
 */
void fathom_call_files_add(struct fathom_syscall_record *record,
			   const struct fathom_syscall_options *options, int32_t tid);

/* struct fathom_syscall_options.name_fd, with the struct fathom_syscall_record as data. */
bool fathom_call_files_name(void *record, int32_t fd, bool after, struct fathom_text *out);

#endif
