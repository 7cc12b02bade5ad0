/* SPDX-License-Identifier: MIT */
/*
 * forks NUMBER SECONDS: so many children, one after the other, each of which spends SECONDS of
 * processor time. Prints "LEAST MOST", in nanoseconds: the processor time that all processes have
 * measured of themselves in main(), and that the kernel says they have had.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock_of.h"

static uint64_t time_of(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000u;
}

int main(int argc, char **argv)
{
	const int n = argc == 3 ? atoi(argv[1]) : 0;
	const uint64_t ns = argc == 3 ? (uint64_t)(atof(argv[2]) * 1e9) : 0;
	uint64_t *least = mmap(NULL, sizeof *least, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (least == MAP_FAILED)
		return 2;
	for (int i = 0; i < n; i++) {
		const pid_t child = fork();
		int status;

		if (!child) {
			while (clock_of(CLOCK_PROCESS_CPUTIME_ID) < ns)
				;
			*least += clock_of(CLOCK_PROCESS_CPUTIME_ID);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			return 1;
	}
	*least += clock_of(CLOCK_PROCESS_CPUTIME_ID);
	printf("%llu %llu\n", (unsigned long long)*least,
	       (unsigned long long)(time_of(RUSAGE_SELF) + time_of(RUSAGE_CHILDREN)));
	return 0;
}
