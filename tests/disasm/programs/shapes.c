/* SPDX-License-Identifier: MIT */
/* Code that refers to code and data in the ways that compilers have. */
#include <stdio.h>
#include <stdlib.h>

int counter;
static int table[10];
void (*handler)(int);
extern const char greeting[6];
const char greeting[6] = "hello";

__attribute__((noinline)) void on_signal(int x)
{
	counter += x;
}

__attribute__((noinline)) static int helper(int a)
{
	table[a & 7] = a;
	return table[3];
}

/* A branch leaves to shapes_cold, which compilers put elsewhere. */
__attribute__((noinline)) int use(int n)
{
	handler = on_signal;
	puts(greeting);
	counter = helper(n);
	handler(n);
	if (__builtin_expect(n > 1000, 0))
		abort();
	return table[n & 3] + counter;
}

int main(int argc, char **argv)
{
	(void)argv;
	use(argc);
	fflush(stdout);
	return getchar() == 'x';
}
