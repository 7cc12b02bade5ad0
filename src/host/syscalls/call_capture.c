/* SPDX-License-Identifier: MIT */
#include "host/syscalls/call_capture.h"

#include "host/syscalls/decoder.h"

static void capture_half(struct fathom_syscall_record *record, bool at_exit,
			 const struct fathom_syscall_options *options,
			 const struct fathom_reader *memory)
{
	struct fathom_decoder d = { .options = options, .record = record, .memory = memory };

	fathom_decode_begin(&d);
	fathom_decode_half(&d, at_exit, NULL);
	fathom_decode_dump(&d, at_exit);
	if (at_exit)
		fathom_decode_result(&d);
}

bool fathom_syscall_capture_entry(const struct fathom_syscall_call *call,
				  const struct fathom_syscall_options *options,
				  const struct fathom_reader *memory, uint8_t *bytes, size_t cap,
				  struct fathom_syscall_record *ret)
{
	struct fathom_syscall_record record;

	if (!fathom_syscall_record_begin(&record, bytes, cap, call))
		return false;
	capture_half(&record, false, options, memory);
	*ret = record;
	return true;
}

void fathom_syscall_capture_exit(struct fathom_syscall_record *record, int64_t result,
				 const struct fathom_syscall_options *options,
				 const struct fathom_reader *memory)
{
	fathom_syscall_record_end(record, FATHOM_SYSCALL_RETURNED, result);
	capture_half(record, true, options, memory);
}
