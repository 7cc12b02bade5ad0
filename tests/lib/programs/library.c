/* SPDX-License-Identifier: MIT */
/* A library that programs/told.c opens; -DOTHER makes one of the same shape with other names. */
#ifdef OTHER
#define HIDDEN hidden_in_other
#else
#define HIDDEN hidden_in_library
#endif

static __attribute__((noinline)) int HIDDEN(int x)
{
	return x * 5;
}

int exported_code(int x)
{
	return HIDDEN(x) + 1;
}

const void *where_hidden(void)
{
	return (const void *)HIDDEN;
}
