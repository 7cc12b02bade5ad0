/* SPDX-License-Identifier: MIT */
/* Measures how much stack a call takes: paint(); call(); scan(). */
#ifndef PAINT_H
#define PAINT_H

#include <stddef.h>
#include <stdint.h>

#define PAINTED 24576
#define PAINT	0xa5

/* Fills what the next call's frames will use. */
static __attribute__((noinline)) void paint(void)
{
	volatile uint8_t area[PAINTED];

	for (size_t i = 0; i < sizeof area; i++)
		area[i] = PAINT;
}

/* How deep into that somebody has written since. */
static __attribute__((noinline)) size_t scan(void)
{
	volatile uint8_t area[PAINTED];
	size_t i = 0;

	while (i < sizeof area && area[i] == PAINT)
		i++;
	return sizeof area - i;
}

#endif
