/* SPDX-License-Identifier: MIT */
#include "host/code/x86_64/x86_instructions.h"

uint64_t fathom_x86_target(uint64_t avma, const uint8_t *code, size_t size)
{
	int32_t distance;

	memcpy(&distance, code + size - sizeof distance, sizeof distance);
	return avma + size + (uint64_t)(int64_t)distance;
}

bool fathom_x86_put_rel32(uint64_t end, uint64_t to, uint8_t bytes[FATHOM_X86_REL32_SIZE])
{
	const int64_t distance = (int64_t)(to - end);
	const int32_t displacement = (int32_t)distance;

	memcpy(bytes, &displacement, sizeof displacement);
	return displacement == distance;
}

bool fathom_x86_put_call(uint64_t avma, uint64_t to, uint8_t bytes[FATHOM_X86_BRANCH_SIZE])
{
	bytes[0] = FATHOM_X86_CALL;
	return fathom_x86_put_rel32(avma + FATHOM_X86_BRANCH_SIZE, to, bytes + 1);
}

bool fathom_x86_put_jump(uint64_t avma, uint64_t to, uint8_t bytes[FATHOM_X86_BRANCH_SIZE])
{
	bytes[0] = FATHOM_X86_JUMP;
	return fathom_x86_put_rel32(avma + FATHOM_X86_BRANCH_SIZE, to, bytes + 1);
}

bool fathom_x86_put_short_jump(uint64_t avma, uint64_t to, uint8_t bytes[FATHOM_X86_SHORT_SIZE])
{
	const int64_t distance = (int64_t)(to - (avma + FATHOM_X86_SHORT_SIZE));

	bytes[0] = FATHOM_X86_SHORT_JUMP;
	bytes[1] = (uint8_t)distance;
	return distance == (int8_t)distance;
}

bool fathom_x86_put_jump_by_word(uint64_t avma, uint64_t word,
				 uint8_t bytes[FATHOM_X86_BY_WORD_SIZE])
{
	bytes[0] = FATHOM_X86_BY_WORD;
	bytes[1] = FATHOM_X86_JUMP_BY_WORD;
	return fathom_x86_put_rel32(avma + FATHOM_X86_BY_WORD_SIZE, word, bytes + 2);
}

void fathom_x86_put_far_jump(uint64_t to, uint8_t bytes[FATHOM_X86_FAR_SIZE])
{
	(void)fathom_x86_put_jump_by_word(0, FATHOM_X86_BY_WORD_SIZE, bytes);
	memcpy(bytes + FATHOM_X86_BY_WORD_SIZE, &to, sizeof to);
}
