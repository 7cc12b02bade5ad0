/* SPDX-License-Identifier: MIT */
/*
 * stays LIBRARY: a library that is marked to stay, and was loaded by dlopen(), is named as cheaply as
 * the program. Of another one the build-id is read, which ends this program.
 */
#include "forbid.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void *(*where_hidden)(void);

	expect(library != NULL);
	if (!library)
		return 1;
	*(void **)&where_hidden = dlsym(library, "where_hidden");
	start(0);
	forbid_reading(SECCOMP_RET_KILL_PROCESS);
	expect_name((uintptr_t)where_hidden(), "hidden_in_one", 0);
	return end();
}
