/* SPDX-License-Identifier: MIT */
/* Loses memory. */
#include <stdlib.h>

static inline char *take(size_t size)
{
	return malloc(size);
}

__attribute__((noinline)) void lose(size_t size)
{
	volatile char *memory = take(size);

	memory[0] = 1;
}

int main(void)
{
	lose(40);
	lose(2);
	return 0;
}
