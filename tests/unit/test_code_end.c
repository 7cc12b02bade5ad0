/* SPDX-License-Identifier: MIT */
/*
 * Where functions without a size end: shapes by hand (Intel SDM volume 2; Arm ARM, C4); Zydis is
 * the truth for sizes and targets of instructions, call frame information for the ends of
 * functions.
 */
#include "unit.h"

#include <elf.h>
#include <string.h>

#include "../cfi/each_module.h"
#include "host/disasm/code.h"
#include "host/symbol/code_end.h"

#define START UINT64_C(0x401000)

struct shape {
	const char *what;
	enum fathom_code_machine machine;
	uint64_t size; /* of the function */
	uint8_t n;     /* bytes */
	uint8_t bytes[48];
};

static const struct shape shapes[] = {
	{ "what stands behind a return",
	  FATHOM_CODE_X86_64,
	  2,
	  6,
	  { 0x90, 0xc3, 0x0f, 0x05, 0x0f, 0x05 } },
	{ "a branch over a return: jne 1f; ret; 1: nop; ret",
	  FATHOM_CODE_X86_64,
	  5,
	  7,
	  { 0x75, 0x01, 0xc3, 0x90, 0xc3, 0x90, 0xc3 } },
	/* jmp 2f; 1: nop; 2: jne 1b; ret */
	{ "a loop that is entered at its end",
	  FATHOM_CODE_X86_64,
	  6,
	  8,
	  { 0xeb, 0x01, 0x90, 0x75, 0xfd, 0xc3, 0x0f, 0x0b } },
	/* jne 1f; ret; nop; ret; 1: ret: nothing leads to the second nop */
	{ "another function in between",
	  FATHOM_CODE_X86_64,
	  3,
	  6,
	  { 0x75, 0x03, 0xc3, 0x48, 0xc3, 0xc3 } },
	{ "padding within",
	  FATHOM_CODE_X86_64,
	  10,
	  12,
	  { 0x75, 0x06, 0xc3, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x90, 0xc3, 0x90, 0xc3 } },
	/* mov %ebp,%db2 with a mod of 0, which is ignored (Intel SDM, MOV of debug registers); ret
	 */
	{ "a debug register is in no memory",
	  FATHOM_CODE_I386,
	  4,
	  9,
	  { 0x0f, 0x23, 0x15, 0xc3, 0x90, 0x90, 0x90, 0x90, 0xc3 } },
	{ "jmp *%rax", FATHOM_CODE_X86_64, 2, 4, { 0xff, 0xe0, 0x90, 0xc3 } },
	{ "call *%rax", FATHOM_CODE_X86_64, 3, 5, { 0xff, 0xd0, 0xc3, 0x90, 0xc3 } },
	{ "padding up to the next symbol", FATHOM_CODE_X86_64, 3, 3, { 0xc3, 0x66, 0x90 } },
	{ "lea 0(%esi,%eiz,1),%esi",
	  FATHOM_CODE_I386,
	  8,
	  8,
	  { 0xff, 0xe0, 0x8d, 0x74, 0x26, 0x00, 0x66, 0x90 } },
	/* call 1f; 1: another function, as musl's _dlstart calls _dlstart_c */
	{ "a call of what follows", FATHOM_CODE_X86_64, 5, 7, { 0xe8, 0, 0, 0, 0, 0x90, 0xc3 } },
	{ "call 1f; 1: pop %ebx; ret",
	  FATHOM_CODE_I386,
	  7,
	  9,
	  { 0xe8, 0, 0, 0, 0, 0x5b, 0xc3, 0x90, 0xc3 } },
	/* nop * 9; call; nop * 2 up to 16; ret: the call may not return */
	{ "padding to 16 behind a call",
	  FATHOM_CODE_X86_64,
	  14,
	  17,
	  { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xe8, 0, 1, 0, 0, 0x66, 0x90,
	    0xc3 } },
	{ "no instruction", FATHOM_CODE_X86_64, 1, 3, { 0x90, 0x06, 0xc3 } },
	{ "an instruction that is cut off", FATHOM_CODE_X86_64, 1, 3, { 0x90, 0xe8, 0x00 } },
	/* b.eq +8; ret; nop; ret; ret */
	{ "aarch64", FATHOM_CODE_AARCH64, 16, 20, { 0x40, 0,    0,    0x54, 0xc0, 0x03, 0x5f,
						    0xd6, 0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03,
						    0x5f, 0xd6, 0xc0, 0x03, 0x5f, 0xd6 } },
	/* bl +8; br x16; nop */
	{ "aarch64: a call of what follows",
	  FATHOM_CODE_AARCH64,
	  8,
	  12,
	  { 0x02, 0, 0, 0x94, 0x00, 0x02, 0x1f, 0xd6, 0x1f, 0x20, 0x03, 0xd5 } },
	/* brk #0x3e8, hlt #0, udf #0: then another function's mov x0, x1 */
	{ "brk", FATHOM_CODE_AARCH64, 4, 8, { 0x00, 0x7d, 0x20, 0xd4, 0xe0, 0x03, 0x01, 0xaa } },
	{ "hlt", FATHOM_CODE_AARCH64, 4, 8, { 0x00, 0x00, 0x40, 0xd4, 0xe0, 0x03, 0x01, 0xaa } },
	{ "udf", FATHOM_CODE_AARCH64, 4, 8, { 0x00, 0x00, 0x00, 0x00, 0xe0, 0x03, 0x01, 0xaa } },
};

static void functions_end_where_nothing_leads_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct shape *s = &shapes[i];
		const uint64_t size = fathom_code_size(
			s->machine, (struct fathom_bytes){ s->bytes, s->n }, START, false);

		if (size != s->size)
			fail_msg("%s: %u bytes", s->what, (unsigned)size);
	}
}

static void places_that_the_linker_fills_in_lead_nowhere(void **state)
{
	/* call extern; jne extern; ret; of RELA and REL */
	static const uint8_t rela[] = { 0xe8, 0, 0, 0, 0, 0x0f, 0x85, 0, 0, 0, 0, 0xc3, 0xc3 };
	static const uint8_t rel[] = { 0xe8, 0xfc, 0xff, 0xff, 0xff, 0xe9,
				       0xfc, 0xff, 0xff, 0xff, 0xc3 };

	(void)state;
	assert_int_equal(fathom_code_size(FATHOM_CODE_X86_64,
					  (struct fathom_bytes){ rela, sizeof rela }, START, true),
			 12);
	assert_int_equal(fathom_code_size(FATHOM_CODE_I386,
					  (struct fathom_bytes){ rel, sizeof rel }, START, true),
			 10);
}

static unsigned n_compared;

static bool leads_to(const struct fathom_code *c)
{
	return c->kind == FATHOM_REFERENCE_BRANCH && c->flow != FATHOM_FLOW_NEXT;
}

static void compare_step(const struct fathom_code *c, const struct fathom_code_step *s,
			 struct fathom_bytes code, bool is64)
{
	const uint64_t to = c->address + s->size + (uint64_t)s->distance;
	bool same = s->size == c->size;

	same = same && (s->flow == FATHOM_STEP_CALL) == (c->flow == FATHOM_FLOW_CALL);
	if (c->flow == FATHOM_FLOW_RETURN || c->flow == FATHOM_FLOW_STOP)
		same = same && s->flow == FATHOM_STEP_END;
	if (c->flow == FATHOM_FLOW_JUMP)
		same = same && s->flow == (leads_to(c) ? FATHOM_STEP_JUMP : FATHOM_STEP_END);
	if (leads_to(c) && (is64 || !memchr(code.data, 0x66, c->size)))
		same = same && s->has_target && (is64 ? to : (uint32_t)to) == c->value;
	if (!same)
		fail_msg("%s-bit %02x %02x %02x %02x %02x: size %u, not %u, flow %u and %u",
			 is64 ? "64" : "32", code.data[0], code.data[1], code.data[2], code.data[3],
			 code.data[4], s->size, c->size, s->flow, c->flow);
	n_compared++;
}

/* jkzd of Knights Corner, xabort, xbegin, after any prefixes: nobody's code has them. */
static bool is_exotic(struct fathom_bytes code)
{
	static const uint8_t prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
					    0x66, 0x67, 0xf0, 0xf2, 0xf3 };
	const uint8_t *at = code.data;

	while (memchr(prefixes, *at, sizeof prefixes))
		at++;
	at += (*at & 0xf0) == 0x40; /* REX */
	return *at == 0xc5 || ((*at & 0xfe) == 0xc6 && at[1] == 0xf8);
}

/* Compares each place of @code as if an instruction started there, with what Zydis says of it. */
static void compare_steps(struct fathom_code_decoder *d, struct fathom_bytes code, bool is64)
{
	for (uint64_t at = 0; at + FATHOM_MAX_INSN < code.size; at++) {
		const struct fathom_bytes here = bytes_from(code, at);
		const struct fathom_code_step s = fathom_x86_step(here, is64);
		struct fathom_code c;

		d->decode(d, here, START, &c, NULL);
		if (!c.bad && !is_exotic(here))
			compare_step(&c, &s, here, is64);
	}
}

static void compare_code(struct fathom_module *m)
{
	const uint32_t i = fathom_object_find(m->main, ".text");
	struct fathom_code_decoder *d;
	struct fathom_bytes code;

	assert_int_equal(fathom_object_load(m->main, i, &code, NULL), FATHOM_OK);
	for (int is64 = 0; is64 <= 1; is64++) {
		if (fathom_x86_open(is64, false, &d, NULL))
			return;
		compare_steps(d, code, is64);
		d->close(d);
	}
}

static void instructions_have_the_sizes_that_zydis_finds(void **state)
{
	static char self[] = "/proc/self/exe";
	char *paths[] = { self };
	struct fathom_code_decoder *d;

	(void)state;
	if (fathom_x86_open(true, false, &d, NULL))
		skip();
	d->close(d);
	assert_int_equal(each_module(1, paths, compare_code), 0);
	assert_true(n_compared > 100000);
}

static unsigned n_functions;
static unsigned n_whole;
static unsigned n_beyond;

static void compare_ends(struct fathom_module *m)
{
	const struct fathom_bounds_list *l = m->symbols.bounds->all(m->symbols.bounds);
	const uint32_t i = fathom_object_find(m->main, ".text");
	const struct fathom_object_section *text = &m->main->sections[i];
	const enum fathom_code_machine machine =
		m->main->image.machine == EM_AARCH64 ? FATHOM_CODE_AARCH64 : FATHOM_CODE_X86_64;
	struct fathom_bytes code;

	assert_int_equal(fathom_object_load(m->main, i, &code, NULL), FATHOM_OK);
	for (size_t k = 0; k < l->n; k++) {
		const uint64_t at = l->ranges[k].key - text->base;
		uint64_t size;

		if (l->ranges[k].key < text->base || at >= code.size)
			continue;
		size = fathom_code_size(machine, bytes_from(code, at), l->ranges[k].key, false);
		n_functions++;
		n_whole += l->ranges[k].key + size == l->ranges[k].value;
		n_beyond += l->ranges[k].key + size > l->ranges[k].value;
	}
}

static void functions_do_not_reach_into_the_next_one(void **state)
{
	static char self[] = "/proc/self/exe";
	char *paths[] = { self };

	(void)state;
	assert_int_equal(each_module(1, paths, compare_ends), 0);
	print_message("of %u functions %u end where they do, %u behind that\n", n_functions,
		      n_whole, n_beyond);
#ifndef SANITIZED /* its code calls functions that never return */
	assert_int_equal(n_beyond, 0);
	assert_true(n_functions > 100 && n_whole > n_functions / 10 * 8);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_end_where_nothing_leads_on),
		cmocka_unit_test(places_that_the_linker_fills_in_lead_nowhere),
		cmocka_unit_test(instructions_have_the_sizes_that_zydis_finds),
		cmocka_unit_test(functions_do_not_reach_into_the_next_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
