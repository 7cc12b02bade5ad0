/* SPDX-License-Identifier: MIT */
/* With -DLIBRARY functions of a library that call each other, also by a tail call; else a program
 * that calls them. */
int leaf(int n);
int jumps(int n);
int outer(int n);

#ifdef LIBRARY
__attribute__((noinline)) int leaf(int n)
{
	__asm__ volatile("");
	return n + 1;
}

/* Through a slot, too: a program may have a function of that name. */
__attribute__((noinline)) int jumps(int n)
{
	__asm__ volatile("");
	return leaf(n + 1);
}

int outer(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += jumps(i) + leaf(i);
	return sum;
}
#else
int main(void)
{
	int sum = 0;

	for (int i = 0; i < 3; i++)
		sum += leaf(i) + jumps(i);
	return sum + outer(5) ? 0 : 1;
}
#endif
