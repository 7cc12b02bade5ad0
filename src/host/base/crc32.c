/* SPDX-License-Identifier: MIT */
/*
 * Takes eight bytes at a time, by a table for each. The tables are made anew for each sum, which
 * takes some microseconds: no state is kept.
 */
#include "host/base/crc32.h"

#define POLYNOMIAL UINT32_C(0xedb88320) /* the lowest bit stands for the highest power */
#define STEP       8

/* Makes the sums of each byte alone; table @n is for a byte that @n others follow. */
static void make_tables(uint32_t table[STEP][256])
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (POLYNOMIAL & (0U - (crc & 1)));
		table[0][i] = crc;
	}
	for (int n = 1; n < STEP; n++)
		for (uint32_t i = 0; i < 256; i++)
			table[n][i] = (table[n - 1][i] >> 8) ^ table[0][table[n - 1][i] & 0xff];
}

uint32_t fathom_crc32(struct fathom_bytes bytes)
{
	uint32_t t[STEP][256];
	const uint8_t *p = bytes.data;
	uint64_t left = bytes.size;
	uint32_t crc = UINT32_MAX;

	make_tables(t);
	for (; left >= STEP; left -= STEP, p += STEP)
		crc = t[7][(crc ^ p[0]) & 0xff] ^ t[6][(crc >> 8 ^ p[1]) & 0xff] ^
		      t[5][(crc >> 16 ^ p[2]) & 0xff] ^ t[4][(crc >> 24 ^ p[3]) & 0xff] ^
		      t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
	for (; left; left--, p++)
		crc = crc >> 8 ^ t[0][(crc ^ *p) & 0xff];
	return ~crc;
}
