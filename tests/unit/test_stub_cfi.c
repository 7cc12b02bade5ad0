/* SPDX-License-Identifier: MIT */
/*
 * Call frame information of stubs, byte by byte as DWARF 5 (6.4.2) and the LSB (5.0, 10.6.1) say.
 */
#include "unit.h"

#include <string.h>

#include "host/code/stub_cfi.h"

/* DWARF's numbers of registers of the ABIs. */
static const struct fathom_stub_registers x86 = { .sp = 7, .pc = 16 };
static const struct fathom_stub_registers arm = {
	.sp = 31, .pc = 32, .link = 30, .saved = { 16, 30 }, .n_saved = 2
};

#define STUB UINT64_C(0x1122334455667788)

static void a_stub_whose_caller_is_at_a_fixed_place(void **state)
{
	static const uint8_t expected[] = {
		/* CIE: 20 bytes, id 0, version 1, "zR", alignments 1 and -8, column 16 */
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16,
		/* addresses as they are; def_cfa rsp, 0; padding */
		1, 0, 0x0c, 7, 0, 0, 0, 0, 0,
		/* FDE: 44 bytes, 28 behind the CIE; its code */
		44, 0, 0, 0, 28, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x50, 0,
		0, 0, 0, 0, 0, 0, 0,
		/* val_expression of 16: DW_OP_addr */
		0x16, 16, 9, 0x03, 0x10, 0, 0, 0, 0, 0, 0, 0,
		/* advance 5, def_cfa_offset 128; advance 13, def_cfa_offset 0; padding */
		0x45, 0x0e, 0x80, 0x01, 0x4d, 0x0e, 0, 0, 0, 0, 0
	};
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi c;

	(void)state;
	fathom_stub_cfi_init(&c, &x86, 16, 1);
	fathom_stub_cfi_caller(&c, 0x10);
	fathom_stub_cfi_advance(&c, 5);
	fathom_stub_cfi_frame(&c, 128);
	fathom_stub_cfi_advance(&c, 13);
	fathom_stub_cfi_frame(&c, 0);
	rule = fathom_stub_cfi_end(&c, STUB, 0x50);
	assert_int_equal(rule.kind, FATHOM_JIT_EH_FRAME);
	assert_int_equal(rule.eh_frame_code, STUB);
	assert_int_equal(rule.eh_frame_size, sizeof expected);
	assert_memory_equal(rule.eh_frame, expected, sizeof expected);
	fathom_stub_cfi_deinit(&c);
}

static void a_stub_that_saves_what_its_call_changes(void **state)
{
	static const uint8_t expected[] = {
		/* advance 4; def_cfa_offset 48; x16 is 6 words below the CFA, x30 is 5 */
		0x44, 0x0e, 48, 0x90, 6, 0x9e, 5,
		/* advance 8; def_cfa_offset 0; both are as before */
		0x48, 0x0e, 0, 0xd0, 0xde
	};
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi c;

	(void)state;
	fathom_stub_cfi_init(&c, &arm, 30, 1);
	fathom_stub_cfi_advance(&c, 4);
	fathom_stub_cfi_frame(&c, 48);
	fathom_stub_cfi_advance(&c, 8);
	fathom_stub_cfi_frame(&c, 0);
	rule = fathom_stub_cfi_end(&c, STUB, 16);
	/* Behind the CIE and the head of the FDE; the rest is padding. */
	assert_int_equal(rule.eh_frame_size, 24 + 25 + sizeof expected + 3);
	assert_memory_equal((const uint8_t *)rule.eh_frame + 24 + 25, expected, sizeof expected);
	fathom_stub_cfi_deinit(&c);
}

static void code_that_a_stub_calls_has_its_caller_where_calls_put_it(void **state)
{
	/* val_expression of 32: DW_OP_breg30 0 */
	static const uint8_t in_link[] = { 0x16, 32, 2, 0x8e, 0 };
	/* val_expression of 16: DW_OP_breg7 0, DW_OP_deref; def_cfa_offset 8 */
	static const uint8_t on_stack[] = { 0x16, 16, 3, 0x77, 0, 0x06, 0x0e, 8 };
	struct fathom_jit_unwind rule;
	struct fathom_stub_cfi c;

	(void)state;
	fathom_stub_cfi_init(&c, &arm, 32, 1);
	fathom_stub_cfi_called(&c);
	rule = fathom_stub_cfi_end(&c, STUB, 16);
	assert_memory_equal((const uint8_t *)rule.eh_frame + 24 + 25, in_link, sizeof in_link);
	fathom_stub_cfi_deinit(&c);
	fathom_stub_cfi_init(&c, &x86, 16, 1);
	fathom_stub_cfi_called(&c);
	rule = fathom_stub_cfi_end(&c, STUB, 16);
	assert_memory_equal((const uint8_t *)rule.eh_frame + 24 + 25, on_stack, sizeof on_stack);
	fathom_stub_cfi_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stub_whose_caller_is_at_a_fixed_place),
		cmocka_unit_test(a_stub_that_saves_what_its_call_changes),
		cmocka_unit_test(code_that_a_stub_calls_has_its_caller_where_calls_put_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
