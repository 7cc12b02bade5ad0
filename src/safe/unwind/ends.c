/* SPDX-License-Identifier: MIT */
#include "safe/unwind/ends.h"

/* Bytes of code that are looked at, and those after them, which stand for what cannot be read. */
#define CODE_SIZE 36
#define PADDING   8

/* Asks @is_end of the code at @pc. */
static bool ask(const struct fathom_reader *code, uint64_t pc, bool (*is_end)(struct fathom_bytes))
{
	uint8_t bytes[CODE_SIZE + PADDING];

	/* Less than all can be read at the end of a mapping; no instruction is so. */
	memset(bytes, 0xff, sizeof bytes);
	return code->read(code->data, pc, bytes, CODE_SIZE) &&
	       is_end((struct fathom_bytes){ bytes, sizeof bytes });
}

bool fathom_is_context_end(const struct fathom_unwind_arch *arch, const struct fathom_reader *code,
			   uint64_t pc)
{
	return ask(code, pc, arch->is_context_end);
}

bool fathom_is_thread_end(const struct fathom_unwind_arch *arch, const struct fathom_reader *code,
			  uint64_t pc)
{
	return ask(code, pc, arch->is_thread_end);
}

/* Bytes before a call in which the frame pointer is cleared. */
#define BEFORE_CALL 12

bool fathom_clears_frame_pointer(const struct fathom_unwind_arch *arch,
				 const struct fathom_reader *code, uint64_t pc)
{
	uint8_t bytes[BEFORE_CALL];

	return fathom_reader_read(code, pc - sizeof bytes, bytes, sizeof bytes) &&
	       arch->clears_fp((struct fathom_bytes){ bytes, sizeof bytes });
}
