/* SPDX-License-Identifier: MIT */
/* A library for programs/changing.c: all have the same shape, and names of their own. */
#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)

static __attribute__((noinline)) int NAME(int x)
{
	return x * 5 + 3;
}

const void *where(void)
{
	return (const void *)NAME;
}

const char *name(void)
{
	return STRING(NAME);
}

int used(int x)
{
	return NAME(x) + 1;
}
