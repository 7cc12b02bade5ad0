/* SPDX-License-Identifier: MIT */
/*
 * A Lua whose structures are any bytes: byte 0 chooses the version and whether registers are known,
 * the rest is its memory from FUZZ_BASE on. All of it is the stack, too.
 */
#include "interpreter.h"

#include <stdlib.h>

#include "host/interpreters/lua.h"

/* Where tests/fuzz/seeds.py has instructions. */
enum { OP = 0xc0c };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t versions[][2] = { { 3, 6 }, { 4, 2 }, { 4, 7 } };
	struct fathom_bytes memory = { data + 1, size ? size - 1 : 0 };
	const struct fathom_reader reader = { .read = fuzz_read_memory, .data = &memory };
	struct fathom_lua *l = calloc(1, sizeof *l);
	struct fathom_runtime_found f = { .memory = &reader, .provider = &fathom_lua, .own = l };
	struct fathom_registers registers = { .sp = FUZZ_BASE };
	const struct fathom_script_stack stack = { FUZZ_BASE, FUZZ_BASE + size, &registers };
	const uint8_t *version;

	if (!l || !size) {
		free(l);
		return 0;
	}
	version = versions[(data[0] & 0x7f) % (sizeof versions / sizeof *versions)];
	if (data[0] & 0x80)
		fathom_register_set(&registers, 13, FUZZ_BASE + OP);
	l->offsets = fathom_lua_find_offsets(version[0], version[1]);
	l->loop = (struct fathom_script_loop){ .code = FUZZ_BASE, .size = 16 };
	fuzz_use_runtime(&f, stack);
	fathom_runtime_release(&f);
	return 0;
}
