/* SPDX-License-Identifier: MIT */
/* The memory that x86-64's instructions access, by hand: Intel SDM, volume 2. */
#include "unit.h"

#include <string.h>

#include "host/disasm/code.h"

#define RAX 0
#define RSP 4

struct expected {
	const char *what;
	uint8_t n; /* bytes */
	uint8_t bytes[8];
	unsigned n_accesses;
	struct fathom_code_access accesses[2];
};

#define NONE FATHOM_NO_REGISTER

/* Below the stack pointer, 8 bytes. */
#define PUSHED { (uint64_t)-8, 8, RSP, NONE, 0, false, true }

static const struct expected all[] = {
	{ "call +0", 5, { 0xe8 }, 1, { PUSHED } },
	{ "call *%rax", 2, { 0xff, 0xd0 }, 1, { PUSHED } },
	{ "push %rbx", 1, { 0x53 }, 1, { PUSHED } },
	{ "push $1", 2, { 0x6a, 0x01 }, 1, { PUSHED } },
	{ "pop %rbx", 1, { 0x5b }, 1, { { 0, 8, RSP, NONE, 0, true, false } } },
	{ "ret", 1, { 0xc3 }, 1, { { 0, 8, RSP, NONE, 0, true, false } } },
	{ "call *(%rax)", 2, { 0xff, 0x10 }, 2, { { 0, 8, RAX, NONE, 0, true, false }, PUSHED } },
	{ "push (%rsp)",
	  3,
	  { 0xff, 0x34, 0x24 },
	  2,
	  { { 0, 8, RSP, NONE, 0, true, false }, PUSHED } },
	{ "mov %dil,(%rsp,%rax)",
	  4,
	  { 0x40, 0x88, 0x3c, 0x04 },
	  1,
	  { { 0, 1, RSP, RAX, 1, false, true } } },
	{ "orq $0,-16(%rsp)",
	  6,
	  { 0x48, 0x83, 0x4c, 0x24, 0xf0, 0x00 },
	  1,
	  { { (uint64_t)-16, 8, RSP, NONE, 0, true, true } } },
	{ "mov 4(%rip),%eax",
	  6,
	  { 0x8b, 0x05, 4 },
	  1,
	  { { 0x100a, 4, NONE, NONE, 0, true, false } } },
	{ "lea 8(%rsp),%rax", 5, { 0x48, 0x8d, 0x44, 0x24, 0x08 }, 0, { { 0 } } },
};

static void check(struct fathom_code_decoder *d, const struct expected *e)
{
	struct fathom_code_access found[FATHOM_MAX_ACCESSES];
	const unsigned n =
		d->decode_accesses(d, (struct fathom_bytes){ e->bytes, e->n }, 0x1000, found);

	if (n != e->n_accesses)
		fail_msg("%s: %u accesses", e->what, n);
	for (unsigned i = 0; i < n; i++) {
		const struct fathom_code_access *a = &found[i];
		const struct fathom_code_access *b = &e->accesses[i];

		if (a->displacement != b->displacement || a->size != b->size ||
		    a->base != b->base || a->index != b->index ||
		    (b->index != NONE && a->scale != b->scale) || a->reads != b->reads ||
		    a->writes != b->writes)
			fail_msg("%s: access %u is not right", e->what, i);
	}
}

static void accesses_of_instructions(void **state)
{
	struct fathom_code_decoder *d;

	(void)state;
	if (fathom_x86_open(true, false, &d, NULL))
		skip();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		check(d, &all[i]);
	d->close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(accesses_of_instructions) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
