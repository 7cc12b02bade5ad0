/* SPDX-License-Identifier: MIT */
/* GDB's list of JIT code in memory that changes while it is read, and the symbol files in it. */
#include "made_lists.h"

static void run(struct fathom *session, struct fuzz *f)
{
	const uint8_t flags = fuzz_byte(f);
	const struct fathom_gdb_list list = {
		.layout = fathom_gdb_layout(!(flags & 1), flags & 2 ? EM_386 : EM_ARM, flags & 4),
		.descriptor = BASE,
	};
	const uint64_t code = fuzz_number(f);

	ask_all(session, f, &list, flags, code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	struct fathom *session = fuzz_session(NULL);

	run(session, &f);
	fathom_destroy(session);
	return 0;
}
