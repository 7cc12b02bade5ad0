/* SPDX-License-Identifier: MIT */
#include "safe/base/bytes.h"

/* Loads eight bytes, the first one lowest. */
static uint64_t load_ascending(const uint8_t *p)
{
	return load_u64(p, __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
}

/* Sets the top bit of each zero byte of @w. Bits above the lowest one may be set wrongly. */
static uint64_t zero_bytes(uint64_t w)
{
	return (w - 0x0101010101010101u) & ~w & 0x8080808080808080u;
}

struct fathom_str fathom_bytes_str(struct fathom_bytes b, uint64_t off)
{
	const struct fathom_bytes rest = bytes_from(b, off);
	const uint64_t max = rest.size < UINT32_MAX ? rest.size : UINT32_MAX;
	uint64_t zeros = 0;
	uint64_t i = 0;

	while (i + 8 <= max && !(zeros = zero_bytes(load_ascending(rest.data + i))))
		i += 8;
	if (zeros)
		i += (unsigned)__builtin_ctzll(zeros) / 8;
	while (i < max && rest.data[i])
		i++;
	if (i >= max)
		return (struct fathom_str){ NULL, 0 };
	return (struct fathom_str){ (const char *)rest.data, (uint32_t)i };
}

uint32_t fathom_str_find(struct fathom_str s, uint32_t from, char c)
{
	const uint64_t wanted = UINT64_C(0x0101010101010101) * (uint8_t)c;
	const uint8_t *p = (const uint8_t *)s.data;
	uint32_t i = from;

	while (i < s.size && s.size - i >= 8 && !zero_bytes(load_ascending(p + i) ^ wanted))
		i += 8;
	while (i < s.size && s.data[i] != c)
		i++;
	return i < s.size ? i : s.size;
}
