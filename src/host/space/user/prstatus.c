/* SPDX-License-Identifier: MIT */
#include "host/space/user/prstatus.h"

#include <signal.h>

#include "fathom/answer.h"
#include "safe/base/cursor.h"

/* Bytes before pr_cursig; before pr_pid and before pr_reg, by the class of the core. */
#define SIGNAL_OFF    12
#define PID_OFF(is64) ((is64) ? 32 : 24)
#define REG_OFF(is64) ((is64) ? 112 : 72)

/* A slot whose register has no DWARF number. */
#define SKIP 0xff

/* The DWARF numbers of the registers, in the note's order. */
struct order {
	uint16_t machine;
	uint8_t word; /* bytes per register */
	uint8_t n;
	uint8_t numbers[34];
};

static const struct order orders[] = {
	/*
	 * x86-64 psABI, figure 3.36: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi,
	 * orig_rax, rip, cs, eflags, rsp
	 */
	{ EM_X86_64, 8, 20, { 15, 14, 13, 12, 6, 3,    11, 10,   9,    8,
			      0,  2,  1,  4,  5, SKIP, 16, SKIP, SKIP, 7 } },
	/*
	 * i386 psABI, table 2.14: ebx ecx edx esi edi ebp eax, xds xes xfs xgs orig_eax, eip, xcs,
	 * eflags, esp
	 */
	{ EM_386, 4, 16, { 3, 1, 2, 6, 7, 5, 0, SKIP, SKIP, SKIP, SKIP, SKIP, 8, SKIP, 9, 4 } },
	/* DWARF for the Arm 64-bit Architecture, 4.1: x0 to x30, sp, pc */
	{ EM_AARCH64, 8, 33, { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
			       17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 } },
};

static void find_frame(const struct order *o, struct fathom_registers *r)
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(o->machine);

	r->pc = r->value[arch->pc];
	r->sp = r->value[arch->sp];
}

int32_t fathom_prstatus_tid(const struct fathom_image *image, struct fathom_bytes desc)
{
	struct fathom_cursor c = cur_init(desc, image->swap);
	int32_t tid;

	cur_skip(&c, PID_OFF(image->is64));
	tid = (int32_t)cur_u32(&c);
	return cur_ok(&c) && tid > 0 ? tid : 0;
}

bool fathom_prstatus_general(uint16_t machine, bool swap, struct fathom_bytes regs,
			     struct fathom_registers *ret)
{
	struct fathom_registers r = { .machine = machine };
	struct fathom_cursor c = cur_init(regs, swap);
	const struct order *o = orders;

	while (o < orders + sizeof orders / sizeof *orders && o->machine != machine)
		o++;
	if (o == orders + sizeof orders / sizeof *orders)
		return false;
	for (uint8_t i = 0; i < o->n; i++) {
		const uint64_t value = cur_uint(&c, o->word);

		if (o->numbers[i] != SKIP)
			fathom_register_set(&r, o->numbers[i], value);
	}
	if (!cur_ok(&c))
		return false;
	find_frame(o, &r);
	*ret = r;
	return true;
}

bool fathom_prstatus_registers(const struct fathom_image *image, struct fathom_bytes desc,
			       struct fathom_registers *ret)
{
	const size_t off = REG_OFF(image->is64);

	return desc.size >= off &&
	       fathom_prstatus_general(image->machine, image->swap,
				       (struct fathom_bytes){ desc.data + off, desc.size - off },
				       ret);
}

/* Bytes before the fields that depend on the signal: three numbers, aligned to a pointer. */
#define FAULT_OFF(word) ((word) == 8 ? 16 : 12)

/* Returns whether @code of @signal comes from an instruction and has an address. */
static bool has_address(int32_t signal, int32_t code)
{
	switch (signal) {
	case SIGILL:
	case SIGTRAP:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGSYS:
		return code > 0 && code != SI_KERNEL;
	default:
		return false;
	}
}

struct fathom_thread_signal fathom_siginfo_read(uint8_t word, bool swap, struct fathom_bytes info)
{
	struct fathom_thread_signal s = { .address = FATHOM_NO_ADDRESS };
	struct fathom_cursor c = cur_init(info, swap);
	const int32_t number = (int32_t)cur_u32(&c);
	uint64_t address;

	cur_skip(&c, sizeof(uint32_t)); /* si_errno */
	s.code = (int32_t)cur_u32(&c);
	cur_skip(&c, FAULT_OFF(word) - 12);
	address = cur_uint(&c, word);
	s.number = cur_ok(&c) && number > 0 ? number : 0;
	if (has_address(s.number, s.code))
		s.address = address;
	return s;
}

int32_t fathom_prstatus_signal(const struct fathom_image *image, struct fathom_bytes desc)
{
	struct fathom_cursor c = cur_init(desc, image->swap);

	cur_skip(&c, SIGNAL_OFF);
	return cur_u16(&c);
}

uint64_t fathom_pac_mask_read(const struct fathom_image *image, struct fathom_bytes desc)
{
	struct fathom_cursor c = cur_init(desc, image->swap);

	cur_skip(&c, sizeof(uint64_t)); /* of data */
	return cur_u64(&c);
}
