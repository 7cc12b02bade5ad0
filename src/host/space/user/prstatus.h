/* SPDX-License-Identifier: MIT */
/*
 * NT_PRSTATUS, a core's note for each thread: struct elf_prstatus (Linux, include/linux/elfcore.h).
 * It holds the general registers in ptrace's layout: struct user_regs_struct of <sys/user.h> (x86),
 * struct user_pt_regs of <asm/ptrace.h> (aarch64).
 *
 * Not handled: floating point and vector registers; other machines, except for the thread's number.
 */
#ifndef FATHOM_USER_PRSTATUS_H
#define FATHOM_USER_PRSTATUS_H

#include "host/space/target.h"
#include "safe/elf/image.h"

/* Returns the thread number in @desc, a note of the core @image; 0 if it is truncated. */
int32_t fathom_prstatus_tid(const struct fathom_image *image, struct fathom_bytes desc);

/*
 * Reads the general registers of @machine, an EM_ value, from @regs in ptrace's layout. Returns
 * false if they are truncated or the machine is unknown.
 */
bool fathom_prstatus_general(uint16_t machine, bool swap, struct fathom_bytes regs,
			     struct fathom_registers *ret);

/* Reads the registers; returns false if they are truncated or the machine is unknown. */
bool fathom_prstatus_registers(const struct fathom_image *image, struct fathom_bytes desc,
			       struct fathom_registers *ret);

/* Why a thread got a signal: siginfo_t of sigaction(2). */
struct fathom_thread_signal {
	int32_t number;   /* 0: none */
	int32_t code;     /* si_code */
	uint64_t address; /* of a fault, si_addr; FATHOM_NO_ADDRESS: none */
};

/*
 * Reads a siginfo_t, as in NT_SIGINFO, of a program whose addresses have @word bytes; the number is
 * 0 if it is truncated.
 */
struct fathom_thread_signal fathom_siginfo_read(uint8_t word, bool swap, struct fathom_bytes info);

/* Returns pr_cursig of NT_PRSTATUS, the signal that the process was about to take; 0: none. */
int32_t fathom_prstatus_signal(const struct fathom_image *image, struct fathom_bytes desc);

/*
 * Returns the bits that sign a return address by NT_ARM_PAC_MASK, struct user_pac_mask of
 * <asm/ptrace.h>; 0 if it is truncated.
 */
uint64_t fathom_pac_mask_read(const struct fathom_image *image, struct fathom_bytes desc);

#endif
