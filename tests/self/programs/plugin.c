/* SPDX-License-Identifier: MIT */
/* A library that comes and goes; OTHER has the same shape and other names. */
#ifdef OTHER
#define hidden_in_one hidden_in_two
#define exported_by_one exported_by_two
#endif

static __attribute__((noinline, used)) int hidden_in_one(int x)
{
	return x * 3;
}

__attribute__((noinline)) int exported_by_one(int x)
{
	return hidden_in_one(x) + 1;
}

/* Where they are, whatever they are called. */
void *where_hidden(void)
{
	return (void *)hidden_in_one;
}

void *where_exported(void)
{
	return (void *)exported_by_one;
}
