/* SPDX-License-Identifier: MIT */
/* Calls the program while it is being relocated. */
static int chosen_code(int x)
{
	return x + 1;
}

/* Nothing of the library can be used yet: whom to call stands where the program has put it. */
static int (*resolve(void))(int)
{
	(*(void (**)(void))0x10000000)();
	return chosen_code;
}

int indirect(int x) __attribute__((ifunc("resolve")));

/* Data is relocated before calls are. */
int (*kept)(int) = indirect;

int exported_code(int x)
{
	return indirect(x) * 3;
}
