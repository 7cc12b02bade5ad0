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
	struct fathom_self_answer a;

	(void)fathom_self_lookup(self, (uintptr_t)at, 0, &a);
	printf("%s %s %#llx %s\n", asked, a.function && !a.offset ? a.function : "?",
	       (unsigned long long)a.module_address, a.module ? a.module : "?");
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
