/* SPDX-License-Identifier: MIT */
/*
 * Calls that are known: nested, recursive, left by longjmp(), of threads, system calls, calls that
 * never return. With a number, so many of leaf() besides.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

static jmp_buf out;
static volatile int sum;

void leaf(void)
{
	sum = sum + 1;
}

/* Long enough for another name to be put in its place. */
void a_function_whose_name_is_that_long(void)
{
	leaf();
}

void pair(void)
{
	leaf();
	leaf();
}

void recurse(int n)
{
	if (n)
		recurse(n - 1);
	else
		leaf();
}

void jumps(void)
{
	longjmp(out, 1);
}

void outer(void)
{
	jumps();
}

void asks(void)
{
	(void)getppid();
	(void)getppid();
	(void)getppid();
}

void *work(void *n)
{
	for (size_t i = 0; i < (size_t)n; i++)
		pair();
	return NULL;
}

void ends(void)
{
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	for (size_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, (void *)(10 + i));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	recurse(5);
	if (!setjmp(out))
		outer();
	asks();
	a_function_whose_name_is_that_long();
	for (long i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--)
		leaf();
	ends();
}
