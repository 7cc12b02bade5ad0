/* SPDX-License-Identifier: MIT */
#include "host/syscalls/syscall_capture.h"

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

/* Memory as a record has it. */
struct recorded {
	struct fathom_syscall_record *record;
	bool at_exit;
};

static size_t read_recorded(void *data, uint64_t avma, void *to, size_t size)
{
	const struct recorded *r = data;

	return fathom_syscall_record_read(r->record, avma, r->at_exit, to, size);
}

bool fathom_syscall_capture_again(struct fathom_syscall_record *from,
				  const struct fathom_syscall_options *options, uint8_t *bytes,
				  size_t cap, struct fathom_syscall_record *ret)
{
	struct recorded recorded = { from, false };
	const struct fathom_reader memory = { .read = read_recorded, .data = &recorded };
	struct fathom_syscall_call call;
	int64_t result;

	fathom_syscall_record_call(from, &call);
	result = call.result;
	if (!fathom_syscall_capture_entry(&call, options, &memory, bytes, cap, ret))
		return false;
	recorded.at_exit = true;
	if (call.end == FATHOM_SYSCALL_RETURNED)
		fathom_syscall_capture_exit(ret, result, options, &memory);
	return true;
}
