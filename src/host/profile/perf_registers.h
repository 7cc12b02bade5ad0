/* SPDX-License-Identifier: MIT */
/* The registers of a sample of perf events: asm/perf_regs.h of the machine. */
#ifndef FATHOM_PROFILE_PERF_REGISTERS_H
#define FATHOM_PROFILE_PERF_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "safe/unwind/registers.h"

/* Returns which registers samples have, as perf_event_attr.sample_regs_user wants it. */
uint64_t fathom_perf_registers(void);

/*
 * Reads the registers of a sample: @values as the record has them, and enum perf_sample_regs_abi.
 * Those with a bit in @missing, in the order of @values, are not known. False if there are none, or
 * pc or sp is missing.
 */
bool fathom_perf_registers_read(const uint8_t *values, uint64_t missing, uint64_t abi,
				struct fathom_registers *ret);

#endif
