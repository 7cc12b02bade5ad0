/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Who is at this address: from addresses to functions, files, lines and inlined calls.
 */
#ifndef FATHOM_SYMBOLIZE_H
#define FATHOM_SYMBOLIZE_H

#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where a name came from. */
enum fathom_source {
	FATHOM_SOURCE_NONE = 0,
	FATHOM_SOURCE_SYMTAB = 1,
	FATHOM_SOURCE_DYNSYM = 2,
	FATHOM_SOURCE_MINIDEBUGINFO = 3,
	FATHOM_SOURCE_DWARF = 4,
	FATHOM_SOURCE_FDE = 5, /**< bounds without a name: "func@[0x1139..0x1155]" */
	FATHOM_SOURCE_PLT = 6,
	FATHOM_SOURCE_VDSO = 7,     /**< of what the kernel maps into every process */
	FATHOM_SOURCE_KALLSYMS = 8, /**< of the running kernel's own table */
	FATHOM_SOURCE_PERF_MAP = 9, /**< code that the program made: /tmp/perf-PID.map */
	FATHOM_SOURCE_JITDUMP = 10, /**< code that the program made: jit-PID.dump */
	FATHOM_SOURCE_GDB_JIT = 11  /**< code that the program made: the list for GDB */
};

/**
 * Why there is no name or, beside a name, no line; beside both, why inlined calls may be missing: a
 * .dwo file that is not there or belongs to another build, damage.
 */
enum fathom_reason {
	FATHOM_REASON_NONE = 0,
	FATHOM_REASON_UNMAPPED = 1, /**< no section or segment holds the address */
	FATHOM_REASON_BUILD_ID_MISMATCH =
		2,                        /**< the only debug file found belongs to another file */
	FATHOM_REASON_NO_SYMBOLS = 3,     /**< no symbol covers the address */
	FATHOM_REASON_NO_DEBUG_INFO = 4,  /**< nothing says which line this is */
	FATHOM_REASON_NO_SUCH_SYMBOL = 5, /**< the input names a symbol that is not there */
	FATHOM_REASON_BAD_ADDRESS = 6,    /**< the input is no address */
	/** a debuginfod server, or the file system of the file, did not answer in time */
	FATHOM_REASON_TIMEOUT = 7,
	FATHOM_REASON_UNSUPPORTED = 8, /**< its debug information is of a kind not read */
	FATHOM_REASON_CORRUPT = 9,     /**< its debug information is damaged; see the notes */
	FATHOM_REASON_LIMIT = 10,      /**< a limit was met; see the notes */
	FATHOM_REASON_NO_FILE = 11,    /**< memory that no file is behind, or none that is found */
	FATHOM_REASON_NO_PERMISSION = 12, /**< the file behind it is not ours to read */
	FATHOM_REASON_CHANGED = 13, /**< what is there changed again and again while it was asked */
	FATHOM_REASON_NOT_PREPARED = 14 /**< what could tell was not prepared for a handler */
};

/**
 * The word for a source, such as "symtab"; "" for FATHOM_SOURCE_NONE and what is unknown.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_source_name(enum fathom_source source);

/**
 * The word for a reason, such as "no-debug-info"; "" for FATHOM_REASON_NONE and what is unknown.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_reason_name(enum fathom_reason reason);

/** Which of several names for one address is served. */
enum fathom_alias {
	/**
	 * fathom's rule: the symbol that names the function that debug information has there, by
	 * one of its names or by one of them without a reserved prefix (`malloc` for
	 * `__libc_malloc`); then typed before untyped; sized before sizeless; exported before
	 * local; the fewest leading underscores ("_IO_" counts as one more, the prefix of a mangled
	 * name and
	 * "__vdso_" as none); global before weak; the default version; the shorter; the first in
	 * byte order. So `printf`, never `_IO_printf`.
	 */
	FATHOM_ALIAS_FATHOM = 0,
	/**
	 * As GNU addr2line 2.40 chooses: the symbol that starts last at or before the address,
	 * however long it is; its version stays in its name.
	 */
	FATHOM_ALIAS_GNU = 1,
	FATHOM_ALIAS_LLVM = 2 /**< as llvm-symbolizer 19 chooses */
};

/** Bits of fathom_symbolize_options.flags. */
enum {
	/** Names only: no files, lines or inlined calls; no debug information is read. */
	FATHOM_NAMES_ONLY = 1u << 0,
	/** The addresses are return addresses: what is looked up is the call before each. */
	FATHOM_RETURN_ADDRESSES = 1u << 1,
	/** No demangling: function names are linkage names. */
	FATHOM_NO_DEMANGLE = 1u << 2,
	/** The outermost frame is called what the debug information calls it, not the symbol. */
	FATHOM_DWARF_NAMES = 1u << 3,
	/**
	 * Keep nothing for later: only what these addresses need is decoded, and dropped at once.
	 * For programs that ask once. Nothing is left for fathom_cache_store() then.
	 */
	FATHOM_ONE_SHOT = 1u << 4,
	/**
	 * Addresses of variables, too, have a frame: where the variable is declared. All debug
	 * information is read for that, once per target. Only variables that a symbol names; with
	 * FATHOM_ALIAS_GNU only at their first byte, and the frame is called as the answer is,
	 * which may be by the symbol of something else, or not at all.
	 */
	FATHOM_VARIABLES = 1u << 5,
	/**
	 * With FATHOM_NAMES_ONLY: where symbols of several functions start at one address, debug
	 * information is read to tell which of them the code is, as it is without
	 * FATHOM_NAMES_ONLY. Linkers and compilers that fold equal functions (ICF) leave such
	 * symbols.
	 */
	FATHOM_UNFOLD = 1u << 6
};

/** Options of one batch; as struct fathom_options. */
struct fathom_symbolize_options {
	size_t size;
	uint32_t flags;
	uint32_t alias; /**< enum fathom_alias */
	uint64_t reserved[4];
};

/** An id that stands for nothing. */
#define FATHOM_NONE UINT32_MAX

/** A module number that stands for nothing. */
#define FATHOM_NO_MODULE UINT16_MAX

/** A module_address that is not known. */
#define FATHOM_NO_ADDRESS UINT64_MAX

/** A file, or what stands for one, that addresses are in. What it points to is the answers'. */
struct fathom_module_info {
	const char *path; /**< of a file target as it was opened; else as the system has it */
	const uint8_t *build_id; /**< NULL without one */
	uint32_t build_id_size;  /**< bytes */
	uint32_t reserved;
};

/** The answer for one address. */
struct fathom_answer {
	uint64_t address;        /**< as asked */
	uint64_t module_address; /**< as stated in the ELF; in relocatable files, in the section; 0
				    without a module; FATHOM_NO_ADDRESS without the file */
	uint64_t offset;         /**< from the start of the symbol, bytes */
	uint64_t size;           /**< of the symbol, bytes; 0: not stated */
	uint32_t symbol;         /**< function id, or FATHOM_NONE: the address has no name */
	uint32_t frame;          /**< frame id of the innermost frame, or FATHOM_NONE */
	uint8_t source;          /**< enum fathom_source, of symbol */
	uint8_t reason;          /**< enum fathom_reason */
	uint16_t module;         /**< number of the module it is in, or FATHOM_NO_MODULE */
	/**
	 * File id of the source file that the symbol table names for symbol, without directory;
	 * FATHOM_NONE with FATHOM_ALIAS_FATHOM, and where a frame says more.
	 */
	uint32_t symbol_file;
};

/** One frame: of an inlined call, or of the function itself. */
struct fathom_frame {
	uint64_t start;         /**< lowest address of this copy's code; 0: not known */
	uint32_t function;      /**< function id, or FATHOM_NONE */
	uint32_t file;          /**< file id, or FATHOM_NONE */
	uint32_t line;          /**< 0: none */
	uint32_t column;        /**< 0: none */
	uint32_t discriminator; /**< 0: none */
	uint32_t outer;         /**< frame id of the caller it is inlined into, or FATHOM_NONE */
};

/** Bits of fathom_function.flags. */
enum {
	/** The language does not mangle: plain_name is what the compiler calls the symbol, too. */
	FATHOM_FUNCTION_UNMANGLED = 1u << 0,
	/** The language is Ada: name is demangled by GNAT's rules. */
	FATHOM_FUNCTION_ADA = 1u << 1
};

/** A function's names. Strings belong to the answers. */
struct fathom_function {
	const char *name;         /**< demangled; as linked where that is not mangled */
	const char *linkage_name; /**< as linked; NULL where only a plain name is known */
	const char *plain_name;   /**< DW_AT_name; NULL where it is not known */
	/** The clone suffix at the end of linkage_name (".cold", ".part.0"), or NULL. */
	const char *clone_suffix;
	uint32_t name_size; /**< bytes of name, without the NUL */
	uint32_t flags;     /**< FATHOM_FUNCTION_ bits */
	/** File id and line of its declaration: FATHOM_NONE and 0 but with FATHOM_DECLARATIONS. */
	uint32_t decl_file;
	uint32_t decl_line;
};

/** A source file. The string belongs to the answers. */
struct fathom_source_file {
	const char *path; /**< comp_dir/directory/name as the compiler stated them, unnormalised */
	uint32_t path_size; /**< bytes of path, without the NUL */
	uint32_t reserved;
};

/**
 * The answers to one batch, in its order, with tables that their ids index: functions, files,
 * frames. Identical frames are stored once. Opaque; independent of the target once made.
 */
struct fathom_answers;

/**
 * Answers @n addresses, at most 2^31 - 1. What goes wrong with one of them is its reason; the call
 * fails only when nothing could be answered.
 *
 * The addresses are those stated in the ELF file; in a relocatable file, those that
 * fathom_target_section_address() gives; in a process, those of its memory.
 *
 * Safety: mt-safe; several threads may ask one target at the same time, without waiting for each
 *	other
 * Memory: *@ret_answers is the caller's, to be freed with fathom_answers_free()
 * Returns: FATHOM_OK, FATHOM_E_ARGUMENT or FATHOM_E_MEMORY; of a process also what
 *	fathom_target_open_process() returns: it may have ended
 */
FATHOM_API fathom_err fathom_symbolize(struct fathom_target *target,
				       const struct fathom_symbolize_options *options,
				       const uint64_t *addresses, size_t n,
				       struct fathom_answers **ret_answers,
				       struct fathom_errinfo *reterr);

/**
 * Safety: neither
 * Memory: frees @answers, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_answers_free(struct fathom_answers *answers);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of answers: as many as there were addresses
 */
FATHOM_API size_t fathom_answers_count(const struct fathom_answers *answers);

/**
 * Safety: mt-safe
 * Memory: the answer belongs to @answers
 * Returns: answer @i, which must be below the count
 */
FATHOM_API const struct fathom_answer *fathom_answers_get(const struct fathom_answers *answers,
							  size_t i);

/**
 * Safety: mt-safe
 * Memory: the frame belongs to @answers
 * Returns: the frame with this @id; NULL for FATHOM_NONE
 */
FATHOM_API const struct fathom_frame *fathom_answers_frame(const struct fathom_answers *answers,
							   uint32_t id);

/**
 * Safety: mt-safe
 * Memory: the function belongs to @answers
 * Returns: the function with this @id; NULL for FATHOM_NONE
 */
FATHOM_API const struct fathom_function *fathom_answers_function(
	const struct fathom_answers *answers, uint32_t id);

/**
 * Safety: mt-safe
 * Memory: the file belongs to @answers
 * Returns: the source file with this @id; NULL for FATHOM_NONE
 */
FATHOM_API const struct fathom_source_file *fathom_answers_file(
	const struct fathom_answers *answers, uint32_t id);

/**
 * Safety: mt-safe
 * Memory: the module belongs to @answers
 * Returns: module @number; NULL for FATHOM_NO_MODULE
 */
FATHOM_API const struct fathom_module_info *fathom_answers_module(
	const struct fathom_answers *answers, uint16_t number);

/**
 * Finds the text of a source file that the compiler has embedded in the debug information, as clang
 * does with -gembed-source. @address is one that fathom_symbolize() takes, @path that of a file of
 * one of its frames, as the answers have it. Only files have such texts here, not processes, cores
 * or the kernel.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_text and *@ret_size, in bytes; the text lives as long as @target
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND when no text is embedded, or an empty one;
 *	FATHOM_E_MEMORY; FATHOM_E_CHANGED as fathom_target_check()
 */
FATHOM_API fathom_err fathom_target_source(struct fathom_target *target, uint64_t address,
					   const char *path, const char **ret_text,
					   size_t *ret_size, struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
