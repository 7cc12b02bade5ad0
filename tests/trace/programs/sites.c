/* SPDX-License-Identifier: MIT */
/*
 * Functions of many shapes, which a compiler instruments: leaves, variable arguments, large frames,
 * several returns, tail calls, loops at the start.
 */
#include <stdarg.h>
#include <stdio.h>

#define OWN __attribute__((noinline))

volatile int sink;

OWN int leaf(int a)
{
	return a + 1;
}

OWN static int local(int a, int b)
{
	sink += a;
	return leaf(b) + leaf(a);
}

OWN int large(int n)
{
	char buf[6000];
	int sum = 0;

	for (int i = 0; i < n; i++) {
		buf[i % 6000] = (char)i;
		sum += local(i, buf[i * 7 % 6000]);
	}
	return sum;
}

OWN int variable(const char *format, ...)
{
	va_list list;
	int sum = 0;

	va_start(list, format);
	for (; *format; format++)
		sum += *format == 'd' ? va_arg(list, int) : (int)va_arg(list, double);
	va_end(list);
	return sum;
}

OWN int branches(int a)
{
	if (a < 0)
		return leaf(a) * 3;
	if (a > 100)
		return leaf(a) - a;
	return sink;
}

OWN int tail(int a)
{
	sink++;
	return leaf(a + sink);
}

OWN int loop(const char *s)
{
	int n = 0;

	while (*s++)
		n += *s & sink;
	return n;
}

OWN void empty(void)
{
}

int run(int n)
{
	empty();
	return large(n) + variable("dfd", n, 1.5, n) + branches(n) + branches(-n) + tail(n) +
	       loop("text");
}

#ifndef SHARED
int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", run(argc));
	return 0;
}
#endif
