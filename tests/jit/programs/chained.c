/* SPDX-License-Identifier: MIT */
/*
 * chained CODE [SYMFILE]: maps the code in the file CODE, registers the symbol file with GDB's interface, and calls the code
 * with a function that it calls back, and which calls the code again, 10 times.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gdb_jit.h"

enum { SIZE = 1 << 16, NESTED = 10 };

typedef int code_function(int (*)(int));

static code_function *code;
static int depth;
volatile int sink;

__attribute__((noinline)) static int leaf(int n)
{
	return n + sink;
}

__attribute__((noinline)) static int called_back(int n)
{
	if (n == 2 && depth++ < NESTED)
		return code(called_back) + leaf(n);
	return leaf(n);
}

static char *read_file(const char *path, void *at)
{
	const int fd = open(path, O_RDONLY);
	char *data = mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || data == MAP_FAILED || (at && data != at) || read(fd, data, SIZE) <= 0)
		exit(2);
	close(fd);
	return data;
}

int main(int argc, char **argv)
{
	static struct jit_code_entry entry;
	char *data = read_file(argv[1], (void *)0x200000000000);

	if (argc > 2) {
		entry.symfile_addr = read_file(argv[2], NULL);
		entry.symfile_size = SIZE;
		register_entry(&entry);
	}
	/* Whoever looks at each change of the map sees the list as it is now. */
	if (mprotect(data, SIZE, PROT_READ | PROT_EXEC))
		return 2;
	code = (code_function *)(uintptr_t)data;
	sink = code(called_back);
	return 0;
}
