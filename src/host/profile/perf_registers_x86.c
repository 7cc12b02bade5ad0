/* SPDX-License-Identifier: MIT */
/* Linux, arch/x86/include/uapi/asm/perf_regs.h: ax bx cx dx si di bp sp ip ..., r8 at bit 16. */
#include <asm/perf_regs.h>
#include <elf.h>
#include <linux/perf_event.h>
#include <string.h>

#include "host/profile/perf_registers.h"

#define BIT(n) (UINT64_C(1) << (n))

/* Registers of a program of 32 bits; in one of 64 bits there are eight more. */
#define SHORT                                                                 \
	(BIT(PERF_REG_X86_AX) | BIT(PERF_REG_X86_BX) | BIT(PERF_REG_X86_CX) | \
	 BIT(PERF_REG_X86_DX) | BIT(PERF_REG_X86_SI) | BIT(PERF_REG_X86_DI) | \
	 BIT(PERF_REG_X86_BP) | BIT(PERF_REG_X86_SP) | BIT(PERF_REG_X86_IP))
#define MORE (UINT64_C(0xff) << PERF_REG_X86_R8)

/* DWARF numbers by the order of the record (psABI of x86-64, figure 3.36; of i386, figure 2.14). */
static const uint8_t numbers_64[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };
static const uint8_t numbers_32[] = { 0, 3, 1, 2, 6, 7, 5, 4, 8 };

uint64_t fathom_perf_registers(void)
{
	return sizeof(void *) == 8 ? SHORT | MORE : SHORT;
}

bool fathom_perf_registers_read(const uint8_t *values, uint64_t missing, uint64_t abi,
				struct fathom_registers *ret)
{
	const bool is_long = abi == PERF_SAMPLE_REGS_ABI_64;
	const uint8_t *numbers = is_long ? numbers_64 : numbers_32;
	const size_t n = is_long ? sizeof numbers_64 : sizeof numbers_32;

	*ret = (struct fathom_registers){ .machine = is_long ? EM_X86_64 : EM_386 };
	if (!values || (!is_long && abi != PERF_SAMPLE_REGS_ABI_32) ||
	    (is_long && sizeof(void *) == 4))
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t value;

		if (missing >> i & 1)
			continue;
		memcpy(&value, values + 8 * i, sizeof value);
		fathom_register_set(ret, numbers[i], is_long ? value : (uint32_t)value);
	}
	ret->pc = ret->value[is_long ? 16 : 8];
	ret->sp = ret->value[is_long ? 7 : 4];
	return fathom_register_known(ret, is_long ? 16 : 8) &&
	       fathom_register_known(ret, is_long ? 7 : 4);
}
