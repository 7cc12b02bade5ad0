/* SPDX-License-Identifier: MIT */
/* Instructions of aarch64 that lead elsewhere (Arm ARM, C6.2, "B" and "BL"). */
#ifndef FATHOM_REWRITE_ARM_BRANCH_H
#define FATHOM_REWRITE_ARM_BRANCH_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of an instruction. */
#define FATHOM_ARM_SIZE 4

/* What a NOP is. */
#define FATHOM_ARM_NOP UINT32_C(0xd503201f)

/* How far a branch leads, in bytes, either way. */
#define FATHOM_ARM_REACH (INT64_C(1) << 27)

/*
 * Encodes a branch, or a call, at @avma to @to; returns false if it is too far, or one of both is
 * no address of an instruction.
 */
bool fathom_arm_jump(uint64_t avma, uint64_t to, uint32_t *ret);
bool fathom_arm_call(uint64_t avma, uint64_t to, uint32_t *ret);

/*
 * Returns whether threads may run @op while it is written over another such instruction, or such
 * one over it: B, BL, NOP, BRK, SVC, HVC, SMC, ISB (Arm ARM, B2.2.5, "Concurrent modification and
 * execution of instructions").
 */
bool fathom_arm_may_change(uint32_t op);

#endif
