/* SPDX-License-Identifier: MIT */
/*
 * Steps over stacks made by hand: rows, signal frames, bad calls, frame pointers, calls by bytes.
 */
#include "unit.h"

#include <elf.h>

#include "piece.h"
#include "safe/unwind/step.h"

#define STACK 0x7000
#define CODE  0x1000
#define BIAS  0x10000

/* A thread: its registers, its stack and its code. */
struct thread {
	struct piece stack;
	struct piece code;
	struct fathom_reader stack_reader;
	struct fathom_reader code_reader;
	struct fathom_step_memory m;
	const struct fathom_unwind_arch *arch;
	struct fathom_registers r;
	struct fathom_registers before;
	struct fathom_row row;
};

/* Registers that are known hold 0x100 + their number; pc is CODE and sp is STACK. */
static void begin(struct thread *t, uint32_t machine)
{
	memset(t, 0, sizeof *t);
	t->stack.avma = STACK;
	t->code.avma = CODE;
	t->stack.size = t->code.size = sizeof t->stack.bytes;
	t->stack_reader = piece_reader(&t->stack);
	t->code_reader = piece_reader(&t->code);
	t->m = (struct fathom_step_memory){ &t->stack_reader, &t->code_reader, false };
	t->arch = fathom_unwind_arch(machine);
	t->r.machine = machine;
	for (uint8_t i = 0; i < t->arch->n; i++)
		fathom_register_set(&t->r, i, 0x100u + i);
	fathom_register_set(&t->r, t->arch->pc, t->r.pc = CODE);
	fathom_register_set(&t->r, t->arch->sp, t->r.sp = STACK);
	t->row.return_register = t->arch->link == FATHOM_NO_REGISTER ? t->arch->pc : t->arch->link;
	t->row.cfa = (struct fathom_rule){ .kind = FATHOM_RULE_REGISTER,
					   .number = t->arch->sp,
					   .offset = 2 * t->arch->word };
}

static void put(struct thread *t, uint64_t avma, uint64_t value)
{
	piece_put(&t->stack, avma, value, t->arch->word);
}

static void set_rule(struct thread *t, uint8_t number, uint8_t kind, int64_t offset)
{
	t->row.rule[number] = (struct fathom_rule){ .kind = kind, .offset = offset };
	t->row.stated |= UINT64_C(1) << number;
}

static void set_other(struct thread *t, uint8_t number, uint8_t other)
{
	t->row.rule[number] = (struct fathom_rule){ .kind = FATHOM_RULE_REGISTER, .number = other };
	t->row.stated |= UINT64_C(1) << number;
}

static void set_expression(struct thread *t, uint8_t number, uint8_t kind, const uint8_t *p,
			   uint32_t size)
{
	t->row.rule[number] = (struct fathom_rule){ .kind = kind, .size = size, .expression = p };
	t->row.stated |= UINT64_C(1) << number;
}

static void forget(struct thread *t, uint8_t number)
{
	t->r.known &= ~(UINT64_C(1) << number);
}

static enum fathom_stop step(struct thread *t)
{
	return fathom_step_row(&t->row, BIAS, t->arch, &t->m, &t->r);
}

static void known_is(const struct thread *t, uint8_t number, uint64_t value)
{
	assert_true(fathom_register_known(&t->r, number));
	assert_int_equal(t->r.value[number], value);
}

/* pc and sp stand twice. */
static void frame_is(const struct thread *t, uint64_t pc, uint64_t sp)
{
	assert_int_equal(t->r.pc, pc);
	assert_int_equal(t->r.sp, sp);
	known_is(t, t->arch->pc, pc);
	known_is(t, t->arch->sp, sp);
}

/* A step that has to stop, and to leave the registers alone. */
static void stops(struct thread *t, enum fathom_stop stop)
{
	t->before = t->r;
	assert_int_equal(step(t), stop);
	assert_memory_equal(&t->r, &t->before, sizeof t->r);
}

static void test_row(void **state)
{
	static const uint64_t kept = 1 << 3 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 15;
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	set_rule(&t, 16, FATHOM_RULE_AT_OFFSET, -8);
	set_rule(&t, 6, FATHOM_RULE_AT_OFFSET, -16);
	put(&t, STACK, 0xaaaa);
	put(&t, STACK + 8, 0xffffffff81000000);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0xffffffff81000000, STACK + 16);
	known_is(&t, 6, 0xaaaa);
	/* The other callee-saved registers keep their values; all others are unknown. */
	known_is(&t, 3, 0x103);
	known_is(&t, 15, 0x10f);
	assert_int_equal(t.r.known, kept | 1 << 6 | 1 << 7 | 1 << 16);
	assert_int_equal(t.r.machine, EM_X86_64);
}

static void test_every_rule(void **state)
{
	static const uint8_t at[] = { 0x23, 24 };      /* CFA + 24 */
	static const uint8_t is[] = { 0x71, 1, 0x22 }; /* CFA + r1 + 1 */
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	set_rule(&t, 16, FATHOM_RULE_AT_OFFSET, 0);
	put(&t, STACK + 16, 0x4444);
	set_rule(&t, 0, FATHOM_RULE_SAME, 0);
	set_rule(&t, 3, FATHOM_RULE_UNDEFINED, 0);
	set_rule(&t, 5, FATHOM_RULE_OFFSET, -4);
	set_other(&t, 6, 2);
	set_expression(&t, 8, FATHOM_RULE_AT_EXPRESSION, at, sizeof at);
	put(&t, STACK + 40, 0x5555);
	set_expression(&t, 9, FATHOM_RULE_EXPRESSION, is, sizeof is);
	set_rule(&t, 7, FATHOM_RULE_OFFSET, 8); /* sp is what the row says */
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x4444, STACK + 24);
	known_is(&t, 0, 0x100);
	assert_false(fathom_register_known(&t.r, 3));
	known_is(&t, 5, STACK + 12);
	known_is(&t, 6, 0x102);
	known_is(&t, 8, 0x5555);
	known_is(&t, 9, STACK + 16 + 0x101 + 1);
}

/* All rules are about the callee's registers, whatever is found before. */
static void test_swapped_registers(void **state)
{
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	set_other(&t, 16, 5); /* vfork of glibc: the return address is in rdi */
	set_other(&t, 3, 6);
	set_other(&t, 6, 3);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x105, STACK + 16);
	known_is(&t, 3, 0x106);
	known_is(&t, 6, 0x103);
}

static void test_cfa(void **state)
{
	static const uint8_t plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
	static const uint8_t addr[] = { 0x03, 0, 0x70, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	set_rule(&t, 16, FATHOM_RULE_AT_OFFSET, -8);
	put(&t, STACK, 0x1111);
	put(&t, STACK + 8, 0x2222);
	t.row.cfa = (struct fathom_rule){ .kind = FATHOM_RULE_EXPRESSION,
					  .size = sizeof plt,
					  .expression = plt };
	assert_int_equal(step(&t), FATHOM_STOP_NONE); /* pc is CODE: before the push */
	frame_is(&t, 0x1111, STACK + 8);
	begin(&t, EM_X86_64);
	set_rule(&t, 16, FATHOM_RULE_AT_OFFSET, 0);
	t.row.cfa = (struct fathom_rule){ .kind = FATHOM_RULE_EXPRESSION,
					  .size = sizeof addr,
					  .expression = addr };
	put(&t, STACK, 0x3333);
	assert_int_equal(step(&t), FATHOM_STOP_NONE); /* 0x7000 - 0x10000 + BIAS */
	frame_is(&t, 0x3333, STACK);
	begin(&t, EM_X86_64);
	t.row.cfa.kind = FATHOM_RULE_UNSPECIFIED;
	stops(&t, FATHOM_STOP_NO_RULE);
}

static void test_stops(void **state)
{
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	set_rule(&t, 16, FATHOM_RULE_AT_OFFSET, -8);
	/* A return address of 0 is left to the caller: it may end a stack, or be damaged. */
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0, STACK + 16);
	begin(&t, EM_X86_64);
	set_rule(&t, 16, FATHOM_RULE_AT_OFFSET, -8);
	put(&t, STACK + 8, 0x2222);
	t.row.cfa.number = 6;
	forget(&t, 6);
	stops(&t, FATHOM_STOP_REGISTER);
	t.row.cfa.number = 7;
	t.row.cfa.offset = -8;
	stops(&t, FATHOM_STOP_UNREADABLE); /* the return address is below the stack */
	t.row.cfa.offset = 16;
	set_other(&t, 16, 6);
	stops(&t, FATHOM_STOP_REGISTER);
	set_rule(&t, 16, FATHOM_RULE_UNDEFINED, 0);
	stops(&t, FATHOM_STOP_ENTRY);
	set_rule(&t, 16, FATHOM_RULE_SAME, 0);
	stops(&t, FATHOM_STOP_NO_RULE);
	t.row.stated = 0;
	stops(&t, FATHOM_STOP_NO_RULE);
}

/* A saved register that cannot be had is unknown; the step goes on. */
static void test_lost_registers(void **state)
{
	static const uint8_t endless[] = { 0x2f, 0xfd, 0xff };
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	set_rule(&t, 16, FATHOM_RULE_AT_OFFSET, -8);
	put(&t, STACK + 8, 0x2222);
	set_rule(&t, 3, FATHOM_RULE_AT_OFFSET, -0x1000);
	set_other(&t, 6, 0);
	forget(&t, 0);
	forget(&t, 12); /* callee-saved, but unknown before */
	set_rule(&t, 13, FATHOM_RULE_SAME, 0);
	forget(&t, 13);
	set_expression(&t, 14, FATHOM_RULE_EXPRESSION, endless, sizeof endless);
	set_expression(&t, 15, FATHOM_RULE_AT_EXPRESSION, endless, sizeof endless);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	assert_int_equal(t.r.known, 1 << 7 | 1 << 16);
	set_rule(&t, 7, FATHOM_RULE_AT_OFFSET, -0x1000); /* sp, too */
	put(&t, STACK + 24, 0x4444);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	assert_int_equal(t.r.known, 1 << 16);
	assert_int_equal(t.r.sp, 0);
	stops(&t, FATHOM_STOP_REGISTER);
}

/* Registers and addresses of i386 have 32 bits; eip is number 8, esp number 4. */
static void test_i386(void **state)
{
	struct thread t;

	(void)state;
	begin(&t, EM_386);
	set_rule(&t, 8, FATHOM_RULE_AT_OFFSET, -4);
	set_rule(&t, 5, FATHOM_RULE_AT_OFFSET, -8);
	put(&t, STACK + 4, 0xf7000000);
	put(&t, STACK, 0xffffff00);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0xf7000000, STACK + 8);
	known_is(&t, 5, 0xffffff00);
	known_is(&t, 3, 0x103);
	assert_int_equal(t.r.known, 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8);
	begin(&t, EM_386); /* 0xfffffff0 + 0x7018 is 0x7008 */
	fathom_register_set(&t.r, 5, 0xfffffff0);
	t.row.cfa.number = 5;
	t.row.cfa.offset = STACK + 0x18;
	set_rule(&t, 8, FATHOM_RULE_AT_OFFSET, -4);
	set_rule(&t, 3, FATHOM_RULE_OFFSET, -(STACK + 9));
	put(&t, STACK + 4, 0x1234);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x1234, STACK + 8);
	known_is(&t, 3, 0xffffffff);
	begin(&t, EM_386); /* 0xfffffff0 + 0x7014 is 0x7004 */
	fathom_register_set(&t.r, 5, 0xfffffff0);
	t.row.cfa.number = 5;
	t.row.cfa.offset = 0;
	set_rule(&t, 8, FATHOM_RULE_AT_OFFSET, STACK + 0x14);
	put(&t, STACK + 4, 0x1234);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x1234, 0xfffffff0);
}

static void test_aarch64(void **state)
{
	struct thread t;

	(void)state;
	begin(&t, EM_AARCH64);
	t.row.cfa.offset = 0; /* a leaf: the return address is in x30 */
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x11e, STACK);
	/* x19 to x29, sp and pc: the call itself has overwritten x30. */
	assert_int_equal(t.r.known, UINT64_C(0x3ff80000) | UINT64_C(1) << 31 | UINT64_C(1) << 32);
	stops(&t, FATHOM_STOP_REGISTER); /* the same again would be a second leaf */
	begin(&t, EM_AARCH64);
	set_rule(&t, 29, FATHOM_RULE_AT_OFFSET, -16);
	set_rule(&t, 30, FATHOM_RULE_AT_OFFSET, -8);
	put(&t, STACK, 0x7100);
	put(&t, STACK + 8, 0x5678);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x5678, STACK + 16);
	known_is(&t, 29, 0x7100);
	assert_false(fathom_register_known(&t.r, 30));
}

/*
 * Signatures are in bits 63 to 56 and 54 to 48; bit 55 tells the halves of the address space apart.
 */
static void test_pac(void **state)
{
	struct thread t;
	struct fathom_unwind_arch narrow;

	(void)state;
	begin(&t, EM_AARCH64);
	set_rule(&t, 30, FATHOM_RULE_AT_OFFSET, -8);
	put(&t, STACK + 8, 0xab3cffff12345678);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	assert_int_equal(t.r.pc, 0xab3cffff12345678); /* the row does not say that it is signed */
	begin(&t, EM_AARCH64);
	set_rule(&t, 30, FATHOM_RULE_AT_OFFSET, -8);
	t.row.is_ra_signed = true;
	put(&t, STACK + 8, 0xab3cffff12345678);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x0000ffff12345678, STACK + 16);
	put(&t, STACK + 24, 0xabbc800012345678);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0xffff800012345678, STACK + 32);
	narrow = *t.arch; /* 39 bits of address, without the tag's byte */
	narrow.pac_mask = UINT64_C(0x007fff8000000000);
	t.arch = &narrow;
	put(&t, STACK + 40, 0xab7fffff12345678);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0xab00007f12345678, STACK + 48);
	put(&t, STACK + 56, 0x0055000000000000); /* nothing but a signature */
	narrow.pac_mask = UINT64_C(0xff7f000000000000);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0, STACK + 64);
}

/* The other byte order, as of big-endian aarch64. */
static void test_swapped_bytes(void **state)
{
	struct thread t;

	(void)state;
	begin(&t, EM_AARCH64);
	t.m.swap = true;
	set_rule(&t, 30, FATHOM_RULE_AT_OFFSET, -8);
	put(&t, STACK + 8, 0x7856341200000000);
	assert_int_equal(step(&t), FATHOM_STOP_NONE);
	frame_is(&t, 0x12345678, STACK + 16);
}

/* Code by which a handler returns, and the order in which the kernel has saved the registers. */
struct signal_return {
	uint32_t machine;
	uint8_t size;
	uint8_t code[9];
	uint8_t n;
	uint8_t numbers[33];
};

static const struct signal_return mov_64 = { EM_X86_64,
					     9,
					     { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 },
					     17,
					     { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7,
					       16 } };
static const struct signal_return mov_32 = { EM_X86_64,
					     7,
					     { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 },
					     17,
					     { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7,
					       16 } };
static const struct signal_return rt_i386 = {
	EM_386, 7, { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 }, 8, { 7, 6, 5, 4, 3, 2, 1, 0 }
};
static const struct signal_return old_i386 = {
	EM_386, 8, { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 }, 8, { 7, 6, 5, 4, 3, 2, 1, 0 }
};
static const struct signal_return rt_aarch64 = { EM_AARCH64,
						 8,
						 { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 },
						 33,
						 { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
						   11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
						   22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 } };

/* The places in the code. */
static const struct {
	const struct signal_return *is;
	uint8_t at;      /* of pc */
	uint16_t slots;  /* from sp to the first register */
	int16_t siginfo; /* from sp; -1: there is none */
} signals[] = {
	{ &mov_64, 0, 40, 304 },
	{ &mov_64, 7, 40, 304 },
	{ &mov_32, 0, 40, 304 },
	/* rt_sigreturn: 12 + 128 + 20 bytes to gs; edi is the fifth of 32 bits */
	{ &rt_i386, 0, 176, 12 },
	{ &rt_i386, 5, 176, 12 },
	/* sigreturn: the signal's number, gs; the pop takes the number away */
	{ &old_i386, 0, 20, -1 },
	{ &old_i386, 1, 16, -1 },
	{ &old_i386, 6, 16, -1 },
	{ &rt_aarch64, 0, 312, 0 },
	{ &rt_aarch64, 4, 312, 0 },
};

/* Makes the thread be in a handler's return, with register i saved as 0x40000 + i. */
static void begin_signal(struct thread *t, size_t i)
{
	begin(t, signals[i].is->machine);
	memcpy(t->code.bytes, signals[i].is->code, signals[i].is->size);
	t->r.pc = t->r.value[t->arch->pc] = CODE + signals[i].at;
	for (uint8_t k = 0; k < signals[i].is->n; k++)
		put(t, STACK + signals[i].slots + (uint64_t)k * t->arch->word,
		    0x40000u + signals[i].is->numbers[k]);
	if (signals[i].is->machine == EM_386) /* behind two words about a trap */
		put(t, STACK + signals[i].slots + 40, 0x40008);
}

static void test_signals(void **state)
{
	struct thread t;
	bool is;

	(void)state;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		begin_signal(&t, i);
		assert_int_equal(fathom_step_signal(t.arch, &t.m, &t.r, &is), FATHOM_STOP_NONE);
		assert_true(is);
		for (uint8_t k = 0; k < t.arch->n; k++)
			known_is(&t, k, 0x40000u + k);
		frame_is(&t, 0x40000u + t.arch->pc, 0x40000u + t.arch->sp);
		assert_int_equal(t.r.machine, signals[i].is->machine);
	}
}

static void test_siginfo(void **state)
{
	struct thread t;
	uint64_t at;

	(void)state;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		begin_signal(&t, i);
		at = 1;
		assert_int_equal(fathom_step_siginfo(t.arch, &t.m, &t.r, &at),
				 signals[i].siginfo >= 0);
		assert_int_equal(
			at, signals[i].siginfo < 0 ? 1 : t.r.sp + (uint64_t)signals[i].siginfo);
		t.code.bytes[1] ^= 0x20;
		assert_false(fathom_step_siginfo(t.arch, &t.m, &t.r, &at));
	}
}

static void test_no_signal(void **state)
{
	struct thread t;
	bool is;

	(void)state;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		for (uint8_t k = 0; k < signals[i].is->size; k++) { /* another byte */
			begin_signal(&t, i);
			t.code.bytes[k] ^= 0x20;
			t.before = t.r;
			is = true;
			assert_int_equal(fathom_step_signal(t.arch, &t.m, &t.r, &is),
					 FATHOM_STOP_NONE);
			assert_false(is);
			assert_memory_equal(&t.r, &t.before, sizeof t.r);
		}
		begin_signal(&t, i);
		t.code.size = signals[i].is->size - 1u; /* cut off */
		assert_int_equal(fathom_step_signal(t.arch, &t.m, &t.r, &is), FATHOM_STOP_NONE);
		assert_false(is);
		begin_signal(&t, i);
		forget(&t, t.arch->sp);
		assert_int_equal(fathom_step_signal(t.arch, &t.m, &t.r, &is), FATHOM_STOP_REGISTER);
		begin_signal(&t, i);
		t.stack.size = signals[i].slots + 8; /* registers are missing */
		t.before = t.r;
		assert_int_equal(fathom_step_signal(t.arch, &t.m, &t.r, &is),
				 FATHOM_STOP_UNREADABLE);
		assert_memory_equal(&t.r, &t.before, sizeof t.r);
	}
}

static void test_bad_call(void **state)
{
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	put(&t, STACK, 0x2222);
	assert_int_equal(fathom_step_bad_call(t.arch, &t.m, &t.r), FATHOM_STOP_NONE);
	frame_is(&t, 0x2222, STACK + 8);
	known_is(&t, 0, 0x100); /* nothing else has run */
	assert_int_equal(fathom_step_bad_call(t.arch, &t.m, &t.r), FATHOM_STOP_NO_RULE);
	t.stack.size = 8;
	assert_int_equal(fathom_step_bad_call(t.arch, &t.m, &t.r), FATHOM_STOP_UNREADABLE);
	forget(&t, 7);
	assert_int_equal(fathom_step_bad_call(t.arch, &t.m, &t.r), FATHOM_STOP_REGISTER);
	begin(&t, EM_386);
	put(&t, STACK, 0x2222);
	assert_int_equal(fathom_step_bad_call(t.arch, &t.m, &t.r), FATHOM_STOP_NONE);
	frame_is(&t, 0x2222, STACK + 4);
	begin(&t, EM_AARCH64);
	assert_int_equal(fathom_step_bad_call(t.arch, &t.m, &t.r), FATHOM_STOP_NONE);
	frame_is(&t, 0x11e, STACK);
	assert_int_equal(fathom_step_bad_call(t.arch, &t.m, &t.r), FATHOM_STOP_REGISTER);
}

/* What frame pointer and frame record lead to; @fp and @saved from the start of the stack. */
static const struct {
	uint32_t machine;
	int fp;
	uint64_t saved;
	uint64_t pc;
	enum fathom_stop stop;
} records[] = {
	{ EM_X86_64, 0, STACK + 0x40, 0x2222, FATHOM_STOP_NONE },
	{ EM_X86_64, 0x20, STACK + 0x40, 0x2222, FATHOM_STOP_NONE },
	{ EM_X86_64, 0x20, 0, 0x2222, FATHOM_STOP_NONE },
	{ EM_X86_64, 0x20, 0, 0, FATHOM_STOP_NONE },
	{ EM_X86_64, 0x20, STACK + 0x40, 0, FATHOM_STOP_NO_RULE },
	{ EM_X86_64, 0x20, STACK + 0x20, 0x2222, FATHOM_STOP_NO_RULE }, /* itself */
	{ EM_X86_64, 0x20, STACK + 0x10, 0x2222, FATHOM_STOP_NO_RULE }, /* further in */
	{ EM_X86_64, 0x20, STACK + 0x44, 0x2222, FATHOM_STOP_NO_RULE }, /* not aligned */
	{ EM_X86_64, 0x24, STACK + 0x40, 0x2222, FATHOM_STOP_NO_RULE },
	{ EM_X86_64, -8, STACK + 0x40, 0x2222, FATHOM_STOP_NO_RULE },     /* below sp */
	{ EM_X86_64, -STACK, STACK + 0x40, 0x2222, FATHOM_STOP_NO_RULE }, /* 0 */
	{ EM_X86_64, 0x3f8, STACK + 0x400, 0x2222, FATHOM_STOP_UNREADABLE },
	{ EM_386, 0x24, STACK + 0x44, 0xf7002222, FATHOM_STOP_NONE },
	{ EM_386, 0x22, STACK + 0x44, 0x2222, FATHOM_STOP_NO_RULE },
	{ EM_AARCH64, 0x20, STACK + 0x40, 0x2222, FATHOM_STOP_NONE },
	{ EM_AARCH64, 0x20, STACK + 0x40, 0xab3c000000002222, FATHOM_STOP_NONE },
	{ EM_AARCH64, 0x20, 0, 0, FATHOM_STOP_NONE },
};

static void test_frame_pointer(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
		const uint64_t fp = STACK + (uint64_t)(int64_t)records[i].fp;
		struct thread t;

		begin(&t, records[i].machine);
		t.r.value[t.arch->fp] = fp;
		if (fp >= STACK && fp < STACK + 0x3f0) {
			put(&t, fp, records[i].saved);
			put(&t, fp + t.arch->word, records[i].pc);
		}
		t.before = t.r;
		assert_int_equal(fathom_step_frame_pointer(t.arch, &t.m, &t.r), records[i].stop);
		if (records[i].stop) {
			assert_memory_equal(&t.r, &t.before, sizeof t.r);
			continue;
		}
		known_is(&t, t.arch->fp, records[i].saved);
		if (records[i].machine == EM_AARCH64) { /* sp is unknown; the pc was signed */
			assert_int_equal(t.r.pc, records[i].pc ? 0x2222 : 0);
			assert_int_equal(t.r.known, UINT64_C(1) << 29 | UINT64_C(1) << 32);
			continue;
		}
		frame_is(&t, records[i].pc, fp + 2u * t.arch->word);
		assert_int_equal(t.r.known, UINT64_C(1) << t.arch->fp | UINT64_C(1) << t.arch->sp |
						    UINT64_C(1) << t.arch->pc);
	}
}

static void test_frame_pointer_unknown(void **state)
{
	struct thread t;

	(void)state;
	begin(&t, EM_X86_64);
	forget(&t, 6);
	assert_int_equal(fathom_step_frame_pointer(t.arch, &t.m, &t.r), FATHOM_STOP_REGISTER);
	begin(&t, EM_386); /* no record fits behind it */
	t.r.value[5] = 0xfffffffc;
	assert_int_equal(fathom_step_frame_pointer(t.arch, &t.m, &t.r), FATHOM_STOP_NO_RULE);
	begin(&t, EM_AARCH64); /* without sp, there is no bound below */
	forget(&t, 31);
	t.r.value[29] = STACK + 8;
	put(&t, STACK + 8, STACK + 0x40);
	put(&t, STACK + 16, 0x2222);
	assert_int_equal(fathom_step_frame_pointer(t.arch, &t.m, &t.r), FATHOM_STOP_NONE);
}

/* Instructions as assemblers encode them; pc is behind them. */
static const struct {
	uint32_t machine;
	bool is_call;
	uint8_t size;
	uint8_t bytes[8];
} calls[] = {
	{ EM_X86_64, true, 5, { 0xe8, 1, 2, 3, 4 } },                      /* call rel32 */
	{ EM_X86_64, true, 2, { 0xff, 0xd0 } },                            /* *%rax */
	{ EM_X86_64, true, 3, { 0x41, 0xff, 0xd4 } },                      /* *%r12 */
	{ EM_X86_64, true, 2, { 0xff, 0x10 } },                            /* *(%rax) */
	{ EM_X86_64, true, 3, { 0xff, 0x14, 0xd8 } },                      /* *(%rax,%rbx,8) */
	{ EM_X86_64, true, 3, { 0xff, 0x50, 0x18 } },                      /* *24(%rax) */
	{ EM_X86_64, true, 4, { 0xff, 0x54, 0x24, 0x08 } },                /* *8(%rsp) */
	{ EM_X86_64, true, 6, { 0xff, 0x15, 1, 2, 3, 4 } },                /* *x(%rip) */
	{ EM_X86_64, true, 6, { 0xff, 0x90, 1, 2, 0, 0 } },                /* *513(%rax) */
	{ EM_X86_64, true, 7, { 0xff, 0x94, 0x24, 1, 2, 0, 0 } },          /* *513(%rsp) */
	{ EM_X86_64, true, 7, { 0xff, 0x14, 0x25, 1, 2, 0, 0 } },          /* *513 */
	{ EM_X86_64, true, 8, { 0x65, 0xff, 0x14, 0x25, 0x10, 0, 0, 0 } }, /* *%gs:16 */
	{ EM_X86_64, false, 2, { 0xff, 0xe0 } },                           /* jmp *%rax */
	{ EM_X86_64, false, 6, { 0xff, 0x25, 1, 2, 3, 4 } },               /* jmp *x(%rip) */
	{ EM_X86_64, false, 5, { 0xe9, 1, 2, 3, 4 } },                     /* jmp rel32 */
	{ EM_X86_64, false, 2, { 0xff, 0x15 } },                           /* an end is missing */
	{ EM_X86_64, false, 3, { 0xff, 0xd0, 0x90 } },                     /* a call, nop */
	{ EM_386, true, 5, { 0xe8, 1, 2, 3, 4 } },
	{ EM_386, true, 7, { 0x65, 0xff, 0x15, 0x10, 0, 0, 0 } }, /* *%gs:16 */
	{ EM_386, false, 7, { 0x65, 0xff, 0x25, 0x10, 0, 0, 0 } },
	{ EM_AARCH64, true, 4, { 0x01, 0, 0, 0x94 } },        /* bl .+4 */
	{ EM_AARCH64, true, 4, { 0xff, 0xff, 0xff, 0x97 } },  /* bl .-4 */
	{ EM_AARCH64, true, 4, { 0x20, 0, 0x3f, 0xd6 } },     /* blr x1 */
	{ EM_AARCH64, true, 4, { 0x22, 0x08, 0x3f, 0xd7 } },  /* blraa x1, x2 */
	{ EM_AARCH64, true, 4, { 0x22, 0x0c, 0x3f, 0xd7 } },  /* blrab x1, x2 */
	{ EM_AARCH64, true, 4, { 0x3f, 0x08, 0x3f, 0xd6 } },  /* blraaz x1 */
	{ EM_AARCH64, true, 4, { 0x3f, 0x0c, 0x3f, 0xd6 } },  /* blrabz x1 */
	{ EM_AARCH64, false, 4, { 0x01, 0, 0, 0x14 } },       /* b .+4 */
	{ EM_AARCH64, false, 4, { 0x20, 0, 0x1f, 0xd6 } },    /* br x1 */
	{ EM_AARCH64, false, 4, { 0xc0, 0x03, 0x5f, 0xd6 } }, /* ret */
	{ EM_AARCH64, false, 4, { 0x1f, 0x08, 0x1f, 0xd6 } }, /* braaz x0 */
};

static void test_is_behind_call(void **state)
{
	struct thread t;

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		const uint64_t pc = CODE + 16 + calls[i].size;

		begin(&t, calls[i].machine);
		memset(t.code.bytes, 0x90, 16);
		memcpy(t.code.bytes + 16, calls[i].bytes, calls[i].size);
		assert_int_equal(fathom_step_is_behind_call(t.arch, &t.m, pc), calls[i].is_call);
		/* At the start of what can be read. */
		memmove(t.code.bytes, t.code.bytes + 16, sizeof t.code.bytes - 16);
		assert_int_equal(fathom_step_is_behind_call(t.arch, &t.m, pc - 16),
				 calls[i].is_call);
		assert_false(
			fathom_step_is_behind_call(t.arch, &t.m, CODE + sizeof t.code.bytes + 1));
		assert_false(fathom_step_is_behind_call(t.arch, &t.m, CODE));
		assert_false(fathom_step_is_behind_call(t.arch, &t.m, 0));
	}
	begin(&t, EM_AARCH64); /* a return address is a multiple of 4 */
	memcpy(t.code.bytes + 1, (uint8_t[]){ 0x20, 0, 0x3f, 0xd6 }, 4);
	assert_false(fathom_step_is_behind_call(t.arch, &t.m, CODE + 5));
}

/* Direct calls at CODE + 16, and where they lead. */
static const struct {
	uint32_t machine;
	uint8_t bytes[5];
	uint8_t size;
	uint64_t target; /* 0: it is no direct call */
} direct_calls[] = {
	{ EM_X86_64, { 0xe8, 0x10, 0, 0, 0 }, 5, CODE + 16 + 5 + 0x10 },
	{ EM_X86_64, { 0xe8, 0xfb, 0xff, 0xff, 0xff }, 5, CODE + 16 },
	{ EM_X86_64, { 0xe8, 0, 0, 0, 0x80 }, 5, CODE + 16 + 5 - UINT64_C(0x80000000) },
	{ EM_X86_64, { 0xe9, 0x10, 0, 0, 0 }, 5, 0 },
	{ EM_X86_64, { 0xff, 0xd0 }, 2, 0 },
	/* Addresses have 32 bits: 0x1015 - 0x2000. */
	{ EM_386, { 0xe8, 0, 0xe0, 0xff, 0xff }, 5, UINT64_C(0xfffff015) },
	{ EM_AARCH64, { 0x01, 0, 0, 0x94 }, 4, CODE + 16 + 4 },
	{ EM_AARCH64, { 0xff, 0xff, 0xff, 0x97 }, 4, CODE + 16 - 4 },
	{ EM_AARCH64, { 0, 0, 0, 0x96 }, 4, CODE + 16 - (UINT64_C(1) << 27) },
	{ EM_AARCH64, { 0xff, 0xff, 0xff, 0x95 }, 4, CODE + 16 + (UINT64_C(1) << 27) - 4 },
	{ EM_AARCH64, { 0x01, 0, 0, 0x14 }, 4, 0 },
	{ EM_AARCH64, { 0x20, 0, 0x3f, 0xd6 }, 4, 0 },
};

static void test_call_target(void **state)
{
	struct thread t;

	(void)state;
	for (size_t i = 0; i < sizeof direct_calls / sizeof *direct_calls; i++) {
		const uint64_t pc = CODE + 16 + direct_calls[i].size;
		uint64_t target = 0;

		begin(&t, direct_calls[i].machine);
		memcpy(t.code.bytes + 16, direct_calls[i].bytes, direct_calls[i].size);
		assert_int_equal(fathom_step_call_target(t.arch, &t.m, pc, &target),
				 direct_calls[i].target != 0);
		assert_true(!direct_calls[i].target || target == direct_calls[i].target);
		assert_false(fathom_step_call_target(t.arch, &t.m, CODE, &target));
		assert_false(fathom_step_call_target(t.arch, &t.m, 0, &target));
	}
}

/* Functions, and whether they may go on elsewhere. */
static const struct {
	uint32_t machine;
	bool may;
	uint8_t size;
	uint8_t bytes[16];
} functions[] = {
	{ EM_X86_64, false, 6, { 0xe8, 1, 2, 3, 4, 0xc3 } },             /* call; ret */
	{ EM_X86_64, false, 6, { 0xe9, 0, 0, 0, 0, 0xc3 } },             /* jmp .+5 */
	{ EM_X86_64, true, 6, { 0xe9, 1, 0, 0, 0, 0xc3 } },              /* jmp .+6, the end */
	{ EM_X86_64, true, 6, { 0xe9, 0xfa, 0xff, 0xff, 0xff, 0xc3 } },  /* jmp .-1 */
	{ EM_X86_64, false, 6, { 0xe9, 0xfb, 0xff, 0xff, 0xff, 0xc3 } }, /* jmp . */
	{ EM_X86_64, true, 3, { 0x90, 0xeb, 0x10 } },                    /* jmp .+18 */
	{ EM_X86_64, false, 3, { 0x90, 0xeb, 0xfd } },                   /* jmp .-1 */
	{ EM_X86_64, true, 7, { 0x0f, 0x84, 0x10, 0, 0, 0, 0xc3 } },     /* je .+22 */
	{ EM_X86_64, false, 7, { 0x0f, 0x84, 0, 0, 0, 0, 0xc3 } },       /* je .+6 */
	{ EM_X86_64, true, 2, { 0xff, 0xe0 } },                          /* jmp *%rax */
	{ EM_X86_64, true, 7, { 0x48, 0xff, 0x25, 0, 0, 0, 0 } },        /* jmp *x(%rip) */
	{ EM_X86_64, false, 3, { 0xff, 0xd0, 0xc3 } },                   /* call *%rax */
	{ EM_X86_64, true, 5, { 0xe8, 0, 0, 0xeb, 0x10 } },              /* looks so */
	{ EM_X86_64, false, 4, { 0xe9, 1, 0, 0 } },                      /* an end is missing */
	{ EM_X86_64, false, 0, { 0 } },
	{ EM_386, true, 5, { 0xe9, 0, 0x10, 0, 0 } },
	{ EM_AARCH64, false, 8, { 0x01, 0, 0, 0x14, 0xc0, 0x03, 0x5f, 0xd6 } }, /* b .+4; ret */
	{ EM_AARCH64, true, 8, { 0x02, 0, 0, 0x14, 0xc0, 0x03, 0x5f, 0xd6 } },  /* b .+8, the end */
	{ EM_AARCH64, true, 8, { 0xff, 0xff, 0xff, 0x17, 0xc0, 0x03, 0x5f, 0xd6 } }, /* b .-4 */
	{ EM_AARCH64, false, 8, { 0xc0, 0x03, 0x5f, 0xd6, 0xff, 0xff, 0xff, 0x17 } },
	{ EM_AARCH64, true, 4, { 0x20, 0x02, 0x1f, 0xd6 } },                    /* br x17 */
	{ EM_AARCH64, false, 8, { 0x10, 0, 0, 0x94, 0xc0, 0x03, 0x5f, 0xd6 } }, /* bl */
};

static void test_may_jump_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		const struct fathom_bytes code = { functions[i].bytes, functions[i].size };

		if (fathom_unwind_arch(functions[i].machine)->may_jump_out(code) !=
		    functions[i].may)
			fail_msg("function %zu", i);
	}
}

static void test_machines(void **state)
{
	(void)state;
	assert_int_equal(fathom_unwind_arch(EM_X86_64)->machine, EM_X86_64);
	assert_int_equal(fathom_unwind_arch(EM_386)->machine, EM_386);
	assert_int_equal(fathom_unwind_arch(EM_AARCH64)->machine, EM_AARCH64);
	assert_null(fathom_unwind_arch(EM_RISCV));
	assert_null(fathom_unwind_arch(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_row),
		cmocka_unit_test(test_every_rule),
		cmocka_unit_test(test_swapped_registers),
		cmocka_unit_test(test_cfa),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_lost_registers),
		cmocka_unit_test(test_i386),
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_pac),
		cmocka_unit_test(test_swapped_bytes),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_siginfo),
		cmocka_unit_test(test_no_signal),
		cmocka_unit_test(test_bad_call),
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_frame_pointer_unknown),
		cmocka_unit_test(test_is_behind_call),
		cmocka_unit_test(test_call_target),
		cmocka_unit_test(test_may_jump_out),
		cmocka_unit_test(test_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
