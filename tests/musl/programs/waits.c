/* SPDX-License-Identifier: MIT */
/* A stack that is known: main, outer, inner, which never returns. Prints a line when it is there.
 */
#include <stdio.h>
#include <sys/syscall.h>

static volatile int returned;

__attribute__((noinline)) static void inner(int n)
{
	(void)puts("there");
	(void)fflush(stdout);
	/* pause(2), here: what is below a function of musl is not known. */
	for (;;)
		__asm__ volatile("syscall" : : "a"(SYS_pause), "r"(n) : "rcx", "r11", "memory");
}

__attribute__((noinline)) void outer(int n)
{
	inner(n + 1);
	returned = 1;
}

int main(void)
{
	outer(3);
	return 0;
}
