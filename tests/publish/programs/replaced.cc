// SPDX-License-Identifier: MIT
// replaced NAME...: publishes a function with the first name, at an address that is always the same, and
// prints "NAME ADDRESS". When it has read a line, it runs itself anew with the names that are left.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include <fathom/jit.h>

int main(int argc, char **argv)
{
	enum { SIZE = 64, PLACE = 0x500000 };
	void *at = reinterpret_cast<void *>(uintptr_t{ PLACE } << 12);
	fathom_jit_function f = {};
	fathom_jit_arena *arena;

	if (argc < 2 || mmap(at, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
		return 2;
	memset(at, 0x90, SIZE);
	f.size = sizeof f;
	f.code = at;
	f.code_size = SIZE;
	f.name = argv[1];
	if (fathom_jit_arena_create(at, 4096, nullptr, &arena, nullptr) || fathom_jit_add(arena, &f, nullptr))
		return 3;
	printf("%s %p\n", argv[1], at);
	fflush(stdout);
	for (;;)
		switch (getchar()) {
		case EOF:
			return 0;
		case '\n':
			argv[1] = argv[0];
			execv("/proc/self/exe", argv + 1);
			return 4;
		}
}
