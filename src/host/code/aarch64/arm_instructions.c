/* SPDX-License-Identifier: MIT */
#include "host/code/aarch64/arm_instructions.h"

#include <string.h>

/* B and BL: six bits, and 26 of a signed number of instructions. */
#define OP_B        UINT32_C(0x14000000)
#define OP_BL       UINT32_C(0x94000000)
#define OFFSET_MASK UINT32_C(0x03ffffff)

/* ldr x16, .+8; br x16 */
#define OP_LOAD_X16   UINT32_C(0x58000050)
#define OP_BRANCH_X16 UINT32_C(0xd61f0200)

/* stp and ldp of x16, x30 at sp, before and after which it moves by 8 bytes times seven bits. */
#define OP_PUSH    UINT32_C(0xa9807bf0)
#define OP_POP     UINT32_C(0xa8c07bf0)
#define PAIR_SHIFT 15
#define PAIR_MASK  UINT32_C(0x7f)

/* SVC, HVC, SMC and BRK: their number stands between; ISB: its option does. */
#define OP_ISB         UINT32_C(0xd50330df)
#define ISB_MASK       UINT32_C(0xfffff0ff)
#define EXCEPTION_MASK UINT32_C(0xffe0001f)

static const uint32_t exceptions[] = { FATHOM_ARM_SVC, 0xd4000002, 0xd4000003, 0xd4200000 };

static bool encode(uint32_t op, uint64_t avma, uint64_t to, uint32_t *ret)
{
	const int64_t distance = (int64_t)(to - avma);

	if ((avma | to) % FATHOM_ARM_SIZE || distance < -FATHOM_ARM_REACH ||
	    distance >= FATHOM_ARM_REACH)
		return false;
	*ret = op | ((uint32_t)(distance / FATHOM_ARM_SIZE) & OFFSET_MASK);
	return true;
}

bool fathom_arm_jump(uint64_t avma, uint64_t to, uint32_t *ret)
{
	return encode(OP_B, avma, to, ret);
}

bool fathom_arm_call(uint64_t avma, uint64_t to, uint32_t *ret)
{
	return encode(OP_BL, avma, to, ret);
}

void fathom_arm_put_far_jump(uint64_t to, uint32_t words[FATHOM_ARM_FAR_WORDS])
{
	words[0] = OP_LOAD_X16;
	words[1] = OP_BRANCH_X16;
	memcpy(&words[2], &to, sizeof to);
}

uint32_t fathom_arm_push(uint32_t frame)
{
	return OP_PUSH | (-(frame / 8) & PAIR_MASK) << PAIR_SHIFT;
}

uint32_t fathom_arm_pop(uint32_t frame)
{
	return OP_POP | (frame / 8 & PAIR_MASK) << PAIR_SHIFT;
}

bool fathom_arm_may_change(uint32_t op)
{
	for (unsigned i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
		if ((op & EXCEPTION_MASK) == exceptions[i])
			return true;
	return (op & ~OFFSET_MASK) == OP_B || (op & ~OFFSET_MASK) == OP_BL ||
	       op == FATHOM_ARM_NOP || (op & ISB_MASK) == (OP_ISB & ISB_MASK);
}
