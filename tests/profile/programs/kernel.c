/* SPDX-License-Identifier: MIT */
/*
 * kernel SECONDS: reads zeros: nearly all of its processor time is the kernel's. Prints "USER SYSTEM
 * SWITCHES BEFORE AFTER": what getrusage(2) says, and the clock of the process in main(), in nanoseconds.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 20];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long long ns_of(struct timeval t)
{
	return t.tv_sec * 1000000000LL + t.tv_usec * 1000LL;
}

int main(int argc, char **argv)
{
	const uint64_t before = now();
	const uint64_t end = before + (uint64_t)(argc > 1 ? atof(argv[1]) * 1e9 : 1e9);
	const int fd = open("/dev/zero", O_RDONLY);
	struct rusage usage;

	while (now() < end)
		for (int i = 0; i < 20; i++)
			if (read(fd, buffer, sizeof buffer) < 0)
				return 1;
	getrusage(RUSAGE_SELF, &usage);
	printf("%lld %lld %ld %llu %llu\n", ns_of(usage.ru_utime), ns_of(usage.ru_stime),
	       usage.ru_nvcsw + usage.ru_nivcsw,
	       (unsigned long long)before, (unsigned long long)now());
	return 0;
}
