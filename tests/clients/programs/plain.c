/* SPDX-License-Identifier: MIT */
/* C, with functions of one name in two files (other.c has them, too). */
#include <stdio.h>

extern int from_other(int x);

int visible = 7;
static int hidden[3] = { 1, 2, 3 };
const char text[] = "plain";
static int zeroed[8];

static inline int square(int x)
{
	return x * x;
}

__attribute__((noinline)) static int helper(int x)
{
	if (x > 3)
		return square(x) + hidden[x % 3];
	return square(x + 1);
}

__attribute__((noinline)) int entry(int x)
{
	static int calls;

	calls++;
	zeroed[x & 7] = calls;
	return helper(x) + helper(x + 1) + visible;
}

__attribute__((alias("entry"))) int also_entry(int x);

int main(int argc, char **argv)
{
	(void)argv;
	printf("%s %d\n", text, entry(argc) + from_other(argc) + also_entry(argc));
	return zeroed[0];
}
