/* SPDX-License-Identifier: MIT */
/* A library with versions (versions.map): two of one name, one that is hidden only, one IFUNC. */
int versioned_old(int x)
{
	return x + 1;
}

int versioned_new(int x)
{
	return x + 2;
}

int retired_code(int x)
{
	return x + 3;
}

int plain_versioned(int x)
{
	return x + 4;
}

__asm__(".symver versioned_old, versioned@V_1");
__asm__(".symver versioned_new, versioned@@V_2");
__asm__(".symver retired_code, retired@V_1");

static int chosen_one(int x)
{
	return x * 2;
}

static int chosen_other(int x)
{
	return x * 3;
}

static int (*choose(void))(int)
{
	return sizeof(void *) == 8 ? chosen_other : chosen_one;
}

int indirect(int x) __attribute__((ifunc("choose")));

/* The slot that it is resolved to. */
int call_indirect(int x)
{
	return indirect(x);
}

/* Nothing calls it: no slot shows what it would be. */
int unused_indirect(int x) __attribute__((ifunc("choose")));

__thread int library_thread_own = 7;

int use_thread_own(void)
{
	return ++library_thread_own;
}
