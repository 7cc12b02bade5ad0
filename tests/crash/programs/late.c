/* SPDX-License-Identifier: MIT */
/*
 * late LIBRARY WAY [handled]: loads a library after the crash handler was installed, and crashes in its code; then, in
 * a handler.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void on_fault(int number)
{
	(void)number;
	abort();
}

int main(int argc, char **argv)
{
	const struct rlimit none = { 0, 0 };
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*go)(const char *) = library ? (void (*)(const char *))dlsym(library, "late_go") : NULL;

	setrlimit(RLIMIT_CORE, &none);
	if (!go) {
		puts(dlerror());
		return 97;
	}
	if (argc > 3)
		signal(SIGSEGV, on_fault);
	go(argv[2]);
	return 98;
}
