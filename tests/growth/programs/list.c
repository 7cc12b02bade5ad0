/* SPDX-License-Identifier: MIT */
/* list NUMBER: has a list of so many entries in GDB's JIT interface, of symbol files that are none. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
	struct entry *next;
	struct entry *prev;
	const void *symfile;
	uint64_t size;
};

struct {
	uint32_t version;
	uint32_t action;
	struct entry *relevant;
	struct entry *first;
} __jit_debug_descriptor = { .version = 1 };

void __jit_debug_register_code(void)
{
}

int main(int argc, char **argv)
{
	const size_t n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	struct entry *e = calloc(n, sizeof *e);

	for (size_t i = 0; e && i < n; i++)
		e[i] = (struct entry){ .next = i + 1 < n ? &e[i + 1] : NULL,
				       .prev = i ? &e[i - 1] : NULL,
				       .symfile = &e[i],
				       .size = sizeof e[i] };
	__jit_debug_descriptor.first = e;
	puts("done");
	fflush(stdout);
	return getchar();
}
