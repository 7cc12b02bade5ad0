/* SPDX-License-Identifier: MIT */
/* Rows of instructions written by hand: what each says, by DWARF 5, 6.4.2. */
#include "unit.h"

#include <elf.h>

#include "safe/base/error.h"
#include "safe/unwind/row.h"

#define LOW        0x1000
#define HIGH       0x1100
#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* One CIE and one FDE: code in units of 4 bytes, data in units of -8; column 16. */
struct made {
	struct fathom_cie cie;
	struct fathom_fde fde;
	struct fathom_row_reader r;
	const struct fathom_unwind_arch *arch;
	uint8_t section[4096]; /* svma 0x5000; the FDE's instructions, behind them the CIE's */
};

static void make(struct made *m, const uint8_t *of_fde, size_t size)
{
	memset(m, 0, sizeof *m);
	assert_true(size <= 2048);
	if (size)
		memcpy(m->section, of_fde, size);
	m->cie.cfi = (struct fathom_cfi){ .section = { m->section, sizeof m->section },
					  .svma = 0x5000,
					  .address_size = 8,
					  .is_eh = true };
	m->cie.code_alignment = 4;
	m->cie.data_alignment = -8;
	m->cie.return_register = 16;
	m->cie.lsda_encoding = m->cie.personality_encoding = DW_EH_PE_omit;
	m->cie.has_data = true;
	m->cie.instructions.data = m->section + 2048;
	m->fde = (struct fathom_fde){
		.cie = &m->cie, .low = LOW, .high = HIGH, .instructions = { m->section, size }
	};
	m->arch = fathom_unwind_arch(EM_X86_64);
}

static void begin_with(struct made *m, const uint8_t *of_cie, size_t size)
{
	memcpy(m->section + 2048, of_cie, size);
	m->cie.instructions.size = size;
}

static void set_arch(struct made *m, uint32_t machine)
{
	m->arch = fathom_unwind_arch(machine);
	m->cie.return_register = m->arch->pc;
}

static fathom_err start(struct made *m)
{
	return fathom_row_reader_init(&m->r, &m->fde, m->arch);
}

/* Reads the first row, which has to be there. */
static void first(struct made *m)
{
	assert_int_equal(start(m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m->r), FATHOM_OK);
}

static void next_is(struct made *m, uint64_t low, uint64_t high)
{
	assert_int_equal(fathom_row_next(&m->r), FATHOM_OK);
	assert_int_equal(m->r.now.low, low);
	assert_int_equal(m->r.now.high, high);
}

static void rule_is(const struct made *m, uint8_t number, uint8_t kind, int64_t offset)
{
	const struct fathom_rule rule = fathom_row_rule(&m->r.now, number);

	assert_int_equal(rule.kind, kind);
	if (kind == FATHOM_RULE_REGISTER)
		assert_int_equal(rule.number, offset);
	else
		assert_int_equal(rule.offset, offset);
}

static void cfa_is(const struct made *m, uint8_t number, int64_t offset)
{
	assert_int_equal(m->r.now.cfa.kind, FATHOM_RULE_REGISTER);
	assert_int_equal(m->r.now.cfa.number, number);
	assert_int_equal(m->r.now.cfa.offset, offset);
}

/* Instructions that state one rule of a register, and what they state. */
static const struct {
	uint8_t size;
	uint8_t bytes[8];
	uint8_t number;
	uint8_t kind;
	int64_t value; /* offset, or other register */
} rules[] = {
	{ 2, { 0x80 | 6, 2 }, 6, FATHOM_RULE_AT_OFFSET, -16 }, /* offset */
	{ 3, { 0x80 | 6, 0x81, 1 }, 6, FATHOM_RULE_AT_OFFSET, -129 * 8 } /* of two bytes */,
	{ 3, { 0x05, 12, 3 }, 12, FATHOM_RULE_AT_OFFSET, -24 },   /* offset_extended */
	{ 3, { 0x11, 12, 0x7e }, 12, FATHOM_RULE_AT_OFFSET, 16 }, /* offset_extended_sf */
	{ 3, { 0x2f, 12, 3 }, 12, FATHOM_RULE_AT_OFFSET, 24 },    /* GNU_negative_... */
	{ 3, { 0x14, 7, 1 }, 7, FATHOM_RULE_OFFSET, -8 },         /* val_offset */
	{ 3, { 0x15, 7, 0x7f }, 7, FATHOM_RULE_OFFSET, 8 },       /* val_offset_sf */
	{ 2, { 0x07, 16 }, 16, FATHOM_RULE_UNDEFINED, 0 },        /* undefined */
	{ 2, { 0x08, 3 }, 3, FATHOM_RULE_SAME, 0 },               /* same_value */
	{ 3, { 0x09, 16, 5 }, 16, FATHOM_RULE_REGISTER, 5 },      /* register */
	{ 3, { 0x09, 16, 40 }, 16, FATHOM_RULE_UNDEFINED, 0 },    /* a register that is not there */
};

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		struct made m;

		make(&m, rules[i].bytes, rules[i].size);
		first(&m);
		assert_int_equal(m.r.now.stated, UINT64_C(1) << rules[i].number);
		rule_is(&m, rules[i].number, rules[i].kind, rules[i].value);
		assert_int_equal(m.r.now.cfa.kind, FATHOM_RULE_UNSPECIFIED);
		assert_int_equal(fathom_row_next(&m.r), FATHOM_END);
	}
}

static void test_expressions(void **state)
{
	struct made m;
	struct fathom_rule rule;

	(void)state;
	/* expression r3: 2 bytes; val_expression r16: 1 byte; def_cfa_expression: 3 bytes */
	make(&m, BYTES(0x10, 3, 2, 0x77, 0x08, 0x16, 16, 1, 0x30, 0x0f, 3, 0x77, 0x10, 0x06));
	first(&m);
	rule = fathom_row_rule(&m.r.now, 3);
	assert_int_equal(rule.kind, FATHOM_RULE_AT_EXPRESSION);
	assert_int_equal(rule.size, 2);
	assert_ptr_equal(rule.expression, m.section + 3);
	rule = fathom_row_rule(&m.r.now, 16);
	assert_int_equal(rule.kind, FATHOM_RULE_EXPRESSION);
	assert_int_equal(rule.size, 1);
	assert_ptr_equal(rule.expression, m.section + 8);
	assert_int_equal(m.r.now.cfa.kind, FATHOM_RULE_EXPRESSION);
	assert_int_equal(m.r.now.cfa.size, 3);
	assert_ptr_equal(m.r.now.cfa.expression, m.section + 11);
}

static void test_cfa(void **state)
{
	struct made m;

	(void)state;
	make(&m, BYTES(0x0c, 7, 8, 0x41,    /* def_cfa r7, 8 */
		       0x0e, 0x90, 1, 0x41, /* def_cfa_offset 144 */
		       0x0d, 6, 0x41,       /* def_cfa_register r6 */
		       0x13, 0x7e, 0x41,    /* def_cfa_offset_sf -2 */
		       0x12, 10, 0x02));    /* def_cfa_sf r10, 2 */
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 4);
	cfa_is(&m, 7, 8);
	next_is(&m, LOW + 4, LOW + 8);
	cfa_is(&m, 7, 144);
	next_is(&m, LOW + 8, LOW + 12);
	cfa_is(&m, 6, 144);
	next_is(&m, LOW + 12, LOW + 16);
	cfa_is(&m, 6, 16);
	next_is(&m, LOW + 16, HIGH);
	cfa_is(&m, 10, -16);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_END);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_END);
}

/* Without a register + offset there is nothing to change: no rule is left. */
static void test_cfa_without_rule(void **state)
{
	static const uint8_t changes[][2] = { { 0x0d, 6 }, { 0x0e, 16 }, { 0x13, 2 } };
	struct made m;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		make(&m, changes[i], 2);
		first(&m);
		assert_int_equal(m.r.now.cfa.kind, FATHOM_RULE_UNSPECIFIED);
		begin_with(&m, BYTES(0x0f, 1, 0x30)); /* def_cfa_expression lit0 */
		first(&m);
		assert_int_equal(m.r.now.cfa.kind, FATHOM_RULE_UNSPECIFIED);
	}
	make(&m, BYTES(0x0c, 17, 8)); /* by a vector register */
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_UNSUPPORTED);
}

/* Each instruction that moves on, by 2 units of 4 bytes or to LOW + 8. */
static void test_advance(void **state)
{
	static const struct {
		uint8_t size;
		uint8_t bytes[9];
	} moves[] = {
		{ 1, { 0x42 } },
		{ 2, { 0x02, 2 } },
		{ 3, { 0x03, 2, 0 } },
		{ 5, { 0x04, 2, 0, 0, 0 } },
		{ 9, { 0x1d, 2, 0, 0, 0, 0, 0, 0, 0 } },
		{ 9, { 0x01, 0x08, 0x10, 0, 0, 0, 0, 0, 0 } }, /* set_loc */
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
		make(&m, moves[i].bytes, moves[i].size);
		assert_int_equal(start(&m), FATHOM_OK);
		next_is(&m, LOW, LOW + 8);
		next_is(&m, LOW + 8, HIGH);
		assert_int_equal(fathom_row_next(&m.r), FATHOM_END);
	}
	/* The operand is in the section's byte order, and relative to itself if so encoded. */
	make(&m, BYTES(0x03, 0, 2, 0x01, 0xff, 0xff, 0xc0, 0x0c));
	m.cie.cfi.swap = true;
	m.cie.pointer_encoding = DW_EH_PE_pcrel | DW_EH_PE_sdata4; /* 0x5004 - 0x3ff4 = 0x1010 */
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 8);
	next_is(&m, LOW + 8, LOW + 16);
}

static void test_rows_without_code(void **state)
{
	struct made m;

	(void)state;
	/*
	 * 0x40 moves by nothing: the second rule replaces the first. The last move is to the end.
	 */
	make(&m, BYTES(0x0c, 7, 8, 0x40, 0x0e, 16, 0x40, 0x7f, 0x0e, 24, 0x41, 0x0e, 32));
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 63 * 4);
	cfa_is(&m, 7, 16);
	next_is(&m, LOW + 63 * 4, HIGH);
	cfa_is(&m, 7, 24);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_END);
	m.fde.high = LOW; /* an FDE without code has no rows, whatever it says */
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_END);
}

static void test_bounds(void **state)
{
	struct made m;

	(void)state;
	make(&m, BYTES(0x41, 0x02, 64)); /* 4 bytes beyond the end */
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 4);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT); /* it stays so */
	make(&m, BYTES(0x42, 0x01, 0x04, 0x10, 0, 0, 0, 0, 0, 0)); /* back */
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 8);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT);
	make(&m, BYTES(0x01, 0x01, 0x11, 0, 0, 0, 0, 0, 0)); /* set_loc HIGH + 1 */
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT);
	make(&m, BYTES(0x42)); /* 2^63 * 2 is 0 in 64 bits */
	m.cie.code_alignment = UINT64_C(1) << 63;
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT);
}

static void test_states(void **state)
{
	struct made m;

	(void)state;
	make(&m, BYTES(0x86, 2, 0x0a,                 /* r6 at -16; remember */
		       0x41, 0x0e, 16, 0x83, 3, 0x0a, /* CFA r7+16, r3 at -24; remember */
		       0x41, 0x0d, 6, 0x08, 6,        /* CFA r6+16, r6 same */
		       0x41, 0x0b,                    /* restore: the second state */
		       0x41, 0x0b));                  /* the first */
	begin_with(&m, BYTES(0x0c, 7, 8, 0x90, 1));
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 4);
	next_is(&m, LOW + 4, LOW + 8);
	cfa_is(&m, 7, 16);
	next_is(&m, LOW + 8, LOW + 12);
	cfa_is(&m, 6, 16);
	rule_is(&m, 6, FATHOM_RULE_SAME, 0);
	next_is(&m, LOW + 12, LOW + 16);
	cfa_is(&m, 7, 16);
	rule_is(&m, 3, FATHOM_RULE_AT_OFFSET, -24);
	rule_is(&m, 6, FATHOM_RULE_AT_OFFSET, -16);
	rule_is(&m, 16, FATHOM_RULE_AT_OFFSET, -8);
	next_is(&m, LOW + 16, HIGH);
	cfa_is(&m, 7, 8);
	assert_int_equal(m.r.now.stated, 1 << 6 | 1 << 16);
	rule_is(&m, 6, FATHOM_RULE_AT_OFFSET, -16);
	/* What was remembered is gone when it was restored; the CIE's state is no such. */
	make(&m, BYTES(0x0a, 0x0b, 0x0b));
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT);
}

static void test_limits(void **state)
{
	uint8_t bytes[2 * 32 + 4];
	uint8_t many[2 * 32 + 16];
	struct made m;

	(void)state;
	/* The CIE's state and 7 more; then one too many. Restoring one makes room. */
	make(&m, BYTES(0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0b, 0x0a));
	first(&m);
	make(&m, BYTES(0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a));
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_LIMIT);
	/* 3 states of 32 rules are 96. */
	for (uint8_t i = 0; i < 32; i++) {
		bytes[2 * i] = 0x80 | i;
		bytes[2 * i + 1] = i;
	}
	memset(bytes + 64, 0x0a, 4);
	make(&m, bytes, 64 + 3);
	set_arch(&m, EM_AARCH64);
	first(&m);
	/* What was restored makes room for its rules, too. */
	for (unsigned i = 0; i < 8; i++)
		memcpy(many + 64 + 2 * i, (uint8_t[]){ 0x0a, 0x0b }, 2);
	memcpy(many, bytes, 64);
	make(&m, many, sizeof many);
	set_arch(&m, EM_AARCH64);
	first(&m);
	make(&m, bytes, 64 + 4);
	set_arch(&m, EM_AARCH64);
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_LIMIT);
}

static void test_restore(void **state)
{
	struct made m;

	(void)state;
	make(&m, BYTES(0x83, 4, 0x86, 5, 0x90, 6, 0x8c, 7, 0x41, /* r3, r6, r16, r12 */
		       0xc3, 0xc6, 0x06, 16, 0x06, 12, 0x06, 40, 0x8d, 8, 0x06, 64 + 13));
	begin_with(&m, BYTES(0x83, 1, 0x86, 2, 0x90, 3));
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 4);
	rule_is(&m, 3, FATHOM_RULE_AT_OFFSET, -32);
	rule_is(&m, 12, FATHOM_RULE_AT_OFFSET, -56);
	next_is(&m, LOW + 4, HIGH);
	rule_is(&m, 3, FATHOM_RULE_AT_OFFSET, -8);
	rule_is(&m, 6, FATHOM_RULE_AT_OFFSET, -16);
	rule_is(&m, 16, FATHOM_RULE_AT_OFFSET, -24);
	rule_is(&m, 12, FATHOM_RULE_UNSPECIFIED, 0);
	rule_is(&m, 13, FATHOM_RULE_AT_OFFSET, -64); /* 77 is another register */
	assert_int_equal(m.r.now.stated, 1 << 3 | 1 << 6 | 1 << 13 | 1 << 16);
}

/* In a CIE there is no place, nor a state, to go from. */
static void test_cie(void **state)
{
	static const uint8_t wrong[][2] = { { 0x41, 0 }, { 0x02, 0 }, { 0x0a, 0 },
					    { 0x0b, 0 }, { 0xc3, 0 }, { 0x06, 3 } };
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		make(&m, NULL, 0);
		begin_with(&m, wrong[i], 2);
		assert_int_equal(start(&m), FATHOM_E_CORRUPT);
		assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT);
	}
	make(&m, NULL, 0);
	m.fde.is_damaged = true;
	assert_int_equal(start(&m), FATHOM_E_CORRUPT);
	make(&m, NULL, 0);
	m.cie.is_unknown = true; /* its data have a size: its instructions are known */
	assert_int_equal(start(&m), FATHOM_OK);
	m.cie.has_data = false;
	assert_int_equal(start(&m), FATHOM_E_UNSUPPORTED);
}

static void test_return_register(void **state)
{
	static const struct {
		uint32_t machine;
		uint8_t number;
		fathom_err err;
	} columns[] = {
		{ EM_386, 8, 0 },
		{ EM_386, 9, FATHOM_E_UNSUPPORTED },
		{ EM_X86_64, 16, 0 },
		{ EM_X86_64, 17, FATHOM_E_UNSUPPORTED },
		{ EM_AARCH64, 30, 0 },
		{ EM_AARCH64, 32, 0 },
		{ EM_AARCH64, 33, FATHOM_E_UNSUPPORTED },
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		make(&m, NULL, 0);
		set_arch(&m, columns[i].machine);
		m.cie.return_register = columns[i].number;
		assert_int_equal(start(&m), columns[i].err);
		if (!columns[i].err)
			assert_int_equal(m.r.now.return_register, columns[i].number);
	}
}

/* Rules of registers that the machine does not have are read and dropped. */
static void test_dropped(void **state)
{
	struct made m;

	(void)state;
	make(&m, BYTES(0x80 | 17, 2, 0x05, 49, 2, 0x07, 0xff, 0xff, 3, 0x10, 33, 1, 0x30, 0x09, 90,
		       3, 0x2e, 0x90, 1, 0x00, 0x86, 2)); /* args_size, nop, r6 */
	first(&m);
	assert_int_equal(m.r.now.stated, 1 << 6);
	rule_is(&m, 6, FATHOM_RULE_AT_OFFSET, -16);
}

static void test_signed(void **state)
{
	struct made m;

	(void)state;
	make(&m, BYTES(0x0a, 0x2d, 0x41, 0x2c, 0x41, 0x2d, 0x41, 0x0b));
	set_arch(&m, EM_AARCH64);
	assert_int_equal(start(&m), FATHOM_OK);
	next_is(&m, LOW, LOW + 4);
	assert_true(m.r.now.is_ra_signed);
	next_is(&m, LOW + 4, LOW + 8);
	assert_false(m.r.now.is_ra_signed);
	next_is(&m, LOW + 8, LOW + 12);
	assert_true(m.r.now.is_ra_signed);
	next_is(&m, LOW + 12, HIGH); /* as it was when it was remembered */
	assert_false(m.r.now.is_ra_signed);
	set_arch(&m, EM_X86_64);
	assert_int_equal(start(&m), FATHOM_OK);
	assert_int_equal(fathom_row_next(&m.r), FATHOM_E_UNSUPPORTED);
}

static void test_unknown(void **state)
{
	struct made m;

	(void)state;
	for (uint8_t op = 0x17; op < 0x40; op++) {
		const uint8_t bytes[] = { op, 0, 0, 0, 0, 0, 0, 0, 0 };

		if (op == 0x1d || (op >= 0x2c && op <= 0x2f))
			continue;
		make(&m, bytes, sizeof bytes);
		assert_int_equal(start(&m), FATHOM_OK);
		assert_int_equal(fathom_row_next(&m.r), FATHOM_E_UNSUPPORTED);
	}
}

/* Of each instruction, every beginning but the whole is damage. */
static void test_cut_off(void **state)
{
	static const struct {
		uint8_t size;
		uint8_t bytes[10];
	} whole[] = {
		{ 9, { 0x01, 0x08, 0x10, 0, 0, 0, 0, 0, 0 } },
		{ 2, { 0x02, 2 } },
		{ 3, { 0x03, 2, 0 } },
		{ 5, { 0x04, 2, 0, 0, 0 } },
		{ 9, { 0x1d, 2, 0, 0, 0, 0, 0, 0, 0 } },
		{ 3, { 0x86, 0x80, 1 } },
		{ 4, { 0x05, 3, 0x80, 1 } },
		{ 2, { 0x06, 3 } },
		{ 2, { 0x07, 3 } },
		{ 2, { 0x08, 3 } },
		{ 3, { 0x09, 3, 5 } },
		{ 3, { 0x0c, 3, 8 } },
		{ 2, { 0x0d, 3 } },
		{ 2, { 0x0e, 3 } },
		{ 4, { 0x0f, 2, 0x30, 0x30 } },
		{ 5, { 0x10, 3, 2, 0x30, 0x30 } },
		{ 3, { 0x11, 3, 1 } },
		{ 3, { 0x12, 3, 1 } },
		{ 2, { 0x13, 1 } },
		{ 3, { 0x14, 3, 1 } },
		{ 3, { 0x15, 3, 1 } },
		{ 5, { 0x16, 3, 2, 0x30, 0x30 } },
		{ 2, { 0x2e, 1 } },
		{ 3, { 0x2f, 3, 1 } },
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
		for (uint8_t n = 1; n < whole[i].size; n++) {
			make(&m, whole[i].bytes, n);
			assert_int_equal(start(&m), FATHOM_OK);
			assert_int_equal(fathom_row_next(&m.r), FATHOM_E_CORRUPT);
		}
		make(&m, whole[i].bytes, whole[i].size);
		first(&m);
	}
}

static void test_find(void **state)
{
	static const struct {
		uint64_t svma;
		fathom_err err;
		uint64_t low;
		int64_t offset;
	} wanted[] = {
		{ LOW - 1, FATHOM_END, 0, 0 },        { LOW, FATHOM_OK, LOW, 8 },
		{ LOW + 3, FATHOM_OK, LOW, 8 },       { LOW + 4, FATHOM_OK, LOW + 4, 16 },
		{ LOW + 7, FATHOM_OK, LOW + 4, 16 },  { LOW + 8, FATHOM_OK, LOW + 8, 24 },
		{ HIGH - 1, FATHOM_OK, LOW + 8, 24 }, { HIGH, FATHOM_END, 0, 0 },
	};
	struct made m;

	(void)state;
	make(&m, BYTES(0x41, 0x0e, 16, 0x41, 0x0e, 24));
	begin_with(&m, BYTES(0x0c, 7, 8));
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		assert_int_equal(start(&m), FATHOM_OK);
		assert_int_equal(fathom_row_find(&m.r, wanted[i].svma), wanted[i].err);
		if (wanted[i].err)
			continue;
		assert_int_equal(m.r.now.low, wanted[i].low);
		cfa_is(&m, 7, wanted[i].offset);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),   cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_cfa),     cmocka_unit_test(test_cfa_without_rule),
		cmocka_unit_test(test_advance), cmocka_unit_test(test_rows_without_code),
		cmocka_unit_test(test_bounds),  cmocka_unit_test(test_states),
		cmocka_unit_test(test_limits),  cmocka_unit_test(test_restore),
		cmocka_unit_test(test_cie),     cmocka_unit_test(test_return_register),
		cmocka_unit_test(test_dropped), cmocka_unit_test(test_signed),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
