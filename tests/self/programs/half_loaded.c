/* SPDX-License-Identifier: MIT */
/* A library that is marked to stay is met while it is loaded, which fails. Another takes its place.
 */
#include <dlfcn.h>
#include <sys/mman.h>

#include "check.h"

static uintptr_t met;

static void meet(void *at)
{
	struct looked a;

	met = (uintptr_t)at;
	expect(fathom_self_refresh(self, NULL) == 0);
	/* The loader has not said yet that it is there. */
	expect(!look_up(&a, met) || strcmp(a.is->symbol, "of_half") == 0);
}

static void expect_gone(void)
{
	struct looked a;

	(void)look_up(&a, met);
	expect(!a.is->symbol || strcmp(a.is->symbol, "of_half") != 0);
	expect(!path_of(&a) || !strstr(path_of(&a), "half.so"));
}

int main(int argc, char **argv)
{
	void **at = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	(void)argc;
	*at = (void *)meet;
	start(0);
	expect(!dlopen(argv[1], RTLD_NOW) && met);
	expect_gone();
	expect(dlopen(argv[2], RTLD_NOW) != NULL);
	expect_gone();
	return end();
}
