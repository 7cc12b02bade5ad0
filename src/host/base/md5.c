/* SPDX-License-Identifier: MIT */
/*
 * MD5 (RFC 1321). Our own instead of libmd's: for one function, every program with libfathom would
 * need one more library, and whoever vendors it would have to build that, too.
 */
#include "host/base/md5.h"

#include <string.h>

#define BLOCK 64

/* The table T of RFC 1321, 3.4: the first 32 bits of the fraction of |sin(i)|, i from 1. */
static const uint32_t sines[BLOCK] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

/* How far each of the four steps of a round rotates. */
static const uint8_t rotations[4][4] = {
	{ 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
};

static uint32_t little_endian(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Returns the function of step @i, and the word of the block that it takes. */
static uint32_t mix(unsigned i, const uint32_t s[4], unsigned *ret_word)
{
	switch (i / 16) {
	case 0:
		*ret_word = i;
		return (s[1] & s[2]) | (~s[1] & s[3]);
	case 1:
		*ret_word = (5 * i + 1) % 16;
		return (s[1] & s[3]) | (s[2] & ~s[3]);
	case 2:
		*ret_word = (3 * i + 5) % 16;
		return s[1] ^ s[2] ^ s[3];
	default:
		*ret_word = 7 * i % 16;
		return s[2] ^ (s[1] | ~s[3]);
	}
}

static void take_block(uint32_t state[4], const uint8_t *block)
{
	uint32_t s[4] = { state[0], state[1], state[2], state[3] };

	for (unsigned i = 0; i < BLOCK; i++) {
		const unsigned by = rotations[i / 16][i % 4];
		unsigned word;
		uint32_t sum = s[0] + mix(i, s, &word) + sines[i];

		sum += little_endian(block + (size_t)4 * word);
		s[0] = s[3];
		s[3] = s[2];
		s[2] = s[1];
		s[1] += sum << by | sum >> (32 - by);
	}
	for (int i = 0; i < 4; i++)
		state[i] += s[i];
}

/* Takes the last bytes of a text of @size bytes, with its padding: a 1 bit, zeros, the length. */
static void take_end(uint32_t state[4], const uint8_t *rest, size_t n_rest, uint64_t size)
{
	uint8_t end[2 * BLOCK] = { 0 };
	const size_t n = n_rest < BLOCK - 8 ? BLOCK : sizeof end;

	if (n_rest)
		memcpy(end, rest, n_rest);
	end[n_rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		end[n - 8 + i] = (uint8_t)(8 * size >> 8 * i);
	for (size_t at = 0; at < n; at += BLOCK)
		take_block(state, end + at);
}

void fathom_md5(struct fathom_bytes text, uint8_t ret[FATHOM_MD5_SIZE])
{
	uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	uint64_t at = 0;

	for (; text.size - at >= BLOCK; at += BLOCK)
		take_block(state, text.data + at);
	take_end(state, text.data + at, (size_t)(text.size - at), text.size);
	for (size_t i = 0; i < FATHOM_MD5_SIZE; i++)
		ret[i] = (uint8_t)(state[i / 4] >> 8 * (i % 4));
}
