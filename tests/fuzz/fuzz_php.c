/* SPDX-License-Identifier: MIT */
/*
 * A PHP whose structures are any bytes: byte 0 chooses the version and whether registers are known,
 * the rest is its memory from FUZZ_BASE on, at the start of which executor_globals is. All of it is
 * the stack, too.
 */
#include "interpreter.h"

#include <elf.h>
#include <stdlib.h>

#include "host/interpreters/php.h"

/* Where tests/fuzz/seeds.py has two frames. */
enum { FRAME = 0x800, OP = 0xa00 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t apis[] = { 20190902, 20210902, 20220829, 20230831, 20240924 };
	struct fathom_bytes memory = { data + 1, size ? size - 1 : 0 };
	const struct fathom_reader reader = { .read = fuzz_read_memory, .data = &memory };
	struct fathom_php *p = calloc(1, sizeof *p);
	struct fathom_runtime_found f = { .memory = &reader, .provider = &fathom_php, .own = p };
	struct fathom_registers registers = { .machine = EM_X86_64, .sp = FUZZ_BASE };
	const struct fathom_script_stack stack = { FUZZ_BASE, FUZZ_BASE + size, &registers };

	if (!p || !size) {
		free(p);
		return 0;
	}
	if (data[0] & 0x80) {
		fathom_register_set(&registers, 14, FUZZ_BASE + FRAME);
		fathom_register_set(&registers, 15, FUZZ_BASE + OP);
	}
	p->globals = FUZZ_BASE;
	p->offsets = fathom_php_find_offsets(apis[(data[0] & 0x7f) % (sizeof apis / sizeof *apis)]);
	p->loop = (struct fathom_script_loop){ .code = FUZZ_BASE, .size = 16, .is_below = true };
	fuzz_use_runtime(&f, stack);
	fathom_runtime_release(&f);
	return 0;
}
