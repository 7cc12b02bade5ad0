/* SPDX-License-Identifier: MIT */
/*
 * opener LIBRARY: loads it, prints where its functions run() and leaf() and its own are, then waits
 * for a line, replaces the NOPs at the start of its own function, and waits for another.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline)) int own(int a)
{
	return a + 1;
}

static int replace(unsigned char *at)
{
	void *page = (void *)((uintptr_t)at & ~(uintptr_t)4095);

	if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 1;
	at[0] = 0xeb;
	at[1] = 0x00;
	return mprotect(page, 8192, PROT_READ | PROT_EXEC);
}

int main(int argc, char **argv)
{
	void *library = dlopen(argv[argc - 1], RTLD_NOW);
	char line[16];

	if (!library)
		return 1;
	printf("%p %p %p\n", dlsym(library, "run"), dlsym(library, "leaf"), (void *)own);
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin) || replace((unsigned char *)own))
		return 1;
	printf("%d\n", own(1));
	fflush(stdout);
	return !fgets(line, sizeof line, stdin);
}
