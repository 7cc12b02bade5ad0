/* SPDX-License-Identifier: MIT */
/*
 * raced LIBRARY: a library that was not prepared is unloaded in the middle of a look-up, just after the
 * loader has said where it is: it changed, and has no name.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

static int (*real)(void *, struct dl_find_object *);
static void *library;
static bool armed;

/* In place of the C library's. */
int _dl_find_object(void *address, struct dl_find_object *ret)
{
	const int failed = real ? real(address, ret) : -1;

	if (armed) {
		armed = false;
		(void)dlclose(library);
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct looked a;
	void *(*where_exported)(void);
	uintptr_t at;

	start(0);
	*(void **)&real = dlsym(RTLD_NEXT, "_dl_find_object");
	library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	expect(real && library);
	if (!library)
		return 1;
	*(void **)&where_exported = dlsym(library, "where_exported");
	at = (uintptr_t)where_exported();
	expect(look_up(&a, at) && strcmp(a.is->symbol, "exported_by_one") == 0);
	armed = true;
	expect(!look_up(&a, at));
	expect(!armed && !a.is->symbol && !path_of(&a) && a.is->reason == FATHOM_REASON_CHANGED);
	return end();
}
