/* SPDX-License-Identifier: MIT */
/*
 * many LIBRARY FUNCTIONS HOW N: N random places in the library's functions f0, f1, ..., each of
 * which takes 16 bytes: what each is called, by fathom or by dladdr.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

#define SIZE 16

static void by_fathom(uintptr_t at, const char *name, uintptr_t offset)
{
	struct looked a;

	expect(look_up(&a, at) && a.is->symbol && strcmp(a.is->symbol, name) == 0 &&
	       a.is->offset == offset);
}

static void by_dladdr(uintptr_t at, const char *name, uintptr_t offset)
{
	Dl_info info;

	expect(dladdr((void *)at, &info) && strcmp(info.dli_sname, name) == 0 &&
	       at - (uintptr_t)info.dli_saddr == offset);
}

int main(int argc, char **argv)
{
	void *library = argc > 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const uintptr_t first = library ? (uintptr_t)dlsym(library, "f0") : 0;
	const long functions = library ? atol(argv[2]) : 0;
	char name[24];

	if (!first)
		return 2;
	start(0);
	for (long n = atol(argv[4]); n; n--) {
		const long which = lrand48() % functions;
		const uintptr_t offset = (uintptr_t)lrand48() % SIZE;

		(void)snprintf(name, sizeof name, "f%ld", which);
		(strcmp(argv[3], "dladdr") == 0 ? by_dladdr : by_fathom)(
			first + (uintptr_t)which * SIZE + offset, name, offset);
	}
	return end();
}
