/* SPDX-License-Identifier: MIT */
/*
 * A program of x86-64 that runs itself one instruction at a time: the trap flag is set, and the
 * handler of SIGTRAP calls own_step_note() and own_step_take(). <ucontext.h> wants _GNU_SOURCE.
 */
#ifndef OWN_STEPS_H
#define OWN_STEPS_H

#include <ucontext.h>

#include "shadow_log.h"

enum { OWN_STEP_FLAG = 0x100 };

/* Registers, and the instruction that is made next. */
struct own_step {
	uint64_t pc, sp, fp;
	uint8_t code[16];
};

static inline uint64_t own_word(const void *data, uint64_t at)
{
	(void)data;
	return *(const uint64_t *)at;
}

/* Takes the registers @r before an instruction. */
static inline void own_step_take(struct own_step *s, const greg_t *r)
{
	*s = (struct own_step){ .pc = (uint64_t)r[REG_RIP],
				.sp = (uint64_t)r[REG_RSP],
				.fp = (uint64_t)r[REG_RBP] };
	if (s->pc)
		memcpy(s->code, (const void *)s->pc, sizeof s->code);
}

/*
 * Notes what the instruction at @before did, behind which the registers are @r. The trap of a
 * system call comes one instruction late.
 */
static inline void own_step_note(struct own_step *before, struct log *log, const greg_t *r)
{
	static const uint8_t nothing[16];
	uint8_t *const code = before->code;
	struct log_step s = { .code = code,
			      .sp = before->sp,
			      .fp = before->fp,
			      .now_pc = (uint64_t)r[REG_RIP],
			      .now_sp = (uint64_t)r[REG_RSP],
			      .now_counter = (uint64_t)r[REG_RCX],
			      .now_code = r[REG_RIP] ? (const uint8_t *)r[REG_RIP] : nothing,
			      .top = own_word(NULL, (uint64_t)r[REG_RSP]) };

	if (log_is_syscall(code) && s.now_pc != before->pc + 2)
		memmove(code, code + 2, sizeof before->code - 2);
	if (log_throws(s.now_code))
		s.at_counter = own_word(NULL, s.now_counter);
	log_note(log, &s);
}

static inline void own_steps_begin(void)
{
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq; nop" ::"i"(OWN_STEP_FLAG)
			 : "cc", "memory");
}

#endif
