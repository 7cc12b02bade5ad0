/* SPDX-License-Identifier: MIT */
/* Static functions with names of twins_one.c. */
#define NOINLINE __attribute__((noinline, used))

static NOINLINE int size(int i)
{
	__asm__ volatile(".skip 80, 0x90");
	return i;
}

static NOINLINE int same(int i)
{
	__asm__ volatile(".skip 30, 0x90");
	return i;
}

int others(int i)
{
	return size(i) + same(i);
}
