/* SPDX-License-Identifier: MIT */
/*
 * hostile ROWS one|each LIBRARY...: heads of registries, one of each library (head.c), lead to one
 * table, whose rows have one symbol file, or one each; none is an ELF file. Prints an address that
 * the first row has. For each line that it reads, all files change, and it prints another.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "safe/jit/registry.h"

enum { CODE = 16, FILE_SIZE = 64 };

static struct fathom_registry_table *table;
static uint8_t *code;
static uint8_t *files;

static void *memory(size_t size, int protection)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE | protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Makes the rows, with serial numbers from @serial on, and the files. */
static void fill(uint64_t serial, bool has_one)
{
	for (uint64_t i = 0; i < table->n; i++) {
		uint8_t *file = files + (has_one ? 0 : i * 2 * FILE_SIZE) + FILE_SIZE;
		const uint64_t low = (uint64_t)(uintptr_t)code + i * CODE;
		const uint64_t number = serial + (has_one ? 0 : i);

		memcpy(file - sizeof number, &number, sizeof number);
		table->rows[i] = (struct fathom_registry_row){
			.low = low,
			.high = low + CODE,
			.file = (uint64_t)(uintptr_t)file,
			.size = FILE_SIZE,
			.serial = number,
		};
	}
}

int main(int argc, char **argv)
{
	const uint64_t n = argc > 2 ? strtoull(argv[1], NULL, 0) : 0;
	const bool has_one = argc > 2 && !strcmp(argv[2], "one");
	uint64_t serial = 1;

	table = memory(sizeof *table + n * sizeof *table->rows, 0);
	code = memory(n * CODE, PROT_EXEC);
	files = memory(n * 2 * FILE_SIZE, 0);
	table->n = n;
	table->serial = serial;
	table->check = table->serial ^ (uint64_t)(uintptr_t)table ^ FATHOM_REGISTRY_MAGIC;
	fill(serial, has_one);
	for (int i = 3; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		void *lead = library ? dlsym(library, "lead") : NULL;

		if (!lead) {
			(void)fprintf(stderr, "%s: %s\n", argv[i], dlerror());
			return 2;
		}
		((void (*)(struct fathom_registry_table *))lead)(table);
	}
	do {
		printf("%p\n", (void *)code);
		(void)fflush(stdout);
		serial += n;
		while (getchar() != '\n')
			if (feof(stdin))
				return 0;
		fill(serial, has_one);
	} while (1);
}
