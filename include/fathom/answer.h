/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The types of questions and answers that all calls share: a pc, a frame, a module, an answer.
 *
 * The library allocates answers, frames and modules; later versions may add members at their end.
 * Their sizeof is therefore not part of the interface: use pointers to them, and walk arrays by
 * their stride. Text ends with a NUL, which its length does not count. NULL means unknown.
 */
#ifndef FATHOM_ANSWER_H
#define FATHOM_ANSWER_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of pc. */
enum fathom_pc_kind {
	FATHOM_PC_EXACT = 0, /**< the instruction that starts there, or holds the address */
	FATHOM_PC_RETURN = 1 /**< a return address: the call that ends before it */
};

/** A code address, as found in registers and on stacks. */
struct fathom_pc {
	uint64_t address;
	uint8_t kind; /**< enum fathom_pc_kind */
	uint8_t reserved[7];
};

/**
 * Returns the address to look up for @pc. A return address points after its call, where another
 * function may start, so 1 is subtracted.
 *
 * Safety: as-safe
 * Memory: none
 * Returns: the address
 */
FATHOM_API uint64_t fathom_pc_lookup(struct fathom_pc pc);

/** Where a name came from. */
enum fathom_source {
	FATHOM_SOURCE_NONE = 0,
	FATHOM_SOURCE_SYMTAB = 1,
	FATHOM_SOURCE_DYNSYM = 2,
	FATHOM_SOURCE_MINIDEBUGINFO = 3,
	FATHOM_SOURCE_DWARF = 4,
	FATHOM_SOURCE_FDE = 5, /**< bounds without a name: "func@[0x1139..0x1155]" */
	FATHOM_SOURCE_PLT = 6,
	FATHOM_SOURCE_VDSO = 7,     /**< the code that the kernel maps into every process */
	FATHOM_SOURCE_KALLSYMS = 8, /**< the running kernel's own table */
	FATHOM_SOURCE_PERF_MAP = 9, /**< JIT code: /tmp/perf-PID.map */
	FATHOM_SOURCE_JITDUMP = 10, /**< JIT code: jit-PID.dump */
	FATHOM_SOURCE_GDB_JIT = 11, /**< JIT code: GDB's JIT interface */
	/** an interpreter's own frame (fathom_stack_options.interpret) */
	FATHOM_SOURCE_INTERPRETER = 12,
	FATHOM_SOURCE_REGISTERED = 13, /**< JIT code: what <fathom/jit.h> publishes */
	FATHOM_SOURCE_GOPCLNTAB =
		14 /**< the table that Go's runtime keeps, of a stripped program */
};

/**
 * Why an answer has no name. In an answer with a name: why it has no line. In one with both: why
 * inlined calls may be missing (a .dwo file is missing or of another build, or data is damaged).
 */
enum fathom_reason {
	FATHOM_REASON_NONE = 0,
	FATHOM_REASON_UNMAPPED = 1, /**< no section or segment holds the address */
	FATHOM_REASON_BUILD_ID_MISMATCH =
		2,                        /**< the only debug file found belongs to another file */
	FATHOM_REASON_NO_SYMBOLS = 3,     /**< no symbol covers the address */
	FATHOM_REASON_NO_DEBUG_INFO = 4,  /**< no debug information gives the line */
	FATHOM_REASON_NO_SUCH_SYMBOL = 5, /**< the input names a symbol that does not exist */
	FATHOM_REASON_BAD_ADDRESS = 6,    /**< the input is not an address */
	/** a debuginfod server, or the file system of the file, did not answer in time */
	FATHOM_REASON_TIMEOUT = 7,
	FATHOM_REASON_UNSUPPORTED = 8, /**< fathom does not read this kind of debug information */
	FATHOM_REASON_CORRUPT = 9,     /**< the debug information is damaged; see the notes */
	FATHOM_REASON_LIMIT = 10,      /**< a limit was met; see the notes */
	FATHOM_REASON_NO_FILE = 11,    /**< no file backs this memory, or it was not found */
	FATHOM_REASON_NO_PERMISSION = 12, /**< no permission to read the file */
	FATHOM_REASON_CHANGED = 13,       /**< the code kept changing during the call */
	FATHOM_REASON_NOT_PREPARED = 14,  /**< its module was not prepared for handlers */
	FATHOM_REASON_NO_BASE = 15        /**< nothing tells where its module was in memory */
};

/**
 * Returns the word for a source, such as "symtab"; "" for FATHOM_SOURCE_NONE and unknown values.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_source_name(enum fathom_source source);

/**
 * Returns the word for a reason, such as "no-debug-info"; "" for FATHOM_REASON_NONE and unknown
 * values.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_reason_name(enum fathom_reason reason);

/** An address that does not exist or is not known. */
#define FATHOM_NO_ADDRESS UINT64_MAX

/** A file that holds addresses, or a substitute for one ("[vdso]"). */
struct fathom_module_info {
	const char *path;        /**< file targets: as opened; else as the system reports it */
	const uint8_t *build_id; /**< NULL without one */
	uint32_t build_id_size;  /**< bytes */
	uint8_t is_unverified;   /**< 1: see FATHOM_TARGET_UNVERIFIED_FILES */
	uint8_t reserved[3];
};

/** One frame: an inlined call, or the function itself. */
struct fathom_frame {
	const char *function;     /**< demangled; the linkage name if that is not mangled */
	const char *linkage_name; /**< as linked; NULL where only a plain name is known */
	const char *file; /**< comp_dir/directory/name as the compiler wrote them, not normalised */
	const struct fathom_frame *outer; /**< frame that it is inlined into; NULL: none */
	uint64_t start;                   /**< lowest address of this copy's code; 0: not known */
	uint32_t function_size;           /**< bytes of function */
	uint32_t linkage_size;            /**< bytes of linkage_name */
	uint32_t file_size;               /**< bytes of file */
	uint32_t line;                    /**< 0: none */
	uint32_t column;                  /**< 0: none */
	uint32_t discriminator;           /**< 0: none */
};

/** The answer for one pc. */
struct fathom_answer {
	struct fathom_pc pc; /**< as asked */
	/**
	 * pc.address as an ELF address; in relocatable files, as an offset in the section; or
	 * FATHOM_NO_ADDRESS
	 */
	uint64_t module_address;
	const struct fathom_module_info *module; /**< NULL: the address is in none */
	const char *symbol;                      /**< demangled; NULL: the address has no name */
	const char *linkage_name;         /**< as linked; NULL where only a plain name is known */
	uint32_t symbol_size;             /**< bytes of the text symbol */
	uint32_t linkage_size;            /**< bytes of linkage_name */
	uint64_t offset;                  /**< of pc.address from the start of the symbol, bytes */
	uint64_t size;                    /**< bytes of the symbol's code; 0: not stated */
	const struct fathom_frame *frame; /**< the innermost; NULL: only the symbol is known */
	uint8_t source;                   /**< enum fathom_source, of symbol */
	uint8_t reason;                   /**< enum fathom_reason */
	uint8_t reserved[6];
};

#ifdef __cplusplus
}
#endif

#endif
