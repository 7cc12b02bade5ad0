/* SPDX-License-Identifier: MIT */
/*
 * Instructions of x86-64 that lead elsewhere, call the kernel, or do nothing (Intel SDM volume 2:
 * CALL, JMP, RET, SYSCALL, NOP, INT3), as bytes. Nothing here sees a process.
 */
#ifndef FATHOM_CODE_X86_INSTRUCTIONS_H
#define FATHOM_CODE_X86_INSTRUCTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Opcodes and prefixes. */
enum {
	FATHOM_X86_CALL = 0xe8,         /* call rel32 */
	FATHOM_X86_JUMP = 0xe9,         /* jmp rel32 */
	FATHOM_X86_SHORT_JUMP = 0xeb,   /* jmp rel8 */
	FATHOM_X86_BY_WORD = 0xff,      /* with the next two: by the word at rel32(%rip) */
	FATHOM_X86_CALL_BY_WORD = 0x15, /* ModRM of call *rel32(%rip) */
	FATHOM_X86_JUMP_BY_WORD = 0x25, /* ModRM of jmp *rel32(%rip) */
	FATHOM_X86_RET = 0xc3,
	FATHOM_X86_NOP = 0x90,
	FATHOM_X86_INT3 = 0xcc,
	FATHOM_X86_MOV_EAX = 0xb8, /* mov imm32, %eax */
	FATHOM_X86_LOCK = 0xf0,
	FATHOM_X86_ADDRESS_SIZE = 0x67 /* says nothing before a call rel32 */
};

/* Bytes of instructions, and of a displacement rel32, with which they end. */
enum {
	FATHOM_X86_BRANCH_SIZE = 5, /* call and jmp rel32; mov imm32, %eax */
	FATHOM_X86_SHORT_SIZE = 2,
	FATHOM_X86_BY_WORD_SIZE = 6,
	FATHOM_X86_FAR_SIZE = 14, /* fathom_x86_put_far_jump() */
	FATHOM_X86_SYSCALL_SIZE = 2,
	FATHOM_X86_REL32_SIZE = 4
};

/* How far rel32 leads either way, in bytes, and rel8 forwards. */
#define FATHOM_X86_REACH       (UINT64_C(1) << 31)
#define FATHOM_X86_SHORT_REACH 127

/* syscall */
static const uint8_t fathom_x86_syscall[FATHOM_X86_SYSCALL_SIZE] = { 0x0f, 0x05 };

/* mov $15, %rax; syscall: a call of rt_sigreturn(), as it stands after handlers. */
static const uint8_t fathom_x86_sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

/* nopl 0(%rax,%rax,1): as long as a call. */
static const uint8_t fathom_x86_long_nop[FATHOM_X86_BRANCH_SIZE] = { 0x0f, 0x1f, 0x44, 0, 0 };

static inline bool fathom_x86_is_syscall(const uint8_t *code)
{
	return !memcmp(code, fathom_x86_syscall, sizeof fathom_x86_syscall);
}

/* Returns whether @code, of at least 2 bytes, begins jmp *rel32(%rip). */
static inline bool fathom_x86_is_jump_by_word(const uint8_t *code)
{
	return code[0] == FATHOM_X86_BY_WORD && code[1] == FATHOM_X86_JUMP_BY_WORD;
}

/* Returns whether @code, of at least 2 bytes, begins call *rel32(%rip). */
static inline bool fathom_x86_is_call_by_word(const uint8_t *code)
{
	return code[0] == FATHOM_X86_BY_WORD && code[1] == FATHOM_X86_CALL_BY_WORD;
}

/*
 * Returns the address that the displacement leads to with which @code, @size bytes at @avma, ends.
 */
uint64_t fathom_x86_target(uint64_t avma, const uint8_t *code, size_t size);

/*
 * Writes the displacement from @end, the avma after the instruction, to @to; returns false if it
 * is too far: the bytes are of no use then.
 */
bool fathom_x86_put_rel32(uint64_t end, uint64_t to, uint8_t bytes[FATHOM_X86_REL32_SIZE]);

/* Write an instruction at @avma that leads to @to; return false if it is too far. */
bool fathom_x86_put_call(uint64_t avma, uint64_t to, uint8_t bytes[FATHOM_X86_BRANCH_SIZE]);
bool fathom_x86_put_jump(uint64_t avma, uint64_t to, uint8_t bytes[FATHOM_X86_BRANCH_SIZE]);
bool fathom_x86_put_short_jump(uint64_t avma, uint64_t to, uint8_t bytes[FATHOM_X86_SHORT_SIZE]);

/* Writes a jump at @avma to where the word at @word leads; returns false if that is too far. */
bool fathom_x86_put_jump_by_word(uint64_t avma, uint64_t word,
				 uint8_t bytes[FATHOM_X86_BY_WORD_SIZE]);

/* Writes a jump to @to, at whatever distance, with the word after it that has @to. */
void fathom_x86_put_far_jump(uint64_t to, uint8_t bytes[FATHOM_X86_FAR_SIZE]);

#endif
