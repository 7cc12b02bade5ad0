/* SPDX-License-Identifier: MIT */
/* A library that cannot be loaded: it is relocated as far as its IFUNC, then something is missing.
 */
__attribute__((visibility("hidden"))) int of_half(int x);
extern int missing(int x);

__attribute__((visibility("hidden"))) int of_half(int x)
{
	return x + 1;
}

static int chosen(int x)
{
	return x;
}

/* Nothing of the library can be used yet: whom to call stands where the program has put it. */
static int (*choose(void))(int)
{
	(*(void (**)(void *))0x10000000)((void *)of_half);
	return chosen;
}

int by_choice(int x) __attribute__((ifunc("choose")));

/* Data is relocated before calls are. */
int (*kept)(int) = by_choice;

int needs(int x);

int needs(int x)
{
	return by_choice(x) + missing(x);
}
