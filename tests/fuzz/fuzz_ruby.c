/* SPDX-License-Identifier: MIT */
/*
 * A Ruby whose structures are any bytes: byte 0 chooses the version, the rest is its memory from
 * FUZZ_BASE on. Without a module, all tags are of loops.
 */
#include "interpreter.h"

#include <stdlib.h>

#include "host/interpreters/ruby.h"

/* Bytes before rb_cThread and the array of names, as tests/fuzz/seeds.py lays them out. */
enum { THREAD_CLASS = 0x1000, NAMES = 0x1800 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t versions[][2] = { { 2, 7 }, { 3, 0 }, { 3, 1 },
					       { 3, 2 }, { 3, 3 }, { 3, 4 } };
	struct fathom_bytes memory = { data + 1, size ? size - 1 : 0 };
	const struct fathom_reader reader = { .read = fuzz_read_memory, .data = &memory };
	struct fathom_ruby *r = calloc(1, sizeof *r);
	struct fathom_runtime_found f = { .memory = &reader, .provider = &fathom_ruby, .own = r };
	const struct fathom_script_stack stack = { FUZZ_BASE, FUZZ_BASE + size, NULL };
	const uint8_t *version;

	if (!r || !size) {
		free(r);
		return 0;
	}
	version = versions[data[0] % (sizeof versions / sizeof *versions)];
	r->thread_class = FUZZ_BASE + THREAD_CLASS;
	r->names = FUZZ_BASE + NAMES;
	r->has_looked = true;
	fathom_ruby_find_offsets(&f, version[0], version[1]);
	if (!f.why)
		fuzz_use_runtime(&f, stack);
	fathom_runtime_release(&f);
	return 0;
}
