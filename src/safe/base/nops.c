/* SPDX-License-Identifier: MIT */
#include "safe/base/nops.h"

#define ARM_NOP    0xd503201f
#define ARM_BTI_C  0xd503245f
#define ARM_BTI_JC 0xd50324df

/* Instructions are little-endian on either byte order. */
static uint32_t load_op(struct fathom_bytes code)
{
	return code.size < 4 ? 0 : load_u32(code.data, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* The longest instruction. */
#define MAX_SIZE 15

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0x67 || byte == 0x2e;
}

/* Returns the bytes of a memory operand, from its ModRM byte on, `/0`; 0: it is another. */
static uint8_t operand_size(struct fathom_bytes code)
{
	const uint8_t modrm = code.size ? code.data[0] : 0xff;
	const uint8_t mod = modrm >> 6;
	const bool has_sib = (modrm & 7) == 4;
	uint8_t size = has_sib ? 2 : 1;

	if (modrm >> 3 & 7 || mod == 3 || code.size < size)
		return 0;
	if (mod == 1)
		size += 1;
	else if (mod == 2 || (modrm & 7) == 5 || (has_sib && (code.data[1] & 7) == 5))
		size += 4;
	return size;
}

/* `90` and `0f 1f /0` with prefixes. */
static uint8_t x86_nop_size(struct fathom_bytes code)
{
	uint64_t i = 0;
	uint8_t size;

	while (i < code.size && i < MAX_SIZE && is_prefix(code.data[i]))
		i++;
	if (i < code.size && code.data[i] == 0x90)
		return (uint8_t)(i + 1);
	if (i + 3 > code.size || code.data[i] != 0x0f || code.data[i + 1] != 0x1f)
		return 0;
	size = operand_size(bytes_from(code, i + 2));
	i += 2 + (uint64_t)size;
	return size && i <= code.size && i <= MAX_SIZE ? (uint8_t)i : 0;
}

uint8_t fathom_nop_size(bool is_aarch64, struct fathom_bytes code)
{
	if (is_aarch64)
		return load_op(code) == ARM_NOP ? 4 : 0;
	return x86_nop_size(code);
}

uint64_t fathom_nops_size(bool is_aarch64, struct fathom_bytes code, uint64_t most)
{
	uint64_t size = 0;

	for (;;) {
		const uint8_t nop = fathom_nop_size(is_aarch64, bytes_from(code, size));

		if (!nop || nop > most - size)
			return size;
		size += nop;
	}
}

bool fathom_is_landing(bool is_aarch64, struct fathom_bytes code)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint32_t op = load_op(code);

	if (is_aarch64)
		return op == ARM_BTI_C || op == ARM_BTI_JC;
	return code.size >= sizeof endbr64 && memcmp(code.data, endbr64, sizeof endbr64) == 0;
}
