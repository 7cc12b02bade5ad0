/* SPDX-License-Identifier: MIT */
/* Disassembling bytes that a program has made itself. Encodings are by hand. */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fathom/fathom.h"

/* What a C++ compiler calls JITRT_UnlinkFrame(_ts*). */
void unlink_frame(void *frame) __asm__("_Z17JITRT_UnlinkFrameP3_ts");

__attribute__((noinline)) void unlink_frame(void *frame)
{
	__asm__ volatile("nop; nop" : : "r"(frame) : "memory");
}

static uint64_t callee(void)
{
	return (uintptr_t)unlink_frame;
}

struct fixture {
	struct fathom *session;
	struct fathom_target *self;
};

static int set_up(void **state)
{
	static struct fixture f;
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };

	assert_int_equal(fathom_create(&options, &f.session, NULL), 0);
	assert_int_equal(fathom_target_open_process(f.session, getpid(), NULL, &f.self, NULL), 0);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	fathom_target_release(f->self);
	fathom_destroy(f->session);
	return 0;
}

static struct fathom_disasm *disassemble(struct fathom_target *target,
					 const struct fathom_disasm_options *options,
					 const void *bytes, size_t size, uint64_t address)
{
	struct fathom_disasm *d;
	struct fathom_errinfo info;
	const fathom_err err =
		fathom_disassemble_bytes(target, options, bytes, size, address, &d, &info);

	if (err == FATHOM_E_UNSUPPORTED)
		skip();
	assert_int_equal(err, 0);
	return d;
}

static const struct fathom_disasm_options x86 = { .size = sizeof x86, .machine = EM_X86_64 };

/* Asserts that the text of instruction @i is @format with @address twice. */
static void expect(const struct fathom_disasm *d, size_t i, const char *format, uint64_t address)
{
	char text[256];

	assert_true(i < fathom_disasm_count(d));
	(void)snprintf(text, sizeof text, format, (unsigned long long)address,
		       (unsigned long long)address);
	assert_string_equal(fathom_disasm_get(d, i)->text, text);
	assert_int_equal(fathom_disasm_get(d, i)->text_size, strlen(text));
}

/* Writes @value, of @size bytes, in the byte order of code. */
static void put(uint8_t *to, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

/* The line of the Cinder JIT's dump, with the name that it lacked. */
static void a_call_through_a_slot_is_named_by_what_the_slot_holds(void **state)
{
	const struct fixture *f = *state;
	const uint64_t address = 0x7f19fdf1d2e9;
	uint8_t code[0x77] = { 0xff, 0x15, 0x69, 0, 0, 0 };
	const struct fathom_instruction *i;
	struct fathom_disasm *d;

	put(code + 0x6f, callee(), 8);
	d = disassemble(f->self, &x86, code, sizeof code, address);
	expect(d, 0, "callq  *0x69(%%rip)        # 0x7f19fdf1d358 (JITRT_UnlinkFrame(_ts*))", 0);
	i = fathom_disasm_get(d, 0);
	assert_int_equal(i->address, address);
	assert_int_equal(i->size, 6);
	assert_int_equal(i->slot, 0x7f19fdf1d358);
	assert_int_equal(i->target, callee());
	assert_string_equal(i->target_name, "JITRT_UnlinkFrame(_ts*)");
	assert_null(i->slot_name);
	assert_int_equal(i->flow, FATHOM_FLOW_CALL);
	assert_int_equal(i->reference, FATHOM_REFERENCE_SLOT);
	assert_int_equal(i->code_size, strlen("callq  *0x69(%rip)"));
	assert_memory_equal(i->bytes, code, 6);
	fathom_disasm_free(d);
}

extern uint64_t fathom_test_slot;
uint64_t fathom_test_slot;

static void a_slot_may_be_in_the_targets_memory(void **state)
{
	const struct fixture *f = *state;
	uint8_t code[] = { 0xff, 0x15, 0, 0, 0, 0 };
	struct fathom_disasm *d;

	fathom_test_slot = callee();
	/* The code is placed so that a displacement of 0 leads to the slot, which has a name. */
	d = disassemble(f->self, &x86, code, sizeof code, (uintptr_t)&fathom_test_slot - 6);
	expect(d, 0,
	       "callq  *0x0(%%rip)        # 0x%llx (fathom_test_slot -> JITRT_UnlinkFrame(_ts*))",
	       (uintptr_t)&fathom_test_slot);
	fathom_disasm_free(d);
	/* A slot that cannot be read names nothing. */
	d = disassemble(f->self, &x86, code, sizeof code, 0x1000);
	expect(d, 0, "callq  *0x0(%%rip)        # 0x1006", 0);
	fathom_disasm_free(d);
}

static void calls_jumps_and_constants_are_named(void **state)
{
	const struct fixture *f = *state;
	/* Far from functions of this program, which would begin or end in the midst of it. */
	const uint64_t address = callee() + 0x4000000;
	uint8_t code[] = { 0xe8, 0,    0, 0, 0,                /* call */
			   0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, /* movabs */
			   0xff, 0xd0,                         /* call *%rax */
			   0xe9, 0,    0, 0, 0 };              /* jmp */
	struct fathom_disasm *d;

	put(code + 1, callee() - (address + 5), 4);
	put(code + 7, callee(), 8);
	put(code + 18, callee() + 1 - (address + 22), 4);
	d = disassemble(f->self, &x86, code, sizeof code, address);
	assert_int_equal(fathom_disasm_count(d), 4);
	expect(d, 0, "callq  0x%llx (JITRT_UnlinkFrame(_ts*))", callee());
	expect(d, 1, "movabsq $0x%llx,%%rax        # 0x%llx (JITRT_UnlinkFrame(_ts*))", callee());
	expect(d, 2, "callq  *%%rax        # 0x%llx (JITRT_UnlinkFrame(_ts*))", callee());
	expect(d, 3, "jmpq   0x%llx (JITRT_UnlinkFrame(_ts*)+0x1)", callee() + 1);
	assert_int_equal(fathom_disasm_get(d, 3)->flow, FATHOM_FLOW_JUMP);
	assert_int_equal(fathom_disasm_next(d), address + sizeof code);
	fathom_disasm_free(d);
}

static void names_may_stay_mangled_and_the_syntax_be_intels(void **state)
{
	const struct fixture *f = *state;
	const struct fathom_disasm_options o = {
		.size = sizeof o,
		.machine = EM_X86_64,
		.flags = FATHOM_DISASM_INTEL | FATHOM_DISASM_NO_DEMANGLE,
	};
	uint8_t code[16] = { 0xff, 0x15, 2, 0, 0, 0, 0xeb, 0xfe };
	struct fathom_disasm *d;

	put(code + 8, callee(), 8);
	d = disassemble(f->self, &o, code, 8 + 8, 0x1000);
	expect(d, 0, "call   QWORD PTR [rip+0x2]        # 0x1008 (_Z17JITRT_UnlinkFrameP3_ts)", 0);
	expect(d, 1, "jmp    0x1006", 0);
	fathom_disasm_free(d);
}

/* Names addresses in [0x401000, 0x402000), and counts the calls. */
static int name_of_page(void *data, uint64_t address, char *to, size_t cap, uint64_t *ret_offset)
{
	unsigned *asked = data;

	++*asked;
	if (address < 0x401000 || address >= 0x402000)
		return 0;
	(void)snprintf(to, cap, "page");
	*ret_offset = address - 0x401000;
	return 1;
}

/* Disassembles with addresses in that page named. */
static struct fathom_disasm *disassemble_named(uint32_t machine, const void *bytes, size_t size,
					       uint64_t address)
{
	unsigned asked = 0;
	const struct fathom_disasm_options o = {
		.size = sizeof o, .machine = machine, .name = name_of_page, .name_data = &asked
	};
	struct fathom_disasm *d = disassemble(NULL, &o, bytes, size, address);

	assert_true(asked > 0);
	return d;
}

/* Asserts that the instructions from number @first on are the @n texts. */
static void expect_all(const struct fathom_disasm *d, size_t first, const char *const *texts,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = fathom_disasm_get(d, first + i)->text;

		/* Capstone 5 prints some instructions by their other names. */
		if (!strncmp(texts[i], "movz ", 5) && !strncmp(text, "mov  ", 5))
			assert_string_equal(text + 5, texts[i] + 5);
		else
			assert_string_equal(text, texts[i]);
	}
}

static void what_a_register_holds_is_forgotten_in_time(void **state)
{
	/*
	 *  0: mov $0x401000,%eax   5: call *%rax   7: call *%rax (eax may be another)
	 *  9: mov $0x401000,%ebx  14: call *%rbx  16: call *%rbx (callees keep rbx)
	 * 18: mov $0x401000,%ecx  23: mov %edx,%ecx  25: call *%rcx
	 * 27: mov $0x401000,%edi  32: jmp 36  34: call *%rdi (nothing leads here)  36: ret
	 * 37: mov $0x401000,%esi  42: nop (44 leads here)  43: call *%rsi  45: jmp 42
	 */
	static const uint8_t code[] = {
		0xb8, 0x00, 0x10, 0x40, 0x00, 0xff, 0xd0, 0xff, 0xd0, 0xbb, 0x00, 0x10,
		0x40, 0x00, 0xff, 0xd3, 0xff, 0xd3, 0xb9, 0x00, 0x10, 0x40, 0x00, 0x89,
		0xd1, 0xff, 0xd1, 0xbf, 0x00, 0x10, 0x40, 0x00, 0xeb, 0x02, 0xff, 0xd7,
		0xc3, 0xbe, 0x00, 0x10, 0x40, 0x00, 0x90, 0xff, 0xd6, 0xeb, 0xfb,
	};
	static const char *const texts[] = {
		"movl   $0x401000,%eax        # 0x401000 (page)",
		"callq  *%rax        # 0x401000 (page)",
		"callq  *%rax",
		"movl   $0x401000,%ebx        # 0x401000 (page)",
		"callq  *%rbx        # 0x401000 (page)",
		"callq  *%rbx        # 0x401000 (page)",
		"movl   $0x401000,%ecx        # 0x401000 (page)",
		"movl   %edx,%ecx",
		"callq  *%rcx",
		"movl   $0x401000,%edi        # 0x401000 (page)",
		"jmp    0x24",
		"callq  *%rdi",
		"retq",
		"movl   $0x401000,%esi        # 0x401000 (page)",
		"nop",
		"callq  *%rsi",
		"jmp    0x2a",
	};
	struct fathom_disasm *d = disassemble_named(EM_X86_64, code, sizeof code, 0);

	(void)state;
	assert_int_equal(fathom_disasm_count(d), sizeof texts / sizeof *texts);
	expect_all(d, 0, texts, sizeof texts / sizeof *texts);
	fathom_disasm_free(d);
}

static void numbers_that_are_no_addresses_have_no_names(void **state)
{
	/* mov $0x401008,%eax (inside something); and $0x401000,%eax (a mask); add $0x10,%eax */
	static const uint8_t code[] = { 0xb8, 0x08, 0x10, 0x40, 0x00, 0x25, 0x00,
					0x10, 0x40, 0x00, 0x83, 0xc0, 0x10 };
	struct fathom_disasm *d = disassemble_named(EM_X86_64, code, sizeof code, 0);

	(void)state;
	expect(d, 0, "movl   $0x401008,%%eax", 0);
	expect(d, 1, "andl   $0x401000,%%eax", 0);
	expect(d, 2, "addl   $0x10,%%eax", 0);
	for (size_t i = 0; i < 3; i++) {
		assert_null(fathom_disasm_get(d, i)->target_name);
		assert_false(fathom_disasm_get(d, i)->flags & FATHOM_INSTRUCTION_TARGET);
	}
	fathom_disasm_free(d);
}

static void what_is_no_instruction_is_skipped_byte_by_byte(void **state)
{
	/* push %es and pop %es are invalid in 64-bit code; the call is cut short. */
	static const uint8_t code[] = { 0x06, 0x07, 0x90, 0xe8, 0x00 };
	struct fathom_disasm *d = disassemble(NULL, &x86, code, sizeof code, 0x10);

	(void)state;
	assert_int_equal(fathom_disasm_count(d), 5);
	for (size_t i = 0; i < 5; i++) {
		expect(d, i, i == 2 ? "nop" : "(bad)", 0);
		assert_int_equal(fathom_disasm_get(d, i)->flags & FATHOM_INSTRUCTION_BAD, i != 2);
		assert_int_equal(fathom_disasm_get(d, i)->address, 0x10 + i);
		assert_int_equal(fathom_disasm_get(d, i)->size, 1);
	}
	fathom_disasm_free(d);
}

static void code_of_32_bits_is_decoded_as_such(void **state)
{
	/* push %es; inc %eax; call *0x401000; push $0x401000 */
	static const uint8_t code[] = { 0x06, 0x40, 0xff, 0x15, 0x00, 0x10, 0x40,
					0x00, 0x68, 0x00, 0x10, 0x40, 0x00 };
	struct fathom_disasm *d = disassemble_named(EM_386, code, sizeof code, 0);

	(void)state;
	expect(d, 0, "pushl  %%es", 0);
	expect(d, 1, "incl   %%eax", 0);
	expect(d, 2, "calll  *0x401000        # 0x401000 (page)", 0);
	expect(d, 3, "pushl  $0x401000        # 0x401000 (page)", 0);
	fathom_disasm_free(d);
}

static void addresses_made_of_parts_are_followed(void **state)
{
	static const uint32_t words[] = {
		0xd2820000, /* 0x400000 mov  x0, #0x1000 */
		0xf2a00800, /* 0x400004 movk x0, #0x40, lsl #16 */
		0xd63f0000, /* 0x400008 blr  x0 */
		0xb0000001, /* 0x40000c adrp x1, 0x401000 */
		0xd503201f, /* 0x400010 nop */
		0x91004021, /* 0x400014 add  x1, x1, #0x10 */
		0xf9400422, /* 0x400018 ldr  x2, [x1, #8] */
		0xb9000c23, /* 0x40001c str  w3, [x1, #12] */
		0x94000ff8, /* 0x400020 bl   0x404000 */
		0xf9400422, /* 0x400024 ldr  x2, [x1, #8]: callees may change x1 */
		0xb4007ec0, /* 0x400028 cbz  x0, 0x401000 */
		0x58007ec3, /* 0x40002c ldr  x3, 0x401004 */
		0xd61f0060, /* 0x400030 br   x3 */
		0x00000000, /* 0x400034 */
	};
	static const char *const texts[] = {
		"movz   x0, #0x1000",
		"movk   x0, #0x40, lsl #16        // 0x401000 (page)",
		"blr    x0        // 0x401000 (page)",
		"adrp   x1, 0x401000",
		"nop",
		"add    x1, x1, #0x10        // 0x401010 (page+0x10)",
		"ldr    x2, [x1, #8]        // 0x401018 (page+0x18)",
		"str    w3, [x1, #0xc]        // 0x40101c (page+0x1c)",
		"bl     0x404000",
		"ldr    x2, [x1, #8]",
		"cbz    x0, 0x401000 (page)",
		"ldr    x3, 0x401004 (page+0x4)",
		"br     x3        // 0x401004 (page+0x4)",
		"udf    #0",
	};
	uint8_t code[sizeof words];
	struct fathom_disasm *d;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		put(code + 4 * i, words[i], 4);
	d = disassemble_named(EM_AARCH64, code, sizeof code, 0x400000);
	assert_int_equal(fathom_disasm_count(d), sizeof texts / sizeof *texts);
	expect_all(d, 0, texts, sizeof texts / sizeof *texts);
	fathom_disasm_free(d);
}

static void pages_outlive_labels_unless_they_differ(void **state)
{
	static const uint32_t words[] = {
		0xb0000002, /* 0x400000 adrp x2, 0x401000 */
		0xb4000080, /* 0x400004 cbz  x0, 0x400014 */
		0xb0000001, /* 0x400008 adrp x1, 0x401000 */
		0xb0000003, /* 0x40000c adrp x3, 0x401000 */
		0x14000003, /* 0x400010 b    0x40001c */
		0xd0000001, /* 0x400014 adrp x1, 0x402000 */
		0xb0000003, /* 0x400018 adrp x3, 0x401000 */
		0x91004021, /* 0x40001c add  x1, x1, #0x10: of which page? */
		0x91004042, /* 0x400020 add  x2, x2, #0x10 */
		0x91004063, /* 0x400024 add  x3, x3, #0x10 */
		0xd65f03c0, /* 0x400028 ret */
		0x91004042, /* 0x40002c add  x2, x2, #0x10: nothing leads here */
	};
	static const char *const texts[] = {
		"add    x1, x1, #0x10",
		"add    x2, x2, #0x10        // 0x401010 (page+0x10)",
		"add    x3, x3, #0x10        // 0x401010 (page+0x10)",
		"ret",
		"add    x2, x2, #0x10",
	};
	uint8_t code[sizeof words];
	struct fathom_disasm *d;

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		put(code + 4 * i, words[i], 4);
	d = disassemble_named(EM_AARCH64, code, sizeof code, 0x400000);
	expect_all(d, 7, texts, sizeof texts / sizeof *texts);
	fathom_disasm_free(d);
}

static void a_number_of_instructions_can_be_asked_for(void **state)
{
	static const uint8_t code[] = { 0x90, 0x90, 0x90 };
	const struct fathom_disasm_options o = { .size = sizeof o,
						 .machine = EM_X86_64,
						 .max_instructions = 2 };
	struct fathom_disasm *d = disassemble(NULL, &o, code, sizeof code, UINT64_MAX - 2);

	(void)state;
	assert_int_equal(fathom_disasm_count(d), 2);
	assert_int_equal(fathom_disasm_next(d), UINT64_MAX);
	fathom_disasm_free(d);
	d = disassemble(NULL, &o, code, 0, 7);
	assert_int_equal(fathom_disasm_count(d), 0);
	assert_int_equal(fathom_disasm_next(d), 7);
	fathom_disasm_free(d);
}

static void what_cannot_be_done_is_refused(void **state)
{
	const struct fixture *f = *state;
	struct fathom_disasm_options o = { .size = sizeof o, .machine = EM_RISCV };
	struct fathom_disasm *d;
	struct fathom_errinfo info;

	assert_int_equal(fathom_disassemble_bytes(NULL, &o, "", 1, 0, &d, &info),
			 FATHOM_E_UNSUPPORTED);
	o = (struct fathom_disasm_options){ .size = sizeof o, .flags = 1u << 31 };
	assert_int_equal(fathom_disassemble_bytes(NULL, &o, "", 1, 0, &d, &info),
			 FATHOM_E_ARGUMENT);
	o = (struct fathom_disasm_options){ .size = sizeof o, .reserved = { 0, 1 } };
	assert_int_equal(fathom_disassemble(f->self, &o, 0, 1, &d, &info), FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_disassemble(f->self, NULL, 2, 1, &d, &info), FATHOM_E_ARGUMENT);
	assert_int_equal(fathom_disassemble(f->self, NULL, 0, 1, &d, &info), FATHOM_E_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_through_a_slot_is_named_by_what_the_slot_holds),
		cmocka_unit_test(a_slot_may_be_in_the_targets_memory),
		cmocka_unit_test(calls_jumps_and_constants_are_named),
		cmocka_unit_test(names_may_stay_mangled_and_the_syntax_be_intels),
		cmocka_unit_test(what_a_register_holds_is_forgotten_in_time),
		cmocka_unit_test(numbers_that_are_no_addresses_have_no_names),
		cmocka_unit_test(what_is_no_instruction_is_skipped_byte_by_byte),
		cmocka_unit_test(code_of_32_bits_is_decoded_as_such),
		cmocka_unit_test(addresses_made_of_parts_are_followed),
		cmocka_unit_test(pages_outlive_labels_unless_they_differ),
		cmocka_unit_test(a_number_of_instructions_can_be_asked_for),
		cmocka_unit_test(what_cannot_be_done_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
