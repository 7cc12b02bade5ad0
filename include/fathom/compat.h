/* SPDX-License-Identifier: MIT */
/**
 * @file
 * What programs need that have to answer as another tool does, byte for byte: GNU addr2line,
 * llvm-symbolizer. <fathom/fathom.h> does not include this header.
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
	 * Compose paths as GNU binutils 2.40 does: a relative directory is put behind the
	 * compilation directory even where it is that directory, slashes are never left out, and a
	 * file that is not known is "<unknown>".
	 */
	FATHOM_GNU_PATHS = 1u << 0,
	/**
	 * Leave the compilation directory out of paths: what is below it is relative. Where a
	 * variable is declared stays absolute.
	 */
	FATHOM_RELATIVE_PATHS = 1u << 1,
	/**
	 * Functions say where they are declared, and the start of a frame is what the debug
	 * information states as such: 0 where the code is scattered over ranges.
	 */
	FATHOM_DECLARATIONS = 1u << 2
};

/**
 * What fathom_options.compat points to; as struct fathom_options. What is stored in the index cache
 * is made without these: where any is set, FATHOM_NO_CACHE holds, too.
 */
struct fathom_compat_options {
	size_t size;
	uint32_t flags;
	uint32_t reserved1;
	/**
	 * Path of a package of split debug files (.dwp), for all files instead of the one beside
	 * each; default: that one.
	 */
	const char *dwp;
	uint64_t reserved[4];
};

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

/** Bits of fathom_compat_symbolize.flags. */
enum fathom_compat_symbolize_flag {
	/** The outermost frame is called what the debug information calls it, not the symbol. */
	FATHOM_DWARF_NAMES = 1u << 0,
	/**
	 * Addresses of variables, too, have a frame: where the variable is declared. All debug
	 * information is read for that, once per target. Only variables that a symbol names; with
	 * FATHOM_ALIAS_GNU only at their first byte, and the frame is called as the answer is,
	 * which may be by the symbol of something else, or not at all.
	 */
	FATHOM_VARIABLES = 1u << 1
};

/** What fathom_symbolize_options.compat points to; as struct fathom_options. */
struct fathom_compat_symbolize {
	size_t size;
	uint32_t flags;
	uint32_t alias; /**< enum fathom_alias */
	uint64_t reserved[4];
};

/** Bits of fathom_compat_name.flags. */
enum fathom_compat_name_flag {
	/** The language does not mangle: plain_name is what the compiler calls the symbol, too. */
	FATHOM_NAME_UNMANGLED = 1u << 0,
	/** The language is Ada: the name is demangled by GNAT's rules. */
	FATHOM_NAME_ADA = 1u << 1
};

/** What else is known of a name. Strings belong to the answers; NULL: not known. */
struct fathom_compat_name {
	const char *name;         /**< as the frame or answer has it */
	const char *linkage_name; /**< as the frame or answer has it */
	const char *plain_name;   /**< DW_AT_name */
	const char *clone_suffix; /**< the end of linkage_name (".cold", ".part.0") */
	const char *decl_file;    /**< of its declaration, but with FATHOM_DECLARATIONS NULL */
	uint32_t decl_line;       /**< 0: not known */
	uint32_t name_size;       /**< bytes of name */
	uint32_t flags;           /**< FATHOM_NAME_ bits */
	uint32_t reserved;
};

/**
 * Says what else is known of the function of @frame, one of answers that fathom_symbolize() made
 * with fathom_symbolize_options.compat.
 *
 * Safety: mt-safe
 * Memory: writes *@ret
 * Returns: 1, or 0 when the function has no name
 */
FATHOM_API int fathom_compat_frame_name(const struct fathom_frame *frame,
					struct fathom_compat_name *ret);

/**
 * Says what else is known of the symbol of answer @i of @answers, made with
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
 * with fathom_symbolize_options.compat: without directory, and only where no frame says more.
 *
 * Safety: mt-safe
 * Memory: the text belongs to @answers
 * Returns: the name, NULL where there is none
 */
FATHOM_API const char *fathom_compat_symbol_file(const struct fathom_answers *answers, size_t i);

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

/** A symbol of a file. The name belongs to the target. */
struct fathom_symbol_info {
	const char *name; /**< as linked, a version may follow; "" for none */
	uint64_t value;   /**< as the table states it: in relocatable files, in the section */
	uint64_t size;    /**< bytes; 0: not stated */
	uint32_t section; /**< of the section it is defined in; SHN_ABS and such | 0xffff0000 */
	uint8_t type;     /**< STT_ */
	uint8_t bind;     /**< STB_ */
	uint8_t reserved[2];
};

/**
 * Symbol @i of the file's own table, .symtab or, where that is empty, .dynsym: number 0 is none.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_symbol
 * Returns: FATHOM_OK or FATHOM_E_NOT_FOUND behind the last one
 */
FATHOM_API fathom_err fathom_target_symbol(const struct fathom_target *target, size_t i,
					   struct fathom_symbol_info *ret_symbol);

/** Schemes that names are mangled by. */
enum fathom_mangling {
	FATHOM_MANGLING_AUTO = 0, /**< C++ and Rust: what tells itself by the name */
	FATHOM_MANGLING_CXX = 1,  /**< C++ (Itanium ABI) */
	FATHOM_MANGLING_RUST = 2, /**< both of Rust's schemes */
	FATHOM_MANGLING_D = 3,
	FATHOM_MANGLING_JAVA = 4, /**< of the old gcj */
	FATHOM_MANGLING_ADA = 5   /**< of GNAT: what is none of its names comes in angle brackets */
};

/** Bits of the flags of fathom_demangle_name(). */
enum fathom_demangle_flag {
	/** Demangle names that are nested as deeply as only an attacker's are, too. */
	FATHOM_DEMANGLE_DEEP = 1u << 0
};

/**
 * Writes the demangled form of @name to @buf, with a NUL, when @cap is enough for both; else cut,
 * with a NUL. Names of more than 16,384 bytes, and what would become longer than 65,536, are not
 * demangled.
 *
 * Safety: mt-safe
 * Memory: writes at most @cap bytes to @buf
 * Returns: the length of the whole text, without the NUL; 0 when @name is not mangled by @mangling,
 *	one of enum fathom_mangling, or this build cannot demangle
 */
FATHOM_API size_t fathom_demangle_name(const char *name, uint32_t mangling, uint32_t flags,
				       char *buf, size_t cap);

#ifdef __cplusplus
}
#endif

#endif
