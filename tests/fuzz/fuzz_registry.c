/* SPDX-License-Identifier: MIT */
/*
 * The registry of published code of a hostile process, in memory that changes while it is read: its
 * head, table, and symbol files.
 */
#include "made_lists.h"

#include "host/jit/registry_list.h"

static void run(struct fathom *session, struct fuzz *f)
{
	const uint8_t flags = fuzz_byte(f);
	const struct fathom_gdb_list list = {
		.layout = fathom_gdb_layout(true, EM_X86_64, false),
		.registry = BASE,
	};
	const uint64_t code = fuzz_number(f);
	struct fuzz rest = *f;

	fuzz_use(fathom_registry_since(fuzz_rest(&rest), code));
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
