/* SPDX-License-Identifier: MIT */
/* Does nothing but call a function: a thread that is traced is nearly always in the hook. */
#include <stdio.h>

__attribute__((noipa)) static unsigned long next(unsigned long n)
{
	return n + 1;
}

int main(void)
{
	(void)puts("ready");
	(void)fflush(stdout);
	for (unsigned long n = 0;;)
		n = next(n);
}
