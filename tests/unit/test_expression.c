/* SPDX-License-Identifier: MIT */
/* Each operation that call frame information may use, by DWARF 5, 2.5.1; and each limit. */
#include "unit.h"

#include <elf.h>

#include "piece.h"
#include "safe/unwind/expression.h"

#define MEMORY 0x2000
#define BIAS   0x10000

/* One expression on a machine, and what it comes to. */
struct expected {
	const char *name;
	uint8_t size;
	uint8_t bytes[24];
	enum fathom_stop stop;
	uint64_t value;
};

/*
 * r0 is 0x2000, r1 is 5; r2 is unknown. In memory are the bytes 88 99 aa bb cc dd ee ff, eight of
 * 1.
 */
static struct fathom_expression_frame frame_of(uint32_t machine, struct fathom_registers *r,
					       struct piece *p, struct fathom_reader *reader)
{
	static const uint8_t bytes[] = { 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
					 1,    1,    1,    1,    1,    1,    1,    1 };

	*r = (struct fathom_registers){ .machine = machine };
	fathom_register_set(r, 0, MEMORY);
	fathom_register_set(r, 1, 5);
	*p = (struct piece){ .avma = MEMORY, .size = sizeof bytes };
	memcpy(p->bytes, bytes, sizeof bytes);
	*reader = piece_reader(p);
	return (struct fathom_expression_frame){
		.registers = r, .arch = fathom_unwind_arch(machine), .memory = reader, .bias = BIAS
	};
}

static void check(uint32_t machine, bool swap, const struct expected *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fathom_registers r;
		struct piece p;
		struct fathom_reader reader;
		struct fathom_expression_frame f = frame_of(machine, &r, &p, &reader);
		uint64_t value = 0x5ca1ab1e;
		enum fathom_stop stop;

		f.swap = swap;
		stop = fathom_expression_run(&f, (struct fathom_bytes){ e[i].bytes, e[i].size },
					     &value);
		if (stop != e[i].stop || value != (e[i].stop ? 0x5ca1ab1e : e[i].value))
			print_message("%s: stop %d, value %#llx\n", e[i].name, stop,
				      (unsigned long long)value);
		assert_int_equal(stop, e[i].stop);
		assert_int_equal(value, e[i].stop ? 0x5ca1ab1e : e[i].value);
	}
}

#define CHECK(machine, swap, e) check(machine, swap, e, sizeof(e) / sizeof *(e))
#define NO_RULE                 FATHOM_STOP_NO_RULE
#define MINUS(n)                (~UINT64_C(0) - (n) + 1)

static void test_constants(void **state)
{
	static const struct expected e[] = {
		{ "lit0", 1, { 0x30 }, 0, 0 },
		{ "lit31", 1, { 0x4f }, 0, 31 },
		{ "addr", 9, { 0x03, 1, 2, 3, 4, 5, 6, 7, 8 }, 0, 0x0807060504030201 + BIAS },
		{ "const1u", 2, { 0x08, 0xff }, 0, 0xff },
		{ "const1s", 2, { 0x09, 0xff }, 0, MINUS(1) },
		{ "const2u", 3, { 0x0a, 0xfe, 0xff }, 0, 0xfffe },
		{ "const2s", 3, { 0x0b, 0xfe, 0xff }, 0, MINUS(2) },
		{ "const4u", 5, { 0x0c, 0xfd, 0xff, 0xff, 0xff }, 0, 0xfffffffd },
		{ "const4s", 5, { 0x0d, 0xfd, 0xff, 0xff, 0xff }, 0, MINUS(3) },
		{ "const8u", 9, { 0x0e, 1, 2, 3, 4, 5, 6, 7, 0xf8 }, 0, 0xf807060504030201 },
		{ "const8s", 9, { 0x0f, 1, 2, 3, 4, 5, 6, 7, 0xf8 }, 0, 0xf807060504030201 },
		{ "constu", 3, { 0x10, 0x81, 1 }, 0, 129 },
		{ "consts", 2, { 0x11, 0x7f }, 0, MINUS(1) },
	};

	(void)state;
	CHECK(EM_X86_64, false, e);
}

static void test_registers(void **state)
{
	static const struct expected e[] = {
		{ "breg0", 2, { 0x70, 0x00 }, 0, MEMORY },
		{ "breg1", 2, { 0x71, 0x7e }, 0, 3 },
		{ "breg1, below 0", 2, { 0x71, 0x7a }, 0, MINUS(1) },
		{ "bregx", 3, { 0x92, 1, 2 }, 0, 7 },
		{ "breg2, unknown", 2, { 0x72, 0 }, FATHOM_STOP_REGISTER, 0 },
		{ "bregx, unknown", 3, { 0x92, 16, 0 }, FATHOM_STOP_REGISTER, 0 },
		{ "breg31, not there", 2, { 0x8f, 0 }, NO_RULE, 0 },
		{ "bregx, not there", 4, { 0x92, 0x80, 1, 0 }, NO_RULE, 0 },
	};

	(void)state;
	CHECK(EM_X86_64, false, e);
}

static void test_stack(void **state)
{
	static const struct expected e[] = {
		{ "dup", 3, { 0x33, 0x12, 0x22 }, 0, 6 },
		{ "drop", 3, { 0x33, 0x34, 0x13 }, 0, 3 },
		{ "over", 3, { 0x33, 0x34, 0x14 }, 0, 3 },
		{ "pick 0", 4, { 0x33, 0x34, 0x15, 0 }, 0, 4 },
		{ "pick 2", 5, { 0x33, 0x34, 0x35, 0x15, 2 }, 0, 3 },
		{ "pick below", 4, { 0x33, 0x34, 0x15, 2 }, NO_RULE, 0 },
		{ "swap", 4, { 0x39, 0x33, 0x16, 0x1c }, 0, MINUS(6) }, /* 3 - 9 */
		/* 1 2 3, with 3 moved below them: 3 1 2; 1 - 2 is -1; 3 - -1 is 4 */
		{ "rot", 6, { 0x31, 0x32, 0x33, 0x17, 0x1c, 0x1c }, 0, 4 },
		{ "nop", 2, { 0x33, 0x96 }, 0, 3 },
		{ "dup of nothing", 1, { 0x12 }, NO_RULE, 0 },
		{ "drop of nothing", 2, { 0x13, 0x31 }, NO_RULE, 0 },
		{ "over of one", 2, { 0x31, 0x14 }, NO_RULE, 0 },
		{ "swap of one", 2, { 0x31, 0x16 }, NO_RULE, 0 },
		{ "rot of two", 3, { 0x31, 0x31, 0x17 }, NO_RULE, 0 },
		{ "plus of one", 2, { 0x31, 0x22 }, NO_RULE, 0 },
		{ "nothing", 0, { 0 }, NO_RULE, 0 },
		{ "nothing left", 2, { 0x31, 0x13 }, NO_RULE, 0 },
	};

	(void)state;
	CHECK(EM_X86_64, false, e);
}

static void test_memory(void **state)
{
	static const struct expected e[] = {
		{ "deref", 3, { 0x70, 0, 0x06 }, 0, 0xffeeddccbbaa9988 },
		{ "deref_size 1", 4, { 0x70, 0, 0x94, 1 }, 0, 0x88 },
		{ "deref_size 2", 4, { 0x70, 0, 0x94, 2 }, 0, 0x9988 },
		{ "deref_size 4", 4, { 0x70, 0, 0x94, 4 }, 0, 0xbbaa9988 },
		{ "deref_size 8", 4, { 0x70, 8, 0x94, 8 }, 0, 0x0101010101010101 },
		{ "deref_size 3", 4, { 0x70, 0, 0x94, 3 }, NO_RULE, 0 },
		{ "deref_size 0", 4, { 0x70, 0, 0x94, 0 }, NO_RULE, 0 },
		{ "deref_size 16", 4, { 0x70, 0, 0x94, 16 }, NO_RULE, 0 },
		{ "deref at the end", 3, { 0x70, 9, 0x06 }, FATHOM_STOP_UNREADABLE, 0 },
		{ "deref before it", 3, { 0x70, 0x7f, 0x06 }, FATHOM_STOP_UNREADABLE, 0 },
		{ "deref of nothing", 1, { 0x06 }, NO_RULE, 0 },
	};

	(void)state;
	CHECK(EM_X86_64, false, e);
}

static void test_arithmetic(void **state)
{
	static const struct expected e[] = {
		{ "abs", 3, { 0x09, 0xfb, 0x19 }, 0, 5 },
		{ "abs of 5", 2, { 0x35, 0x19 }, 0, 5 },
		{ "and", 3, { 0x3c, 0x3a, 0x1a }, 0, 8 },
		{ "div", 4, { 0x09, 0xf9, 0x32, 0x1b }, 0, MINUS(3) }, /* -7 / 2 */
		{ "div by -1",
		  12,
		  { 0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b },
		  0,
		  UINT64_C(1) << 63 },
		{ "div by 0", 3, { 0x37, 0x30, 0x1b }, NO_RULE, 0 },
		{ "minus", 3, { 0x32, 0x37, 0x1c }, 0, MINUS(5) },
		{ "mod", 4, { 0x09, 0xff, 0x40, 0x1d }, 0, 15 }, /* unsigned: 2^64 - 1 mod 16 */
		{ "mod by 0", 3, { 0x37, 0x30, 0x1d }, NO_RULE, 0 },
		{ "mul", 3, { 0x37, 0x36, 0x1e }, 0, 42 },
		{ "neg", 2, { 0x37, 0x1f }, 0, MINUS(7) },
		{ "not", 2, { 0x37, 0x20 }, 0, MINUS(8) },
		{ "or", 3, { 0x3c, 0x3a, 0x21 }, 0, 14 },
		{ "plus", 3, { 0x37, 0x36, 0x22 }, 0, 13 },
		{ "plus_uconst", 4, { 0x37, 0x23, 0x80, 1 }, 0, 135 },
		{ "xor", 3, { 0x3c, 0x3a, 0x27 }, 0, 6 },
		{ "shl", 3, { 0x33, 0x34, 0x24 }, 0, 48 },
		{ "shl by 63", 4, { 0x33, 0x08, 63, 0x24 }, 0, UINT64_C(1) << 63 },
		{ "shl by 64", 4, { 0x33, 0x08, 64, 0x24 }, 0, 0 },
		{ "shr", 4, { 0x09, 0xff, 0x4c, 0x25 }, 0, UINT64_MAX >> 28 },
		{ "shr by 64", 5, { 0x09, 0xff, 0x08, 64, 0x25 }, 0, 0 },
		{ "shra", 4, { 0x09, 0xf0, 0x32, 0x26 }, 0, MINUS(4) },
		{ "shra by 64", 5, { 0x09, 0xf0, 0x08, 64, 0x26 }, 0, MINUS(1) },
		{ "shra by 64 of 5", 4, { 0x35, 0x08, 64, 0x26 }, 0, 0 },
	};

	(void)state;
	CHECK(EM_X86_64, false, e);
}

/* Comparisons are of signed numbers: 1 with -1, and 1 with 1. */
static void test_comparisons(void **state)
{
	static const struct {
		uint8_t op;
		uint8_t of_less; /* of -1 with 1 */
		uint8_t of_equal;
		uint8_t of_greater;
	} ops[] = {
		{ 0x29, 0, 1, 0 }, /* eq */
		{ 0x2a, 0, 1, 1 }, /* ge */
		{ 0x2b, 0, 0, 1 }, /* gt */
		{ 0x2c, 1, 1, 0 }, /* le */
		{ 0x2d, 1, 0, 0 }, /* lt */
		{ 0x2e, 1, 0, 1 }, /* ne */
	};

	(void)state;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
		const struct expected e[] = {
			{ "less", 4, { 0x09, 0xff, 0x31, ops[i].op }, 0, ops[i].of_less },
			{ "equal", 3, { 0x31, 0x31, ops[i].op }, 0, ops[i].of_equal },
			{ "greater", 4, { 0x31, 0x09, 0xff, ops[i].op }, 0, ops[i].of_greater },
		};

		CHECK(EM_X86_64, false, e);
		CHECK(EM_386, false, e);
	}
}

static void test_flow(void **state)
{
	static const struct expected e[] = {
		{ "skip", 5, { 0x37, 0x2f, 1, 0, 0x36 }, 0, 7 },
		{ "skip to the end", 4, { 0x37, 0x2f, 0, 0 }, 0, 7 },
		{ "skip beyond", 4, { 0x37, 0x2f, 1, 0 }, NO_RULE, 0 },
		{ "skip before", 4, { 0x37, 0x2f, 0xfb, 0xff }, NO_RULE, 0 },
		{ "skip back for ever", 3, { 0x2f, 0xfd, 0xff }, NO_RULE, 0 },
		{ "bra of 0", 6, { 0x37, 0x30, 0x28, 1, 0, 0x36 }, 0, 6 },
		{ "bra of 1", 6, { 0x37, 0x31, 0x28, 1, 0, 0x36 }, 0, 7 },
		{ "bra of nothing", 4, { 0x28, 0, 0, 0x31 }, NO_RULE, 0 },
		/* 5, less 1 until it is 0: dup, bra over the end; result on the stack */
		{ "a loop", 8, { 0x35, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff, 0x96 }, 0, 0 },
	};

	(void)state;
	CHECK(EM_X86_64, false, e);
}

/* rsp + 8 + ((rip & 15) >= 11) << 3, which linkers write for the PLT. */
static void test_plt(void **state)
{
	static const uint8_t plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
	struct fathom_registers r;
	struct piece p;
	struct fathom_reader reader;
	const struct fathom_expression_frame f = frame_of(EM_X86_64, &r, &p, &reader);
	uint64_t value;

	(void)state;
	fathom_register_set(&r, 7, 0x7000);
	for (uint64_t pc = 0x1020; pc < 0x1030; pc++) {
		fathom_register_set(&r, 16, pc);
		assert_int_equal(
			fathom_expression_run(&f, (struct fathom_bytes){ plt, sizeof plt }, &value),
			0);
		assert_int_equal(value, pc < 0x102b ? 0x7008 : 0x7010);
	}
}

/* What call frame information may not use, or nothing defines. */
static void test_unsupported(void **state)
{
	bool used[256] = { false };

	(void)state;
	for (unsigned op = 0; op < 256; op++)
		used[op] = op == 0x03 || op == 0x06 || (op >= 0x08 && op <= 0x17) ||
			   (op >= 0x19 && op <= 0x4f) ||
			   (op >= 0x70 && op <= 0x92 && op != 0x90 && op != 0x91) || op == 0x94 ||
			   op == 0x96;
	for (unsigned op = 0; op < 256; op++) {
		const struct expected e = { "unsupported",
					    10,
					    { 0x31, 0x31, (uint8_t)op, 0, 0, 0, 0, 0, 0, 0 },
					    NO_RULE,
					    0 };

		if (!used[op])
			check(EM_X86_64, false, &e, 1);
	}
}

static void test_cut_off(void **state)
{
	static const struct expected whole[] = {
		{ "addr", 9, { 0x03 }, 0, 0 },
		{ "const1u", 2, { 0x08 }, 0, 0 },
		{ "const1s", 2, { 0x09 }, 0, 0 },
		{ "const2u", 3, { 0x0a }, 0, 0 },
		{ "const2s", 3, { 0x0b }, 0, 0 },
		{ "const4u", 5, { 0x0c }, 0, 0 },
		{ "const4s", 5, { 0x0d }, 0, 0 },
		{ "const8u", 9, { 0x0e }, 0, 0 },
		{ "constu", 3, { 0x10, 0x80, 1 }, 0, 0 },
		{ "consts", 3, { 0x11, 0x80, 1 }, 0, 0 },
		{ "breg1", 2, { 0x71 }, 0, 0 },
		{ "bregx", 3, { 0x92, 1 }, 0, 0 },
		{ "skip", 3, { 0x2f }, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		for (uint8_t n = 1; n < whole[i].size; n++) {
			struct expected e = {
				whole[i].name, (uint8_t)(n + 1), { 0x31 }, NO_RULE, 0
			};

			memcpy(e.bytes + 1, whole[i].bytes, n);
			check(EM_X86_64, false, &e, 1);
		}
}

/* Values have 32 bits, and their signs there. */
static void test_narrow(void **state)
{
	static const struct expected e[] = {
		{ "addr", 5, { 0x03, 0xff, 0xff, 0xff, 0xff }, 0, BIAS - 1 },
		{ "const1s", 2, { 0x09, 0xff }, 0, 0xffffffff },
		{ "const8u", 9, { 0x0e, 1, 2, 3, 4, 5, 6, 7, 8 }, 0, 0x04030201 },
		{ "breg1", 2, { 0x71, 0x7a }, 0, 0xffffffff },
		{ "plus", 4, { 0x09, 0xff, 0x33, 0x22 }, 0, 2 },
		{ "deref", 3, { 0x70, 0, 0x06 }, 0, 0xbbaa9988 },
		{ "deref_size 8", 4, { 0x70, 0, 0x94, 8 }, NO_RULE, 0 },
		{ "div", 4, { 0x09, 0xf9, 0x32, 0x1b }, 0, 0xfffffffd },
		{ "shl by 32", 4, { 0x33, 0x08, 32, 0x24 }, 0, 0 },
		{ "shr", 4, { 0x09, 0xff, 0x4c, 0x25 }, 0, 0xf },
		{ "shra by 40", 5, { 0x09, 0xf0, 0x08, 40, 0x26 }, 0, 0xffffffff },
		{ "breg9, not there", 2, { 0x79, 0 }, NO_RULE, 0 },
	};

	(void)state;
	CHECK(EM_386, false, e);
}

/* Operands and memory of the other byte order. */
static void test_swapped(void **state)
{
	static const struct expected e[] = {
		{ "const2u", 3, { 0x0a, 1, 2 }, 0, 0x0102 },
		{ "deref", 3, { 0x70, 0, 0x06 }, 0, 0x8899aabbccddeeff },
		{ "deref_size 2", 4, { 0x70, 0, 0x94, 2 }, 0, 0x8899 },
		{ "skip", 5, { 0x37, 0x2f, 0, 1, 0x36 }, 0, 7 },
	};

	(void)state;
	CHECK(EM_AARCH64, true, e);
}

static void test_initial(void **state)
{
	struct fathom_registers r;
	struct piece p;
	struct fathom_reader reader;
	struct fathom_expression_frame f = frame_of(EM_X86_64, &r, &p, &reader);
	const uint8_t plus[] = { 0x32, 0x22 };
	uint64_t value;

	(void)state;
	f.has_initial = true;
	f.initial = 0x7000;
	assert_int_equal(fathom_expression_run(&f, (struct fathom_bytes){ plus, 2 }, &value), 0);
	assert_int_equal(value, 0x7002);
	assert_int_equal(fathom_expression_run(&f, (struct fathom_bytes){ NULL, 0 }, &value), 0);
	assert_int_equal(value, 0x7000);
}

/* 1000 operations and 64 values are within the limits; one more is not. */
static void test_limits(void **state)
{
	struct fathom_registers r;
	struct piece p;
	struct fathom_reader reader;
	const struct fathom_expression_frame f = frame_of(EM_X86_64, &r, &p, &reader);
	uint8_t bytes[1001];
	uint64_t value = 0;

	(void)state;
	memset(bytes, 0x96, sizeof bytes);
	bytes[0] = 0x37;
	assert_int_equal(fathom_expression_run(&f, (struct fathom_bytes){ bytes, 1000 }, &value),
			 0);
	assert_int_equal(value, 7);
	assert_int_equal(fathom_expression_run(&f, (struct fathom_bytes){ bytes, 1001 }, &value),
			 NO_RULE);
	memset(bytes, 0x38, sizeof bytes);
	assert_int_equal(fathom_expression_run(&f, (struct fathom_bytes){ bytes, 64 }, &value), 0);
	assert_int_equal(value, 8);
	assert_int_equal(fathom_expression_run(&f, (struct fathom_bytes){ bytes, 65 }, &value),
			 NO_RULE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants),   cmocka_unit_test(test_registers),
		cmocka_unit_test(test_stack),       cmocka_unit_test(test_memory),
		cmocka_unit_test(test_arithmetic),  cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_flow),        cmocka_unit_test(test_plt),
		cmocka_unit_test(test_unsupported), cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_narrow),      cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_initial),     cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
