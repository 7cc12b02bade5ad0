/* SPDX-License-Identifier: MIT */
/* Call frame instructions, their expressions, and steps by the rows that they make. */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>

#include "safe/unwind/step.h"

#define LOW   0x1000
#define HIGH  0x9000
#define STACK 0x7000
/* Rows that are stepped by: each may have an expression for every register. */
#define MOST_STEPS 64

static const uint32_t machines[] = { EM_X86_64, EM_386, EM_AARCH64, EM_AARCH64 };

/* Memory at STACK is the FDE's instructions, and its addresses are never far. */
static size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const struct fathom_bytes *b = data;
	const uint64_t off = avma - STACK;
	size_t n;

	if (off >= b->size)
		return 0;
	n = size < b->size - off ? size : (size_t)(b->size - off);
	memcpy(to, b->data + off, n);
	return n;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void use_step(const struct fathom_row *row, const struct fathom_unwind_arch *arch,
		     const struct fathom_step_memory *m)
{
	struct fathom_registers r = { .machine = arch->machine, .pc = row->low, .sp = STACK + 8 };
	struct fathom_registers before;
	enum fathom_stop stop;

	for (uint8_t i = 0; i < arch->n; i = (uint8_t)(i + 1 + (i == 9)))
		fathom_register_set(&r, i, STACK + i);
	fathom_register_set(&r, arch->pc, r.pc);
	fathom_register_set(&r, arch->sp, r.sp);
	before = r;
	stop = fathom_step_row(row, 0x10000, arch, m, &r);
	must(!stop || memcmp(&r, &before, sizeof r) == 0);
	must(stop || r.value[arch->pc] == r.pc);
	must(arch->word == 8 || (r.pc <= UINT32_MAX && r.sp <= UINT32_MAX));
	for (uint8_t i = 0; i < FATHOM_REGISTERS; i++)
		fuzz_use(r.value[i]);
}

/* The row that is found by an address is the one that the walk has there. */
static void use_find(const struct fathom_row_reader *walk, uint64_t svma)
{
	struct fathom_row_reader r;

	must(!fathom_row_reader_init(&r, walk->fde, walk->arch));
	must(!fathom_row_find(&r, svma));
	must(r.now.low == walk->now.low && r.now.high == walk->now.high &&
	     r.now.stated == walk->now.stated);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint8_t flags = fuzz_byte(&f);
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(machines[flags >> 1 & 3]);
	struct fathom_cie cie = {
		.cfi = { .section = { data, size }, .svma = LOW, .swap = flags & 1 },
		.code_alignment = fuzz_byte(&f),
		.data_alignment = (int8_t)fuzz_byte(&f),
		.return_register = fuzz_byte(&f) % FATHOM_REGISTERS,
		.pointer_encoding = fuzz_byte(&f),
		.has_data = true,
	};
	struct fathom_fde fde = { .cie = &cie, .low = LOW, .high = HIGH };
	struct fathom_bytes memory;
	const struct fathom_reader reader = { .read = read_memory, .data = &memory };
	const struct fathom_step_memory m = { &reader, &reader, flags & 1 };
	struct fathom_row_reader r;
	uint64_t end = LOW;
	unsigned n = 0;

	cie.cfi.address_size = arch->word;
	cie.instructions = fuzz_section(&f);
	fde.instructions = memory = fuzz_rest(&f);
	if (fathom_row_reader_init(&r, &fde, arch))
		return 0;
	for (; !fathom_row_next(&r); n++) {
		must(r.now.low == end && r.now.low < r.now.high && r.now.high <= HIGH);
		end = r.now.high;
		if (n >= MOST_STEPS)
			continue;
		use_step(&r.now, arch, &m);
		use_find(&r, r.now.high - 1);
	}
	must(r.err || end == HIGH);
	return 0;
}
