/* SPDX-License-Identifier: MIT */
/*
 * replaced MICROSECONDS: makes a function, registers it with GDB's JIT interface, calls it,
 * unregisters it and makes the next one in its place, without end. Each is called after its number,
 * which it keeps in %ebx while it runs; it runs for up to so many microseconds, some for a hundred
 * times as long. Prints where the code is.
 *
 * Two places of code, of entries and of symbol files take turns, so that what is gone looks like
 * what is there.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gdb_jit.h"
#include "symfile.h"

/* push %rbx; mov $number, %ebx; 1: sub $1, %rdi; jne 1b; pop %rbx; ret; CODE_SIZE bytes. */
static void make_code(unsigned char *code, uint32_t number)
{
	static const unsigned char text[] = { 0x53, 0xbb, 0,    0,    0,    0,    0x48,
					      0x83, 0xef, 0x01, 0x75, 0xfa, 0x5b, 0xc3 };

	memcpy(code, text, sizeof text);
	memcpy(code + 2, &number, sizeof number);
}

int main(int argc, char **argv)
{
	const uint64_t loops = argc == 2 ? (uint64_t)atoi(argv[1]) * 1000 : 1;
	static struct jit_code_entry entries[2];
	static struct symfile files[2];
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return 1;
	printf("0x%lx\n", (unsigned long)code);
	fflush(stdout);
	for (uint32_t i = 1;; i++) {
		/* They take turns out of step: now one is the same, now the other. */
		const uint32_t number = i % 10000000;
		unsigned char *at = code + i / 2 % 2 * CODE_SIZE;
		struct symfile *file = &files[i / 3 % 2];
		struct jit_code_entry *e = &entries[i / 5 % 2];
		void (*function)(uint64_t);

		make_code(at, number);
		make_symfile(file, number, (uint64_t)at);
		e->symfile_addr = (const char *)file;
		e->symfile_size = sizeof *file;
		register_entry(e);
		*(void **)&function = at;
		function((uint64_t)rand() % (loops * (i % 7 ? 1 : 100)) + 1);
		unregister_entry(e);
	}
}
