/* SPDX-License-Identifier: MIT */
/* Machines whose stacks are not walked: samples have no registers. */
#include "host/profile/perf_registers.h"

uint64_t fathom_perf_registers(void)
{
	return 0;
}

bool fathom_perf_registers_read(const uint8_t *values, uint64_t missing, uint64_t abi,
				struct fathom_registers *ret)
{
	(void)values;
	(void)missing;
	(void)abi;
	*ret = (struct fathom_registers){ 0 };
	return false;
}
