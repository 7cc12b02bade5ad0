/* SPDX-License-Identifier: MIT */
/*
 * deep: runs 1,800 calls deep, each time by another path. Ends with status 7 after a byte of
 * standard input.
 */
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

static volatile uint64_t sink;

/* Bit @n of @path, taken in turn, says from which of two places the next call is made. */
__attribute__((noinline)) static int go(unsigned n, uint32_t path)
{
	if (!n) {
		for (int i = 0; i < 100000; i++)
			sink += (uint64_t)i;
		return 0;
	}
	if (path >> n % 24 & 1) {
		__asm__ volatile("" : : "r"(1) : "memory");
		return go(n - 1, path) + 1;
	}
	__asm__ volatile("" : : "r"(2) : "memory");
	return go(n - 1, path) + 2;
}

int main(void)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	for (uint32_t path = 0; !poll(&input, 1, 0); path++)
		sink += (uint64_t)go(1800, path);
	return 7;
}
