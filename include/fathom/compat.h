/* SPDX-License-Identifier: MIT */
/**
 * @file
 * For programs that must answer byte for byte as GNU addr2line or llvm-symbolizer does.
 * <fathom/fathom.h> does not include this header.
 */
#ifndef FATHOM_COMPAT_H
#define FATHOM_COMPAT_H

#include <fathom/symbolize.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of fathom_compat_options.flags. */
enum fathom_compat_flag {
	/**
	 * Compose paths as GNU binutils 2.40 does: append a relative directory to the compilation
	 * directory even if both are the same, never drop slashes, and call an unknown file
	 * "<unknown>".
	 */
	FATHOM_GNU_PATHS = 1u << 0,
	/**
	 * Leave the compilation directory out of paths: files below it get relative paths. The file
	 * that declares a variable stays absolute.
	 */
	FATHOM_RELATIVE_PATHS = 1u << 1,
	/**
	 * Report where functions are declared, and as the start of a frame its DW_AT_low_pc: 0 if
	 * the code is split into ranges.
	 */
	FATHOM_DECLARATIONS = 1u << 2
};

/**
 * Target of fathom_options.compat; filled as struct fathom_options. Cached indexes are made without
 * these options, so any of them implies FATHOM_NO_CACHE.
 */
struct fathom_compat_options {
	size_t size;
	uint32_t flags;
	uint32_t reserved1;
	/**
	 * Path of a package of split debug files (.dwp) for all files; default: the package beside
	 * each file.
	 */
	const char *dwp;
	uint64_t reserved[4];
};

/** Which of several names for one address is chosen. */
enum fathom_alias {
	/**
	 * fathom's rule, first criterion first: the symbol with a name of the function that debug
	 * information has there, with or without a reserved prefix (`malloc` for `__libc_malloc`);
	 * typed before untyped; sized before sizeless; exported before local; the fewest leading
	 * underscores ("_IO_" counts as one more, the prefix of a mangled name and "__vdso_" as
	 * none); global before weak; the default version; the shorter; the first in byte order. So
	 * `printf`, never `_IO_printf`.
	 */
	FATHOM_ALIAS_FATHOM = 0,
	/**
	 * GNU addr2line 2.40's rule: the last symbol that starts at or before the address, whatever
	 * its size; its version stays in its name.
	 */
	FATHOM_ALIAS_GNU = 1,
	FATHOM_ALIAS_LLVM = 2 /**< llvm-symbolizer 19's rule */
};

/** Bits of fathom_compat_symbolize.flags. */
enum fathom_compat_symbolize_flag {
	/** Name the outermost frame by the debug information, not by the symbol. */
	FATHOM_DWARF_NAMES = 1u << 0,
	/**
	 * Give addresses of variables a frame, too: the variable's declaration. This reads all
	 * debug information, once per target. It covers only variables that a symbol names. With
	 * FATHOM_ALIAS_GNU it covers only their first byte, and the frame takes the name of the
	 * answer, which may be another object's symbol or missing.
	 */
	FATHOM_VARIABLES = 1u << 1
};

/** Target of fathom_symbolize_options.compat; filled as struct fathom_options. */
struct fathom_compat_symbolize {
	size_t size;
	uint32_t flags;
	uint32_t alias; /**< enum fathom_alias */
	uint64_t reserved[4];
};

/** Bits of fathom_compat_name.flags. */
enum fathom_compat_name_flag {
	/** The language does not mangle: plain_name is also the linkage name. */
	FATHOM_NAME_UNMANGLED = 1u << 0,
	/** The language is Ada: the name is demangled by GNAT's rules. */
	FATHOM_NAME_ADA = 1u << 1
};

/** Details of a name. Strings belong to the answers; NULL: not known. */
struct fathom_compat_name {
	const char *name;         /**< as the frame or answer has it */
	const char *linkage_name; /**< as the frame or answer has it */
	const char *plain_name;   /**< DW_AT_name */
	const char *clone_suffix; /**< the end of linkage_name (".cold", ".part.0") */
	const char *decl_file;    /**< file of the declaration; NULL with FATHOM_DECLARATIONS */
	uint32_t decl_line;       /**< 0: not known */
	uint32_t name_size;       /**< bytes of name */
	uint32_t flags;           /**< FATHOM_NAME_ bits */
	uint32_t reserved;
};

/**
 * Reads details of the function name of @frame, which belongs to answers that fathom_symbolize()
 * made with fathom_symbolize_options.compat.
 *
 * Safety: mt-safe
 * Memory: writes *@ret
 * Returns: 1, or 0 when the function has no name
 */
FATHOM_API int fathom_compat_frame_name(const struct fathom_frame *frame,
					struct fathom_compat_name *ret);

/**
 * Reads details of the symbol name of answer @i of @answers, made with
 * fathom_symbolize_options.compat.
 *
 * Safety: mt-safe
 * Memory: writes *@ret
 * Returns: 1, or 0 when there is no symbol
 */
FATHOM_API int fathom_compat_symbol_name(const struct fathom_answers *answers, size_t i,
					 struct fathom_compat_name *ret);

/**
 * Finds the source file that the symbol table names for the symbol of answer @i of @answers, made
 * with fathom_symbolize_options.compat: without directory, and only if no frame has a file.
 *
 * Safety: mt-safe
 * Memory: the text belongs to @answers
 * Returns: the name, or NULL if there is none
 */
FATHOM_API const char *fathom_compat_symbol_file(const struct fathom_answers *answers, size_t i);

/**
 * Finds the text of a source file that the compiler embedded in the debug information (clang
 * -gembed-source). @address is an address as for fathom_symbolize(), @path the file of one of its
 * frames, as the answers spell it. Works for file targets only, not for processes, cores or the
 * kernel.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_text and *@ret_size, in bytes; the text lives as long as @target
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND when no text is embedded, or an empty one;
 *	FATHOM_E_MEMORY; FATHOM_E_CHANGED as fathom_target_check()
 */
FATHOM_API fathom_err fathom_target_source(struct fathom_target *target, uint64_t address,
					   const char *path, const char **ret_text,
					   size_t *ret_size, struct fathom_errinfo *reterr);

/** A symbol of a file. The name belongs to the target. */
struct fathom_symbol_info {
	const char *name; /**< as linked, possibly with a version; "" for none */
	uint64_t value;   /**< as in the table: an offset in the section in relocatable files */
	uint64_t size;    /**< bytes; 0: not stated */
	uint32_t section; /**< index of the defining section; SHN_ABS and the like | 0xffff0000 */
	uint8_t type;     /**< STT_ */
	uint8_t bind;     /**< STB_ */
	uint8_t reserved[2];
};

/**
 * Reads symbol @i of the file's own table: .symtab or, if that is empty, .dynsym. Number 0 is the
 * null symbol.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_symbol
 * Returns: FATHOM_OK or FATHOM_E_NOT_FOUND after the last one
 */
FATHOM_API fathom_err fathom_target_symbol(const struct fathom_target *target, size_t i,
					   struct fathom_symbol_info *ret_symbol);

/** Mangling schemes. */
enum fathom_mangling {
	FATHOM_MANGLING_AUTO = 0, /**< C++ or Rust, detected from the name */
	FATHOM_MANGLING_CXX = 1,  /**< C++ (Itanium ABI) */
	FATHOM_MANGLING_RUST = 2, /**< both Rust schemes */
	FATHOM_MANGLING_D = 3,
	FATHOM_MANGLING_JAVA = 4, /**< the old gcj */
	FATHOM_MANGLING_ADA = 5   /**< GNAT; other names come in angle brackets */
};

/** Bits of the flags of fathom_demangle_name(). */
enum fathom_demangle_flag {
	/** Also demangle names nested more deeply than real ones (hostile input). */
	FATHOM_DEMANGLE_DEEP = 1u << 0
};

/**
 * Writes the demangled form of @name to @buf, cut to fit @cap, always with a NUL. Names longer than
 * 16,384 bytes, or longer than 65,536 when demangled, are not demangled.
 *
 * Safety: mt-safe
 * Memory: writes at most @cap bytes to @buf
 * Returns: the length of the whole text, without the NUL; 0 when @name is not mangled by the scheme
 *	@mangling, one of enum fathom_mangling, or this build cannot demangle
 */
FATHOM_API size_t fathom_demangle_name(const char *name, uint32_t mangling, uint32_t flags,
				       char *buf, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
