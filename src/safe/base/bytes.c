/* SPDX-License-Identifier: MIT */
#include "bytes.h"

/* Whether any of the eight bytes of @w is zero (exact for the test "is there one"). */
static bool has_zero(uint64_t w)
{
	return ((w - 0x0101010101010101u) & ~w & 0x8080808080808080u) != 0;
}

struct fathom_str fathom_bytes_str(struct fathom_bytes b, uint64_t off)
{
	const struct fathom_bytes rest = bytes_from(b, off);
	const uint64_t max = rest.size < UINT32_MAX ? rest.size : UINT32_MAX;
	uint64_t i = 0;

	while (i + 8 <= max && !has_zero(load_u64(rest.data + i, false)))
		i += 8;
	while (i < max && rest.data[i])
		i++;
	if (i >= max)
		return (struct fathom_str){ NULL, 0 };
	return (struct fathom_str){ (const char *)rest.data, (uint32_t)i };
}
