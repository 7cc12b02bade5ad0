/* SPDX-License-Identifier: MIT */
/*
 * A V8 whose objects are any bytes: byte 0 chooses the version, the rest is its memory from
 * FUZZ_BASE on, all of which is the stack, too. Types are numbers of tests/fuzz/seeds.py.
 */
#include "interpreter.h"

#include <stdlib.h>

#include "host/interpreters/v8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t versions[][2] = { { 9, 4 }, { 10, 2 }, { 11, 3 }, { 12, 4 } };
	struct fathom_bytes memory = { data + 1, size ? size - 1 : 0 };
	const struct fathom_reader reader = { .read = fuzz_read_memory, .data = &memory };
	struct fathom_v8 *v = calloc(1, sizeof *v);
	struct fathom_runtime_found f = { .memory = &reader, .provider = &fathom_v8, .own = v };
	const struct fathom_script_stack stack = { .sp = FUZZ_BASE, .end = FUZZ_BASE + size };
	struct fathom_v8_offsets *o;
	const uint8_t *version;

	if (!v || !size) {
		free(v);
		return 0;
	}
	version = versions[data[0] % (sizeof versions / sizeof *versions)];
	if (!fathom_v8_take_row(v, version[0], version[1]))
		abort();
	o = &v->offsets;
	o->type_function = 0x200;
	o->type_shared = 0x101;
	o->type_script = 0x102;
	o->type_scope = 0x103;
	o->type_bytecode = 0x104;
	o->type_bytes = 0x105;
	o->type_code = 0x106;
	o->type_array = 0x107;
	o->type_baseline = 0x108;
	o->first_context = o->last_context = 0x109;
	o->exit_frame = 25;
	o->runtime_frame = 3;
	v->n_sizes = 256;
	for (size_t i = 0; i < sizeof v->sizes; i++)
		v->sizes[i / 256][i % 256] = (uint8_t)(1 + i % 4);
	fuzz_use_runtime(&f, stack);
	fathom_runtime_release(&f);
	return 0;
}
