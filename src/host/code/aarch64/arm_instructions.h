/* SPDX-License-Identifier: MIT */
/*
 * Instructions of aarch64 that lead elsewhere, call the kernel, or do nothing (Arm ARM, C6.2), as
 * words. Nothing here sees a process.
 */
#ifndef FATHOM_CODE_ARM_INSTRUCTIONS_H
#define FATHOM_CODE_ARM_INSTRUCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of an instruction. */
#define FATHOM_ARM_SIZE 4

#define FATHOM_ARM_NOP UINT32_C(0xd503201f)
#define FATHOM_ARM_SVC UINT32_C(0xd4000001) /* svc #0 */
#define FATHOM_ARM_RET UINT32_C(0xd65f03c0)

/* How far a branch leads, in bytes, either way. */
#define FATHOM_ARM_REACH (INT64_C(1) << 27)

/* Instructions of fathom_arm_put_far_jump(), with the two words that have the address. */
#define FATHOM_ARM_FAR_WORDS 4

/*
 * Encodes a branch, or a call, at @avma to @to; returns false if it is too far, or one of both is
 * no address of an instruction.
 */
bool fathom_arm_jump(uint64_t avma, uint64_t to, uint32_t *ret);
bool fathom_arm_call(uint64_t avma, uint64_t to, uint32_t *ret);

/* Writes a jump to @to, at whatever distance, by x16: ldr x16, .+8; br x16; @to. */
void fathom_arm_put_far_jump(uint64_t to, uint32_t words[FATHOM_ARM_FAR_WORDS]);

/* Encode stp x16, x30, [sp, #-@frame]! and its reverse, ldp; @frame, below 512, is 16 * n. */
uint32_t fathom_arm_push(uint32_t frame);
uint32_t fathom_arm_pop(uint32_t frame);

/*
 * Returns whether threads may run @op while it is written over another such instruction, or such
 * one over it: B, BL, NOP, BRK, SVC, HVC, SMC, ISB (Arm ARM, B2.2.5, "Concurrent modification and
 * execution of instructions").
 */
bool fathom_arm_may_change(uint32_t op);

#endif
