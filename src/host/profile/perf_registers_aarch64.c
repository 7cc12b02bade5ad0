/* SPDX-License-Identifier: MIT */
/* Linux, arch/arm64/include/uapi/asm/perf_regs.h: x0 to x30, sp, pc. */
#include <elf.h>
#include <linux/perf_event.h>
#include <string.h>

#include "host/profile/perf_registers.h"

#define N_REGISTERS 33

uint64_t fathom_perf_registers(void)
{
	return (UINT64_C(1) << N_REGISTERS) - 1;
}

bool fathom_perf_registers_read(const uint8_t *values, uint64_t missing, uint64_t abi,
				struct fathom_registers *ret)
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(EM_AARCH64);

	*ret = (struct fathom_registers){ .machine = EM_AARCH64 };
	if (!values || abi != PERF_SAMPLE_REGS_ABI_64)
		return false;
	for (size_t i = 0; i < N_REGISTERS; i++) {
		uint64_t value;

		if (missing >> i & 1)
			continue;
		memcpy(&value, values + 8 * i, sizeof value);
		/* x0 to x30 and sp have these DWARF numbers; that of pc is ours. */
		fathom_register_set(ret, i < N_REGISTERS - 1 ? (uint8_t)i : arch->pc, value);
	}
	ret->pc = ret->value[arch->pc];
	ret->sp = ret->value[arch->sp];
	return fathom_register_known(ret, arch->pc) && fathom_register_known(ret, arch->sp);
}
