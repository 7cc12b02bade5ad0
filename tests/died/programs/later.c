/* SPDX-License-Identifier: MIT */
/* later LIBRARY ARGUMENT...: loads a C++ library, which it knows nothing of before, and has it run deaths.cc's main(). */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*deaths)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "deaths") : NULL;

	if (deaths)
		return deaths(argc - 1, argv + 1);
	puts(dlerror());
	return 97;
}
