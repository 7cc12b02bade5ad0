/* SPDX-License-Identifier: MIT */
/*
 * straying: registers a function with GDB's JIT interface whose entry leads to another place without
 * memory all the time, as a list under change does for a moment. Prints where the function is.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#include "gdb_jit.h"
#include "symfile.h"

int main(void)
{
	static struct jit_code_entry entry;
	static struct symfile file;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile struct jit_code_entry *e = &entry;

	make_symfile(&file, 1, (uint64_t)code);
	entry.symfile_addr = (const char *)&file;
	entry.symfile_size = sizeof file;
	register_entry(&entry);
	e->next_entry = (struct jit_code_entry *)4096;
	printf("%lx\n", (unsigned long)code);
	fflush(stdout);
	for (uint64_t at = 4096;; at = at % (1 << 20) + 8)
		e->next_entry = (struct jit_code_entry *)at;
}
