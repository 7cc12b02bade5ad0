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

/* Returns how far the 32 bits at @bytes lead. */
static int64_t relative(const uint8_t *bytes)
{
	return (int32_t)load_u32(bytes, __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
}

bool fathom_x86_ends_with_direct_call(const uint8_t *code, size_t size, uint64_t *ret)
{
	if (size < 5 || code[size - 5] != 0xe8)
		return false;
	*ret = (uint64_t)relative(code + size - 4);
	return true;
}

bool fathom_x86_ends_with_call(const uint8_t *code, size_t size)
{
	uint64_t target;

	if (fathom_x86_ends_with_direct_call(code, size, &target))
		return true;
	for (size_t n = 2; n <= size && n <= FATHOM_MAX_CALL; n++) {
		const uint8_t *p = code + size - n;

		if (p[0] == 0xff && indirect_size(p[1], n > 2 ? p[2] : 0) == n)
			return true;
	}
	return false;
}

bool fathom_x86_may_jump_out(struct fathom_bytes code)
{
	for (uint64_t i = 0; i + 1 < code.size; i++) {
		const uint8_t *p = code.data + i;
		const uint64_t left = code.size - i;
		/* Nothing jumps to its own second byte. */
		uint64_t target = i + 1;

		if (p[0] == 0xff && (p[1] >> 3 & 7) == 4)
			return true;
		if (p[0] == 0xeb)
			target = i + 2 + (uint64_t)(int64_t)(int8_t)p[1];
		else if (p[0] == 0xe9 && left >= 5)
			target = i + 5 + (uint64_t)relative(p + 1);
		else if (p[0] == 0x0f && (p[1] & 0xf0) == 0x80 && left >= 6)
			target = i + 6 + (uint64_t)relative(p + 2);
		if (target >= code.size)
			return true;
	}
	return false;
}
