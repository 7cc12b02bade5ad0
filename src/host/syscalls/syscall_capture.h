/* SPDX-License-Identifier: MIT */
/*
 * Copies what a system call's text will need of the program's memory into its record. Copied are
 * the ranges that fathom_syscall_format() would read with the same options, no others: strings up
 * to their end or the limit, structs, and what these point to.
 */
#ifndef FATHOM_SYSCALLS_SYSCALL_CAPTURE_H
#define FATHOM_SYSCALLS_SYSCALL_CAPTURE_H

#include "host/syscalls/syscall_format.h"
#include "safe/base/reader.h"

/*
 * Begins the record of @call in @cap bytes at @bytes, and copies what is to be read before it;
 * false if @cap is too small for any record.
 */
bool fathom_syscall_capture_entry(const struct fathom_syscall_call *call,
				  const struct fathom_syscall_options *options,
				  const struct fathom_reader *memory, uint8_t *bytes, size_t cap,
				  struct fathom_syscall_record *ret);

/* Stores the result, and copies what is to be read after the call. */
void fathom_syscall_capture_exit(struct fathom_syscall_record *record, int64_t result,
				 const struct fathom_syscall_options *options,
				 const struct fathom_reader *memory);

/*
 * Copies the record @from, whose memory somebody else has copied, to @ret in @cap bytes at @bytes,
 * with what capturing looks up beside: names of network interfaces. False if @cap is too small.
 */
bool fathom_syscall_capture_again(struct fathom_syscall_record *from,
				  const struct fathom_syscall_options *options, uint8_t *bytes,
				  size_t cap, struct fathom_syscall_record *ret);

#endif
