/* SPDX-License-Identifier: MIT */
/* loader N LIBRARY...: loads the libraries in turn, N times in all, calls plug() in each, and unloads them. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 0; i < atoi(argv[1]); i++) {
		void *library = dlopen(argv[2 + i % (argc - 2)], RTLD_NOW);
		int (*plug)(int) = (int (*)(int))dlsym(library, "plug");

		total += plug(i);
		dlclose(library);
	}
	printf("%d\n", total);
	return 0;
}
