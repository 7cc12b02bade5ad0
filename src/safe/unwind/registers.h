/* SPDX-License-Identifier: MIT */
/*
 * The general registers of one frame, by the DWARF numbers of the machine's psABI, each known or
 * unknown; and what is particular to a machine.
 *
 * Safety: as-safe.
 */
#ifndef FATHOM_UNWIND_REGISTERS_H
#define FATHOM_UNWIND_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe/base/bytes.h"

/* Registers that are kept of a frame, at most: those of aarch64. */
#define FATHOM_REGISTERS 33

struct fathom_registers {
	uint32_t machine; /* EM_ */
	uint64_t pc;
	uint64_t sp;
	uint64_t known; /* bit i is set if value[i] is valid */
	/*
	 * By the psABI's DWARF number, below 64; where the pc has none there, as on aarch64, by one
	 * of ours
	 */
	uint64_t value[FATHOM_REGISTERS];
};

/* No register: of fathom_unwind_arch.link, and of a slot in a signal frame. */
#define FATHOM_NO_REGISTER 0xff

/*
 * Registers that the kernel saves in a row when it calls a signal handler; the most of a machine.
 */
#define FATHOM_SIGNAL_SLOTS 33

/* Bytes of the longest call of any machine, without prefixes. */
#define FATHOM_MAX_CALL 7

/* A place in the code by which a signal handler returns. */
struct fathom_signal_place {
	uint8_t at;         /* of pc: bytes from the start of the code */
	uint16_t registers; /* of the saved registers: bytes from sp, when pc is here */
};

/* Code by which signal handlers return, and where the kernel has saved the registers. */
struct fathom_signal_return {
	uint8_t size; /* bytes of code */
	uint8_t code[9];
	uint8_t n_places;
	bool has_siginfo; /* the kernel has saved a siginfo_t for handlers with SA_SIGINFO */
	uint16_t siginfo; /* its distance from sp at any of the places */
	struct fathom_signal_place places[3];
};

/* Facts about a machine that unwinding needs. */
struct fathom_unwind_arch {
	uint32_t machine; /* EM_ */
	uint8_t word;     /* bytes in a register */
	uint8_t n;        /* registers with a number below it */
	uint8_t pc;       /* DWARF numbers */
	uint8_t sp;
	uint8_t fp;
	uint8_t link; /* holds the return address after a call; FATHOM_NO_REGISTER: the stack */
	uint64_t callee_saved; /* bit i: register i keeps its value if no rule says otherwise */
	uint64_t pac_mask;     /* bits of a signed return address that are no address; 0: none */
	const struct fathom_signal_return *signal_returns;
	uint8_t n_signal_returns;
	uint8_t n_signal_slots;
	uint8_t signal_slots[FATHOM_SIGNAL_SLOTS]; /* DWARF numbers, in the order of saving */
	uint8_t code_alignment; /* bytes that an instruction's address is a multiple of */
	uint8_t max_call;       /* bytes of the longest call */
	/* Returns whether a call ends at the end of the @size bytes of @code, up to max_call. */
	bool (*ends_with_call)(const uint8_t *code, size_t size);
	/*
	 * Returns whether a direct call ends there; *@ret is how far from its end, modulo 2^64, the
	 * target is.
	 */
	bool (*ends_with_direct_call)(const uint8_t *code, size_t size, uint64_t *ret);
	/*
	 * Returns whether @code, a function, may jump out of itself: for x86 also where bytes of an
	 * instruction only look so.
	 */
	bool (*may_jump_out)(struct fathom_bytes code);
	/*
	 * Return whether @code, at a return address, is glibc's __start_context(), or does nothing
	 * but end its thread by a system call (ends.h). What cannot be read of it is 0xff.
	 */
	bool (*is_context_end)(struct fathom_bytes code);
	bool (*is_thread_end)(struct fathom_bytes code);
	/* Returns whether @code, which is before a call, clears the frame pointer for it. */
	bool (*clears_fp)(struct fathom_bytes code);
};

extern const struct fathom_unwind_arch fathom_unwind_x86_64;
extern const struct fathom_unwind_arch fathom_unwind_i386;
extern const struct fathom_unwind_arch fathom_unwind_aarch64;

/*
 * Returns the description of @machine, an EM_ value; NULL if it is not supported. Put the pac_mask
 * of a process (NT_ARM_PAC_MASK), if it is known, into a copy.
 */
const struct fathom_unwind_arch *fathom_unwind_arch(uint32_t machine);

/* Returns @address without its signature: each bit of it is as bit 55, which is no part of one. */
static inline uint64_t fathom_unwind_unsigned(const struct fathom_unwind_arch *arch,
					      uint64_t address)
{
	return address >> 55 & 1 ? address | arch->pac_mask : address & ~arch->pac_mask;
}

/*
 * Returns whether register @number is known. pc and sp are known if their numbers are; they equal
 * value[] there.
 */
static inline bool fathom_register_known(const struct fathom_registers *r, uint64_t number)
{
	return number < FATHOM_REGISTERS && (r->known >> number & 1);
}

static inline void fathom_register_set(struct fathom_registers *r, uint8_t number, uint64_t value)
{
	r->value[number] = value;
	r->known |= UINT64_C(1) << number;
}

#endif
