/* SPDX-License-Identifier: MIT */
/*
 * What functions of the C library and of the vDSO are called: "ASKED NAME MODULE_ADDRESS MODULE", one
 * line each, for the test to compare with what other tools say.
 */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>

static void tell(const char *asked, void *at)
{
	struct looked a;

	(void)look_up(&a, (uintptr_t)at);
	printf("%s %s %#llx %s\n", asked, a.is->symbol && !a.is->offset ? a.is->symbol : "?",
	       (unsigned long long)a.is->module_address, path_of(&a) ? path_of(&a) : "?");
}

int main(void)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);

	start(0);
	tell("labs", (void *)labs);
	tell("printf", (void *)printf);
	tell("memcpy", (void *)memcpy);
	tell("strlen", (void *)strlen);
	tell("qsort", (void *)qsort);
	tell("__vdso_clock_gettime", vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL);
	return end();
}
