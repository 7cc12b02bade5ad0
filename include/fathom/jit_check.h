/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Checks of made code, for the tests of a JIT compiler: does it do what its descriptions promise?
 *
 * fathom_jit_check_run() runs a program and follows each instruction of the code that it publishes
 * through GDB's JIT interface, by <fathom/jit.h> or by itself: at each the CFA, the return address
 * and the registers of the caller must be where the call frame information says.
 * fathom_jit_check_scan() looks at code without running it, for instructions that write a register
 * which the code has promised to keep.
 */
#ifndef FATHOM_JIT_CHECK_H
#define FATHOM_JIT_CHECK_H

#include <fathom/disasm.h>
#include <fathom/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of findings. Enumerators are never removed or renumbered. */
enum fathom_jit_finding_kind {
	FATHOM_JIT_FINDING_CFA = 1,            /**< the CFA is not the described one */
	FATHOM_JIT_FINDING_RETURN_ADDRESS = 2, /**< nor the return address */
	FATHOM_JIT_FINDING_REGISTER = 3,       /**< nor a register's value in the caller */
	/** a return led elsewhere than to the return address */
	FATHOM_JIT_FINDING_RETURN_PC = 4,
	/** a return left the stack pointer elsewhere than at the CFA */
	FATHOM_JIT_FINDING_RETURN_SP = 5,
	/** what is described cannot be read or computed; `actual` and `described` are 0 */
	FATHOM_JIT_FINDING_UNREADABLE = 6,
	/** nothing describes the instruction: no promise, so none is broken */
	FATHOM_JIT_FINDING_NO_RULE = 7
};

/** Bits of fathom_jit_finding.flags. */
enum fathom_jit_finding_flag {
	/** It was so after the instruction; else before it. */
	FATHOM_JIT_FINDING_BEHIND = 1u << 0
};

/** The first instruction of a function that does not do as described. */
struct fathom_jit_finding {
	uint64_t address; /**< of the instruction */
	/** where it was found: the instruction's address or, with BEHIND, that of the next one */
	uint64_t pc;
	uint64_t actual;      /**< what is true */
	uint64_t described;   /**< what the description makes of it */
	const char *function; /**< its name, as linked; "" if it has none */
	uint64_t offset;      /**< of the instruction, from the start of the function, bytes */
	const char *text;     /**< the instruction; NULL if no decoder is installed */
	const uint8_t *bytes;
	uint32_t n_bytes;
	uint32_t kind;      /**< enum fathom_jit_finding_kind */
	uint32_t reg;       /**< DWARF number of the register; of a CFA or return address 0 */
	uint32_t flags;     /**< enum fathom_jit_finding_flag */
	int32_t tid;        /**< the thread */
	uint32_t reserved1; /**< 0 */
};

/** Bits of fathom_jit_check_options.flags. */
enum fathom_jit_check_flag {
	/** Compare CFA and return address only, not the registers of the caller. */
	FATHOM_JIT_CHECK_FRAMES_ONLY = 1u << 0
};

/** Options of fathom_jit_check_run(); as struct fathom_options. */
struct fathom_jit_check_options {
	size_t size;
	uint32_t flags; /**< enum fathom_jit_check_flag */
	/** Instructions that one thread runs before the others get their turn; default 1,000. */
	uint32_t slice;
	/**
	 * Called for the first finding of each function, and for its first instruction that nothing
	 * describes, on a thread of the library's while the call waits; the program is stopped.
	 * @finding is valid during the call. NULL: not called.
	 */
	void (*finding)(void *data, const struct fathom_jit_finding *finding);
	void *data;
	uint64_t reserved[4];
};

/** Result of a run. */
struct fathom_jit_check_result {
	size_t size;           /**< sizeof(struct fathom_jit_check_result) */
	uint64_t instructions; /**< compared with their descriptions, each time that one ran */
	uint64_t functions;    /**< published ones that ran, by name and place */
	uint64_t frames;       /**< calls of them that were followed */
	/** entries into published code of which it could not be told what frame they belong to */
	uint64_t unjudged;
	uint64_t found;       /**< functions that broke their description */
	uint64_t undescribed; /**< functions with instructions that nothing describes */
	int32_t status;       /**< how the program ended, as waitpid(2) has it */
	uint32_t reserved1;
	uint64_t reserved[4];
};

/**
 * Runs @argv, a program and its arguments up to a NULL, found along PATH, until it ends, and checks
 * each instruction of the code that it publishes. Its threads are followed; children are not. The
 * program must be for x86-64, as the library; its standard input and output are the caller's.
 *
 * What is published is learned when the program calls __jit_debug_register_code(), in whatever
 * object. Its pages are made non-executable, so that whatever enters them is noticed; then the
 * thread runs one instruction at a time until it leaves. At an entry by a call the truth is known:
 * it is kept beside the stack until the frame ends. At any other entry, such as through a shim, the
 * description of the first instruction is believed if it is plausible, and must stay true.
 *
 * The call ends when the program does; fathom_options.progress is not asked.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_result
 * Returns: FATHOM_OK, whatever was found; FATHOM_E_ARGUMENT; FATHOM_E_OS if the program cannot be
 *	run or traced; FATHOM_E_UNSUPPORTED on other machines, or for programs of others;
 *	FATHOM_E_MEMORY, and what fathom_target_open_process() returns. On failure the program was
 *	killed.
 */
FATHOM_API fathom_err fathom_jit_check_run(struct fathom *session, char *const *argv,
					   const struct fathom_jit_check_options *options,
					   struct fathom_jit_check_result *ret_result,
					   struct fathom_errinfo *reterr);

/** Options of fathom_jit_check_scan(); as struct fathom_options. */
struct fathom_jit_scan_options {
	size_t size;
	uint32_t flags; /**< none yet: 0 */
	/** The reserved register: its number in encodings, a bit of fathom_instruction.writes. */
	uint32_t reg;
	uint32_t max_instructions; /**< stop after so many; 0: at the end */
	uint32_t reserved1;        /**< 0 */
	/**
	 * Called for the first instruction of each function that writes the register, or that
	 * cannot be decoded (FATHOM_INSTRUCTION_BAD), on the calling thread. @instruction is valid
	 * during the call. Returns 0, or something else to end the scan. NULL: not called.
	 */
	int (*found)(void *data, const struct fathom_instruction *instruction);
	void *data;
	uint64_t reserved[4];
};

/** Result of a scan. */
struct fathom_jit_scan_result {
	size_t size;           /**< sizeof(struct fathom_jit_scan_result) */
	uint64_t instructions; /**< looked at */
	uint64_t found;        /**< those that write the register, or cannot be decoded */
	uint64_t next; /**< where it ended: the end, unless memory ended or it was stopped */
	uint64_t reserved[4];
};

/**
 * Looks at the code of @target from @start to @end, addresses as for fathom_disassemble(), for
 * instructions that write a register. All that an instruction writes counts, whether its text names
 * it or not: pop, leave, enter, xchg, a part of the register. Of code without names each
 * instruction is a function of its own.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_result
 * Returns: FATHOM_OK, whatever was found; FATHOM_E_ARGUMENT; FATHOM_E_NOT_FOUND when there is
 *	nothing to read at @start; else as fathom_disassemble()
 */
FATHOM_API fathom_err fathom_jit_check_scan(struct fathom_target *target,
					    const struct fathom_jit_scan_options *options,
					    uint64_t start, uint64_t end,
					    struct fathom_jit_scan_result *ret_result,
					    struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
