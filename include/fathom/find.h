/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Search: from names, patterns and lines to addresses.
 *
 * A query is a text:
 *
 *	[LIBRARY:]NAME[@VERSION]     a symbol
 *	[LIBRARY:]/EXPRESSION/       symbols, by a POSIX extended regular expression (regex(7))
 *	[LIBRARY:]FILE:LINE          the code of a line; FILE is a path suffix of whole parts
 *
 * NAME is a linkage name, or a demangled name with or without its parameters; spaces do not count.
 * Demangled names are searched only if no linkage name matches: `get` finds `get(int)`, but only
 * `jit::Runtime::get` finds a function of that name. A NAME with `*`, `?` or `[` is a pattern
 * (glob(7)), unless it has a parenthesis or the word "operator". Patterns and expressions are
 * compared with the linkage name and with the demangled name, with and without parameters;
 * expressions may match anywhere in it.
 *
 * LIBRARY is the text before the first single colon, unless that colon precedes a line number. It
 * is a pattern for the last part of the module's path, for its soname or, if it has a slash, for
 * the whole path. A module without a path has a word in brackets, which may be omitted: "[vdso]",
 * "[kernel]", and "[jit]" for JIT code. VERSION is a pattern for the symbol's version. After "@@"
 * only default versions match. In a process, a VERSION that is not a pattern also matches symbols
 * of libraries without any versions, as in dlvsym().
 */
#ifndef FATHOM_FIND_H
#define FATHOM_FIND_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of fathom_find_options.flags. */
enum fathom_find_flag {
	/** Take each query as a regular expression, without slashes or library. */
	FATHOM_FIND_REGEX = 1u << 0,
	/** Take each query as a literal name: no pattern, library, version or line. */
	FATHOM_FIND_LITERAL = 1u << 1,
	/** Search the debug information for every inlined copy of the functions. */
	FATHOM_FIND_INLINED = 1u << 2,
	/** Find only what the dynamic linker could find; in the kernel, only non-static symbols. */
	FATHOM_FIND_EXPORTED = 1u << 3,
	/** Compare exact names with linkage names only, not with demangled names. */
	FATHOM_FIND_LINKED = 1u << 4
};

/** Options of one search; as struct fathom_options. */
struct fathom_find_options {
	size_t size;
	uint32_t flags;
	/**
	 * Maximum number of matches of one query; default 1,000,000. If there are more, they are
	 * left out and a note says so. With 1, only hash tables are read for names that the dynamic
	 * linker knows.
	 */
	uint32_t limit;
	/**
	 * For TLS symbols in processes and cores: report only this thread's copy (see
	 * fathom_match.tid); 0: the copies of all threads.
	 */
	int32_t tid;
	uint32_t reserved_tid; /**< 0 */
	uint64_t reserved[3];
};

/** The symbol table of a match. */
enum fathom_table {
	FATHOM_TABLE_NONE = 0, /**< none: debug information or JIT code */
	FATHOM_TABLE_DYNSYM = 1,
	FATHOM_TABLE_SYMTAB = 2,
	FATHOM_TABLE_MINIDEBUGINFO = 3,
	FATHOM_TABLE_DEBUG = 4,    /**< .symtab of a debug file */
	FATHOM_TABLE_KALLSYMS = 5, /**< the running kernel's own table */
	FATHOM_TABLE_GOPCLNTAB = 6 /**< of a stripped Go program */
};

/** Bits of fathom_match.flags. */
enum fathom_match_flag {
	/** address is valid. */
	FATHOM_MATCH_ADDRESS = 1u << 0,
	/** version is the default version: "@@", not "@". */
	FATHOM_MATCH_DEFAULT_VERSION = 1u << 1,
	/** A resolved IFUNC: address is the chosen function, resolver the symbol's own address. */
	FATHOM_MATCH_RESOLVED = 1u << 2
};

/** Kinds of matches. */
enum fathom_match_kind {
	FATHOM_MATCH_SYMBOL = 0,
	FATHOM_MATCH_LINE = 1,   /**< a code range of a line; name is the function's */
	FATHOM_MATCH_INLINED = 2 /**< an inlined copy of a function */
};

/** Value of fathom_match.rank: nothing was found. */
#define FATHOM_NO_RANK UINT32_MAX

/**
 * One match of a query; or, with reason set and module NULL, the statement that there is none.
 * Strings belong to the matches; NULL: not known.
 */
struct fathom_match {
	uint64_t address;         /**< as for fathom_symbolize(); see FATHOM_MATCH_ADDRESS */
	uint64_t module_address;  /**< ELF address; TLS symbols: offset in the TLS block;
				     FATHOM_NO_ADDRESS without the file */
	uint64_t size;            /**< bytes; 0: not stated */
	uint64_t resolver;        /**< address of the IFUNC itself, else 0 */
	const char *name;         /**< demangled */
	const char *linkage_name; /**< as linked, without version */
	const char *version;
	const char *module; /**< path of the file */
	/**
	 * Line: the function of the code, with file and line. Inlined copy: the copy, without a
	 * line; its outer frame is the function that it is inlined into, with file and line of the
	 * call. That function may be inlined itself, but there are no further frames. Symbol: NULL.
	 */
	const struct fathom_frame *frame;
	uint32_t query; /**< index of the query */
	/**
	 * Position among the matches of one query with one name. Rank 0 is the symbol that the
	 * dynamic linker binds: dlsym(RTLD_DEFAULT) in that process, or dlsym() in the library that
	 * the query names or that the target is. If the dynamic linker finds none, the first match
	 * has rank 1.
	 */
	uint32_t rank;
	int32_t tid;     /**< TLS symbols: the thread that owns this copy; else 0 */
	uint8_t type;    /**< STT_ of elf.h */
	uint8_t binding; /**< STB_ */
	uint8_t table;   /**< enum fathom_table */
	uint8_t source;  /**< enum fathom_source */
	uint8_t reason;  /**< enum fathom_reason: why there is no match, or no address */
	uint8_t flags;   /**< FATHOM_MATCH_ */
	uint8_t kind;    /**< enum fathom_match_kind */
	uint8_t reserved[1];
};

/** The matches of one search. Opaque; independent of the target once made. */
struct fathom_matches;

/**
 * Searches for @n queries. Matches are sorted by query, then by name, rank and address. A query
 * that finds nothing has one match that says why.
 *
 * Exact names are found through the dynamic linker's hash tables, and by one pass over the other
 * symbol tables. In a process, all modules of all dlmopen() namespaces are searched. What an IFUNC
 * resolved to is read from the slots of the modules that use it. A TLS symbol has one match per
 * thread that has a copy: the main thread first, then the others by number. If the dynamic linker's
 * choice depends on STB_GNU_UNIQUE symbols of libraries opened with RTLD_LOCAL, it is not known,
 * and no match has rank 0.
 *
 * The rule of ranks holds wherever a name is given: `fathom addr` and `fathom disasm` take the
 * first match, too. Symbols with one name are ranked in this order:
 *
 *	1. the symbol that the dynamic linker binds (rank 0);
 *	2. others that it could bind: exported in .dynsym, other versions;
 *	3. then global, weak, and local symbols of the other tables;
 *	4. of these, in the order in which the dynamic linker searches their modules, then those
 *	   of modules that it does not search, in the order of addresses;
 *	5. then in the order of their addresses.
 *
 * Kernel names come from /proc/kallsyms, with sizes and types from the files of the image and the
 * modules; then come names that only the image's file has. The kernel has no dynamic linker, so the
 * first match has rank 1: symbols of the image come before those of modules, and within each,
 * global before weak and local. If no file is found, module_address is FATHOM_NO_ADDRESS.
 *
 * Safety: mt-safe
 * Memory: *@ret_matches is the caller's, to be freed with fathom_matches_free()
 * Returns: FATHOM_OK, also when nothing is found: an invalid query has the reason
 *	FATHOM_REASON_BAD_ADDRESS, and a note says why; FATHOM_E_ARGUMENT for options, a thread of a
 *	target that has none, or more than 2^20 queries; FATHOM_E_LIMIT when the matches do not fit
 *	the memory budget, which they count against until the search ends; FATHOM_E_MEMORY; for a
 *	process also what fathom_target_open_process() returns, for the kernel what
 *	fathom_target_open_kernel() returns
 */
FATHOM_API fathom_err fathom_find(struct fathom_target *target,
				  const struct fathom_find_options *options,
				  const char *const *queries, size_t n,
				  struct fathom_matches **ret_matches,
				  struct fathom_errinfo *reterr);

/**
 * Safety: neither
 * Memory: frees @matches, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_matches_free(struct fathom_matches *matches);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of matches, including those that only say why there is none
 */
FATHOM_API size_t fathom_matches_count(const struct fathom_matches *matches);

/**
 * Safety: mt-safe
 * Memory: the match belongs to @matches
 * Returns: match @i, which must be below the count
 */
FATHOM_API const struct fathom_match *fathom_matches_get(const struct fathom_matches *matches,
							 size_t i);

/**
 * Finds the address of the symbol called @name: NAME or NAME@VERSION as in queries above, but never
 * a pattern, library or line. The address is that of fathom_find()'s first match.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_address
 * Returns: FATHOM_OK or FATHOM_E_NOT_FOUND; FATHOM_E_OS when the kernel hides its addresses; else
 *	what fathom_target_find_symbols() returns
 */
FATHOM_API fathom_err fathom_target_find_symbol(struct fathom_target *target, const char *name,
						uint64_t *ret_address);

/**
 * Finds the addresses of @n @names, at most 2^31 - 1, in one pass over the symbol tables, as
 * fathom_target_find_symbol() does. @flags: 0 or FATHOM_FIND_LINKED. For name i, @ret_reasons[i] is
 * FATHOM_REASON_NONE if @ret_addresses[i] is valid; else FATHOM_REASON_NO_SUCH_SYMBOL, also if the
 * symbol has no address (a TLS symbol of a file); FATHOM_REASON_UNSUPPORTED or _UNMAPPED if the
 * address of an IFUNC or a TLS symbol in a process is not known; FATHOM_REASON_CHANGED; or
 * FATHOM_REASON_NO_PERMISSION if the kernel hides its addresses.
 *
 * Safety: mt-safe
 * Memory: writes up to @n addresses and @n reasons
 * Returns: FATHOM_OK, also when no name was found; else what fathom_find() returns
 */
FATHOM_API fathom_err fathom_target_find_symbols(struct fathom_target *target, uint32_t flags,
						 const char *const *names, size_t n,
						 uint64_t *ret_addresses, uint8_t *ret_reasons,
						 struct fathom_errinfo *reterr);

/** Receives one @address of name @i; called in the order of the names. */
typedef void (*fathom_symbol_fn)(void *data, size_t i, uint64_t address);

/**
 * Calls @fn for every address of every name. A name has several addresses if it names several
 * functions of one module: static functions of several source files, or overloads. The first
 * address is the one that fathom_target_find_symbols() finds.
 *
 * Safety: mt-safe; @fn is called by this thread
 * Memory: writes up to @n reasons
 * Returns: what fathom_target_find_symbols() returns; after an error, @fn was not called
 */
FATHOM_API fathom_err fathom_target_find_all_symbols(struct fathom_target *target, uint32_t flags,
						     const char *const *names, size_t n,
						     uint8_t *ret_reasons, fathom_symbol_fn fn,
						     void *data, struct fathom_errinfo *reterr);

/**
 * Returns the word for a table, such as "dynsym"; "" for FATHOM_TABLE_NONE and unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_table_name(enum fathom_table table);

#ifdef __cplusplus
}
#endif

#endif
