/* SPDX-License-Identifier: MIT */
/* Steps by the ends of functions, in code and stacks made by hand. */
#include "unit.h"

#include <elf.h>

#include "piece.h"
#include "safe/unwind/epilogue.h"

#define STACK 0x7000
#define CODE  0x1000

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, R15 = 15, RIP = 16 };

struct thread {
	struct piece stack;
	struct piece code;
	struct fathom_reader stack_reader;
	struct fathom_reader code_reader;
	struct fathom_step_memory m;
	struct fathom_registers r;
};

/* The stack's word i is 0x5000 + i; registers hold 0x100 + their number; the code is @code. */
static void begin(struct thread *t, const char *code, size_t size)
{
	memset(t, 0, sizeof *t);
	t->stack.avma = STACK;
	t->code.avma = CODE;
	t->stack.size = 256;
	t->code.size = size;
	for (unsigned i = 0; i < 32; i++)
		piece_put(&t->stack, STACK + 8 * i, 0x5000 + i, 8);
	memcpy(t->code.bytes, code, size);
	t->stack_reader = piece_reader(&t->stack);
	t->code_reader = piece_reader(&t->code);
	t->m = (struct fathom_step_memory){ &t->stack_reader, &t->code_reader, false };
	t->r.machine = EM_X86_64;
	for (uint8_t i = 0; i <= RIP; i++)
		fathom_register_set(&t->r, i, 0x100u + i);
	fathom_register_set(&t->r, RIP, t->r.pc = CODE);
	fathom_register_set(&t->r, RSP, t->r.sp = STACK);
	fathom_register_set(&t->r, RBP, STACK + 0x40);
}

#define STEP(t, code)                          \
	(begin((t), (code), sizeof(code) - 1), \
	 fathom_step_epilogue(fathom_unwind_arch(EM_X86_64), &(t)->m, &(t)->r))

/* Checks where the return address was: in word @i of the stack; @more: bytes that ret takes off. */
static void returned_by(const struct thread *t, unsigned i, unsigned more)
{
	assert_int_equal(t->r.pc, 0x5000 + i);
	assert_int_equal(t->r.value[RIP], 0x5000 + i);
	assert_int_equal(t->r.sp, STACK + 8 * i + 8 + more);
	assert_int_equal(t->r.value[RSP], t->r.sp);
}

static void each_instruction(void **state)
{
	struct thread t;

	(void)state;
	assert_int_equal(STEP(&t, "\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 0, 0);
	assert_int_equal(STEP(&t, "\xf3\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 0, 0);
	assert_int_equal(STEP(&t, "\xc2\x10\x00"), FATHOM_STOP_NONE);
	returned_by(&t, 0, 16);
	assert_int_equal(STEP(&t, "\x90\x48\x83\xc4\x18\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 3, 0);
	assert_int_equal(STEP(&t, "\x48\x81\xc4\x20\x00\x00\x00\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 4, 0);
	assert_int_equal(STEP(&t, "\x48\x8d\x64\x24\x08\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 1, 0);
	assert_int_equal(STEP(&t, "\x48\x8d\xa4\x24\x10\x00\x00\x00\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 2, 0);
	/* lea -16(%rbp),%rsp */
	assert_int_equal(STEP(&t, "\x48\x8d\x65\xf0\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 6, 0);
	assert_int_equal(STEP(&t, "\xc9\xc3"), FATHOM_STOP_NONE); /* leave: rbp is 8 words up */
	returned_by(&t, 9, 0);
	assert_int_equal(t.r.value[RBP], 0x5008);
}

static void registers(void **state)
{
	struct thread t;

	(void)state;
	/* pop %rbx; pop %rbp; pop %r12; pop %r15; ret */
	assert_int_equal(STEP(&t, "\x5b\x5d\x41\x5c\x41\x5f\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 4, 0);
	assert_int_equal(t.r.value[RBX], 0x5000);
	assert_int_equal(t.r.value[RBP], 0x5001);
	assert_int_equal(t.r.value[R12], 0x5002);
	assert_int_equal(t.r.value[R15], 0x5003);
	/* r13 and r14 keep what they have; what a call may change is unknown. */
	assert_int_equal(t.r.value[13], 0x10d);
	assert_int_equal(t.r.known,
			 (1u << RBX) | (1u << RBP) | (1u << RSP) | (0xfu << R12) | (1u << RIP));
	/* The stub of python -X perf, behind its call: add $8,%rsp; ret */
	assert_int_equal(STEP(&t, "\x48\x83\xc4\x08\xc3"), FATHOM_STOP_NONE);
	returned_by(&t, 1, 0);
}

/* Checks that @stop is said of the code, and nothing has changed. */
#define REFUSED(stop, code)                                          \
	do {                                                         \
		struct thread before_;                               \
		struct thread t_;                                    \
                                                                     \
		begin(&before_, (code), sizeof(code) - 1);           \
		assert_int_equal(STEP(&t_, (code)), (stop));         \
		assert_memory_equal(&t_.r, &before_.r, sizeof t_.r); \
	} while (0)

static void refused(void **state)
{
	struct thread t;

	(void)state;
	REFUSED(FATHOM_STOP_NO_RULE, "\x55\xc3");             /* push %rbp */
	REFUSED(FATHOM_STOP_NO_RULE, "\x48\x83\xec\x08\xc3"); /* sub $8,%rsp */
	REFUSED(FATHOM_STOP_NO_RULE, "\x48\x83\xc0\x08\xc3"); /* add $8,%rax */
	REFUSED(FATHOM_STOP_NO_RULE, "\x49\x83\xc4\x08\xc3"); /* add $8,%r12 */
	REFUSED(FATHOM_STOP_NO_RULE, "\x48\x8d\x5d\xf0\xc3"); /* lea -16(%rbp),%rbx */
	REFUSED(FATHOM_STOP_NO_RULE, "\xe9\0\0\0\0");         /* jmp */
	REFUSED(FATHOM_STOP_NO_RULE, "\xf3\x90\xc3");         /* pause */
	REFUSED(FATHOM_STOP_NO_RULE, "\x5b\x5d");             /* the code ends */
	REFUSED(FATHOM_STOP_NO_RULE, "\xc2\x10");
	REFUSED(FATHOM_STOP_NO_RULE, "");
	REFUSED(FATHOM_STOP_UNREADABLE, "\x48\x81\xc4\x00\x10\x00\x00\xc3");
	begin(&t, "\xc9\xc3", 2);
	t.r.known &= ~(UINT64_C(1) << RBP);
	assert_int_equal(fathom_step_epilogue(fathom_unwind_arch(EM_X86_64), &t.m, &t.r),
			 FATHOM_STOP_REGISTER);
	begin(&t, "\xc3", 1);
	t.r.known &= ~(UINT64_C(1) << RSP);
	assert_int_equal(fathom_step_epilogue(fathom_unwind_arch(EM_X86_64), &t.m, &t.r),
			 FATHOM_STOP_REGISTER);
	begin(&t, "\xc3", 1);
	assert_int_equal(fathom_step_epilogue(fathom_unwind_arch(EM_AARCH64), &t.m, &t.r),
			 FATHOM_STOP_NO_RULE);
}

/* Whatever bytes come, a step ends, and says either nothing or where a ret was. */
static void any_bytes(void **state)
{
	uint32_t dice = 1;
	char code[40];
	struct thread t;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		for (size_t k = 0; k < sizeof code; k++) {
			static const uint8_t likely[] = { 0x48, 0x83, 0xc4, 0x5b,
							  0x41, 0xc9, 0x90, 0x8d };

			dice = dice * 1664525 + 1013904223;
			code[k] = (char)(dice >> 31 ? dice >> 16 : likely[dice >> 24 & 7]);
		}
		begin(&t, code, sizeof code);
		if (!fathom_step_epilogue(fathom_unwind_arch(EM_X86_64), &t.m, &t.r))
			assert_true(t.r.pc >= 0x5000 && t.r.pc < 0x5020);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction),
		cmocka_unit_test(registers),
		cmocka_unit_test(refused),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests_name("epilogue", tests, NULL, NULL);
}
