/* SPDX-License-Identifier: MIT */
/*
 * A CPython whose structures are any bytes: byte 0 chooses the version, the rest is its memory from
 * FUZZ_BASE on, in which the types are at fixed places. All of it is the stack, too.
 */
#include "interpreter.h"

#include <stdlib.h>

#include "host/interpreters/python.h"

/* Bytes before the types, as tests/fuzz/seeds.py lays them out; _PyRuntime is at the start. */
enum { CODE_TYPE = 0x800, TEXT_TYPE = 0xa00, BYTES_TYPE = 0xa40 };

/* Returns whether the CPython of version 3.@minor is as it should be. */
static bool has_offsets(struct fathom_runtime_found *f, uint16_t minor)
{
	struct fathom_python *p = f->own;

	p->runtime = FUZZ_BASE;
	p->code_type = FUZZ_BASE + CODE_TYPE;
	p->text_type = FUZZ_BASE + TEXT_TYPE;
	p->bytes_type = FUZZ_BASE + BYTES_TYPE;
	/* Of earlier versions, the types are looked at where their symbols are. */
	return minor < 11 || fathom_python_find_offsets(f, 0x030002f0 | (uint32_t)minor << 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t minors[] = { 11, 12, 13, 14, 8, 9, 10 };
	struct fathom_bytes memory = { data + 1, size ? size - 1 : 0 };
	const struct fathom_reader reader = { .read = fuzz_read_memory, .data = &memory };
	const uint16_t minor = minors[(size ? data[0] : 0) % (sizeof minors / sizeof *minors)];
	struct fathom_runtime_found f = {
		.memory = &reader,
		.provider = minor < 11 ? &fathom_python_old : &fathom_python,
		.own = minor < 11 ? fathom_python_old_create(FUZZ_BASE, minor)
				  : calloc(1, sizeof(struct fathom_python))
	};
	const struct fathom_script_stack stack = { FUZZ_BASE, FUZZ_BASE + size, NULL };
	const char *lock;
	int32_t owner;

	if (f.own && size && has_offsets(&f, minor)) {
		fuzz_use_runtime(&f, stack);
		if (f.provider->lock(&f, FUZZ_BASE + 0x200, &lock, &owner))
			fuzz_use((uint64_t)owner);
	}
	fathom_runtime_release(&f);
	return 0;
}
