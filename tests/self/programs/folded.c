/* SPDX-License-Identifier: MIT */
/* Asks who is in a library whose functions alpha, zeta and bz a linker has made one, alpha. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

int main_code(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const uintptr_t at = library ? (uintptr_t)dlsym(library, "zeta") : 0;
	struct looked a;

	expect(at && at == (uintptr_t)dlsym(library, "alpha"));
	start(FATHOM_SELF_FULL);
	expect_name(at, "alpha", 0);
	expect_name(at + 3, "alpha", 3);
	expect(look_up(&a, at) && a.is->frame && !a.is->frame->outer &&
	       strcmp(a.is->frame->function, "alpha") == 0 && a.is->frame->line >= 7 &&
	       a.is->frame->line <= 11);
	return end();
}

int main(int argc, char **argv)
{
	return main_code(argc, argv);
}
