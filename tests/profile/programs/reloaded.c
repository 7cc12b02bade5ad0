/* SPDX-License-Identifier: MIT */
/*
 * reloaded SECONDS FILE FILE: loads one library after the other, calls its function `work` for some
 * milliseconds, and unloads it, so that each comes where the other one was. Prints "NUMBER BEGIN
 * END" of each call, times of the monotonic clock in ns, and "same" if the addresses were.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_CALLS 100000

static struct {
	uint64_t begin;
	uint64_t end;
} calls[MAX_CALLS];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const uint64_t end = now() + (argc > 3 ? (uint64_t)(atof(argv[1]) * 1e9) : 0);
	void *first = NULL;
	int is_same = 1;
	int n = 0;

	while (argc > 3 && now() < end && n < MAX_CALLS) {
		void *library = dlopen(argv[2 + n % 2], RTLD_NOW);
		void (*work)(void);

		if (!library)
			return 1;
		*(void **)&work = dlsym(library, "work");
		first = first ? first : *(void **)&work;
		is_same &= first == *(void **)&work;
		calls[n].begin = now();
		work();
		calls[n++].end = now();
		dlclose(library);
	}
	for (int i = 0; i < n; i++)
		printf("%d %llu %llu\n", i % 2, (unsigned long long)calls[i].begin,
		       (unsigned long long)calls[i].end);
	if (is_same)
		puts("same");
	return n < 2;
}
