/* SPDX-License-Identifier: MIT */
/* Static functions that another file has, too: size has another size there, same has the same. */
#define NOINLINE __attribute__((noinline, used))

NOINLINE void gone(void)
{
	__builtin_trap();
}

static NOINLINE int size(int i)
{
	__asm__ volatile(".skip 40, 0x90");
	return i;
}

static NOINLINE int same(int i)
{
	__asm__ volatile(".skip 30, 0x90");
	return i;
}

/* Its last instruction is a call. */
NOINLINE __attribute__((noreturn)) void ends(void)
{
	gone();
	__builtin_unreachable();
}

NOINLINE int after(int i)
{
	return i + 1;
}

int others(int i);

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 9)
		ends();
	return size(argc) + same(argc) + others(argc) + after(argc);
}
