/* SPDX-License-Identifier: MIT */
/* Prints its pid, then calls the same functions every tenth of a second. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

KEPT int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

KEPT int outer(int n)
{
	return leaf(n) + leaf(n + 1) * 2;
}

int main(void)
{
	const struct timespec pause = { 0, 100000000 };

	printf("%d\n", (int)getpid());
	(void)fflush(stdout);
	for (int i = 0; i < 600; i++) {
		outer(i);
		nanosleep(&pause, NULL);
	}
	return 0;
}
