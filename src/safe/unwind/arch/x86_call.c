/* SPDX-License-Identifier: MIT */
#include "safe/unwind/arch/x86_call.h"

/* Returns the length of ff /2 with the byte @modrm and what follows; 0 if it is another one. */
static size_t indirect_size(uint8_t modrm, uint8_t sib)
{
	const bool has_sib = (modrm & 7) == 4;

	if ((modrm >> 3 & 7) != 2)
		return 0;
	switch (modrm >> 6) {
	case 0: /* without displacement, but for pc + 4 bytes and a SIB without base */
		if ((modrm & 7) == 5)
			return 6;
		return has_sib ? (sib & 7) == 5 ? 7 : 3 : 2;
	case 1:
		return has_sib ? 4 : 3;
	case 2:
		return has_sib ? 7 : 6;
	default:
		return 2;
	}
}

bool fathom_x86_ends_with_call(const uint8_t *code, size_t size)
{
	if (size >= 5 && code[size - 5] == 0xe8)
		return true;
	for (size_t n = 2; n <= size && n <= FATHOM_MAX_CALL; n++) {
		const uint8_t *p = code + size - n;

		if (p[0] == 0xff && indirect_size(p[1], n > 2 ? p[2] : 0) == n)
			return true;
	}
	return false;
}
