/* SPDX-License-Identifier: MIT */
/* traced N: the Nth Fibonacci number by recursion, so many calls of one function in itself; HOOK
 * has an empty one at each; CLOCK reads the processor's clock at each; OWN a hook of its own: "on",
 * "off", "bare"; TOLD prints how many nanoseconds they took. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef OWN
#include <fathom/fathom.h>
#include <string.h>

#define UNSEEN __attribute__((patchable_function_entry(0, 0), target("general-regs-only")))

UNSEEN static void see(void *data, const struct fathom_hook_call *call)
{
	(void)call;
	++*(volatile long *)data;
}
#endif

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
#ifdef CLOCK
	unsigned low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
#endif
	long sum = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);

	__asm__ volatile("" : "+r"(sum));
	return sum;
}

int main(int argc, char **argv)
{
#ifdef OWN
	static volatile long n;
	struct fathom_hook_options o = { .size = sizeof o };
	struct fathom *session;
	struct fathom_hook *hook;

	o.flags = !strcmp(argv[2], "off")    ? FATHOM_HOOK_OFF
		  : !strcmp(argv[2], "bare") ? FATHOM_HOOK_NO_VECTORS
					     : 0;
	if (fathom_create(NULL, &session, NULL) ||
	    fathom_hook_add(session, see, (void *)&n, &o, &hook, NULL))
		return 1;
#endif
#ifdef TOLD
	struct timespec begin;
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	(void)fibonacci(argc > 1 ? atol(argv[1]) : 20);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%lld\n",
	       (end.tv_sec - begin.tv_sec) * 1000000000LL + (end.tv_nsec - begin.tv_nsec));
#else
	printf("%ld\n", fibonacci(argc > 1 ? atol(argv[1]) : 20));
#endif
	return 0;
}
