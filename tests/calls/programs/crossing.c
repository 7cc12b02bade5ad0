/* SPDX-License-Identifier: MIT */
/*
 * crossing N [LIBRARY]: with LIBRARY defined, a library; else a program that calls it N times, and functions of libc that IFUNC
 * resolvers choose. It says whether pointers to functions are the same in both. A second library is loaded, and called once.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int crossed(int n);
int crossed_back(int n);
int called_by_address(int n);
int (*address_in_library(void))(int);

#ifdef LIBRARY
int crossed(int n)
{
	return crossed_back(n) + 1;
}

int called_by_address(int n)
{
	return n + 2;
}

int (*address_in_library(void))(int)
{
	return called_by_address;
}
#else
int crossed_back(int n)
{
	return n * 2;
}

int main(int argc, char **argv)
{
	const int n = atoi(argv[1]);
	char *volatile text = argv[0];
	int (*plug)(int) = NULL;
	size_t total = 0;
	void *library;
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum += crossed(i);
		total += strlen(text);
	}
	sum += called_by_address(1);
	library = argc > 2 ? dlopen(argv[2], RTLD_LAZY) : NULL;
	if (library)
		plug = (int (*)(int))dlsym(library, "plug");
	printf("%d %d %d %d\n", sum, total == n * strlen(text), address_in_library() == called_by_address,
	       plug ? plug(1) : 0);
	return 0;
}
#endif
