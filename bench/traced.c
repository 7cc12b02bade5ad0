/* SPDX-License-Identifier: MIT */
/* traced N: the Nth Fibonacci number by recursion, so many calls of one function in itself; HOOK
 * has an empty one at each. */
#include <stdio.h>
#include <stdlib.h>

#ifdef HOOK
#define UNSEEN __attribute__((no_instrument_function))

UNSEEN void __cyg_profile_func_enter(void *function, void *from);
UNSEEN void __cyg_profile_func_exit(void *function, void *from);

void __cyg_profile_func_enter(void *function, void *from)
{
	(void)function;
	(void)from;
}

void __cyg_profile_func_exit(void *function, void *from)
{
	(void)function;
	(void)from;
}
#endif

__attribute__((noinline)) static long fibonacci(long n)
{
	long sum = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);

	__asm__ volatile("" : "+r"(sum));
	return sum;
}

int main(int argc, char **argv)
{
	printf("%ld\n", fibonacci(argc > 1 ? atol(argv[1]) : 20));
	return 0;
}
