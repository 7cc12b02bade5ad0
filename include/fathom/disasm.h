/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Disassembly: instructions, with a name for every address that they refer to.
 *
 * In AT&T syntax the text is that of `objdump -d -M suffix`, with addresses prefixed by 0x and
 * followed by their names in parentheses:
 * @code
 *	callq  0x401030 (puts@plt)
 *	callq  *0x69(%rip)        # 0x7f19fdf1d358 (JITRT_UnlinkFrame(_ts*))
 *	leaq   0xe9b(%rip),%rdi        # 0x402010 (greeting)
 * @endcode
 *
 * A slot that code calls through, or loads an address from, is named after what it *holds*: in a
 * process, its memory; in a file, the relocation that fills it, or its bytes. If the slot has a
 * name itself, that comes first: `(handler -> on_signal)`. Immediate values are named only if a
 * symbol covers the memory that they point to.
 *
 * Addresses that are computed in registers are followed in straight-line code: `movabs; call
 * *%rax`, `adrp; add`, `adrp; ldr`, `mov; movk`. Nothing is guessed: jump tables and targets that
 * depend on values from elsewhere have no names.
 */
#ifndef FATHOM_DISASM_H
#define FATHOM_DISASM_H

#include <fathom/answer.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of fathom_disasm_options.flags. */
enum fathom_disasm_flag {
	/** Intel syntax on x86; else AT&T. */
	FATHOM_DISASM_INTEL = 1u << 0,
	/** No files and lines: no debug information is read. */
	FATHOM_DISASM_NO_LINES = 1u << 1,
	/** No demangling: names are linkage names. */
	FATHOM_DISASM_NO_DEMANGLE = 1u << 2,
	/** Drop decoded debug information after the call; for programs that ask once. */
	FATHOM_DISASM_ONE_SHOT = 1u << 3
};

/** Options; as struct fathom_options. */
struct fathom_disasm_options {
	size_t size;
	uint32_t flags;
	/**
	 * EM_X86_64, EM_386 or EM_AARCH64 of elf.h; default: the target's machine or, without a
	 * target, the machine that the library was built for.
	 */
	uint32_t machine;
	/** Stop after this many instructions; default and maximum: FATHOM_DISASM_MAX. */
	uint32_t max_instructions;
	uint32_t reserved1;
	/**
	 * Names @address if the target has no name for it, or there is no target: writes a
	 * NUL-terminated name of at most @cap bytes to @to and the offset of @address from its
	 * start to *@ret_offset. Returns 0 if there is no name. NULL: not called.
	 */
	int (*name)(void *data, uint64_t address, char *to, size_t cap, uint64_t *ret_offset);
	void *name_data;
	uint64_t reserved[4];
};

/** Maximum number of instructions of one call. */
#define FATHOM_DISASM_MAX (1u << 22)

/** Where execution continues after an instruction. */
enum fathom_flow {
	FATHOM_FLOW_NEXT = 0,   /**< with the next one */
	FATHOM_FLOW_CALL = 1,   /**< at the next one, when the callee returns */
	FATHOM_FLOW_BRANCH = 2, /**< at the next one, or elsewhere */
	FATHOM_FLOW_JUMP = 3,   /**< elsewhere */
	FATHOM_FLOW_RETURN = 4, /**< at the caller */
	FATHOM_FLOW_STOP = 5    /**< not at all: a trap */
};

/** Kinds of references of an instruction. */
enum fathom_reference {
	FATHOM_REFERENCE_NONE = 0,
	FATHOM_REFERENCE_BRANCH = 1,  /**< target is where it goes */
	FATHOM_REFERENCE_ADDRESS = 2, /**< target is an address that it computes */
	FATHOM_REFERENCE_SLOT = 3,    /**< target is what the memory at slot holds, or slot */
	FATHOM_REFERENCE_VALUE = 4    /**< target is a constant that has a name */
};

/** Bits of fathom_instruction.flags. */
enum fathom_instruction_flag {
	FATHOM_INSTRUCTION_BAD = 1u << 0,    /**< its bytes are not an instruction */
	FATHOM_INSTRUCTION_TARGET = 1u << 1, /**< target is known */
	FATHOM_INSTRUCTION_SLOT = 1u << 2,   /**< slot is known */
	FATHOM_INSTRUCTION_PADDING = 1u << 3 /**< does nothing, like padding between functions */
};

/** One instruction. Strings and bytes belong to the disassembly. */
struct fathom_instruction {
	uint64_t address;
	uint64_t target;        /**< see reference; 0 where it is not known */
	uint64_t slot;          /**< address of the memory that it jumps or reads through, else 0 */
	uint64_t target_offset; /**< from the start of target_name, bytes; may be negative */
	uint64_t module_address;  /**< as in struct fathom_answer */
	uint64_t function_offset; /**< from the start of the outermost frame's function, bytes */
	const struct fathom_frame *frame; /**< innermost frame of the instruction; NULL: none */
	const uint8_t *bytes;
	const char *text;        /**< including the names of what it refers to */
	const char *target_name; /**< NULL if none; may be what a relocation will fill in */
	const char *slot_name;   /**< name of the memory at slot; NULL if none */
	uint32_t text_size;      /**< bytes of text, without the NUL */
	uint32_t code_size;      /**< bytes of text before the first name */
	uint8_t size;            /**< bytes */
	uint8_t flow;            /**< enum fathom_flow */
	uint8_t reference;       /**< enum fathom_reference */
	uint8_t flags;           /**< FATHOM_INSTRUCTION_ bits */
	/**
	 * General registers that it changes, or a part of them: a bit for each, numbered as in its
	 * encoding (x86: 0 is rax, 4 rsp, 5 rbp; aarch64: x0 to x30). Of a call also those that
	 * calls change.
	 */
	uint32_t writes;
};

/** Instructions in the order of their addresses. Opaque; independent of the target. */
struct fathom_disasm;

/**
 * Disassembles [@start, @end) of @target; addresses are as for fathom_symbolize(). Decodes
 * linearly, also through data. Where bytes are not an instruction, skips one byte (four on aarch64)
 * as a bad instruction. An instruction that reaches beyond @end is bad.
 *
 * Stops early where memory ends, or at the maximum number of instructions; fathom_disasm_next()
 * tells where.
 *
 * Looks up all names as one batch and all lines as another.
 *
 * If the kernel's memory cannot be read, the code comes from the image's file, and a note of the
 * target says so, because the kernel patches its own code. In kernel code, constants have no names
 * and slots are not read.
 *
 * Safety: mt-safe
 * Memory: *@ret_disasm is the caller's, to be freed with fathom_disasm_free()
 * Returns: FATHOM_OK, with no instructions if @start is @end; FATHOM_E_ARGUMENT; FATHOM_E_NOT_FOUND
 *	when there is nothing to read at @start; FATHOM_E_UNSUPPORTED for code of other machines, or
 *	when the decoder library is not installed; FATHOM_E_MEMORY; for a process also what
 *	fathom_symbolize() returns
 */
FATHOM_API fathom_err fathom_disassemble(struct fathom_target *target,
					 const struct fathom_disasm_options *options,
					 uint64_t start, uint64_t end,
					 struct fathom_disasm **ret_disasm,
					 struct fathom_errinfo *reterr);

/**
 * Disassembles the @size bytes at @bytes as code that is, or will be, at @address, for example
 * fresh code of a JIT compiler. @target, which may be NULL, names what they refer to. Slots inside
 * are read from @bytes, others from @target.
 *
 * Safety: mt-safe
 * Memory: *@ret_disasm is the caller's, to be freed with fathom_disasm_free(); @bytes are copied
 * Returns: as fathom_disassemble(), but never FATHOM_E_NOT_FOUND
 */
FATHOM_API fathom_err fathom_disassemble_bytes(struct fathom_target *target,
					       const struct fathom_disasm_options *options,
					       const void *bytes, size_t size, uint64_t address,
					       struct fathom_disasm **ret_disasm,
					       struct fathom_errinfo *reterr);

/**
 * Safety: neither
 * Memory: frees @disasm, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_disasm_free(struct fathom_disasm *disasm);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of instructions
 */
FATHOM_API size_t fathom_disasm_count(const struct fathom_disasm *disasm);

/**
 * Safety: mt-safe
 * Memory: the instruction belongs to @disasm
 * Returns: instruction @i, which must be below the count
 */
FATHOM_API const struct fathom_instruction *fathom_disasm_get(const struct fathom_disasm *disasm,
							      size_t i);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the address after the last instruction: the requested end, unless disassembly stopped
 *	early
 */
FATHOM_API uint64_t fathom_disasm_next(const struct fathom_disasm *disasm);

#ifdef __cplusplus
}
#endif

#endif
