/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Where is this name: from names, patterns and lines to addresses; and what stands there.
 *
 * A query is a text:
 *
 *	[LIBRARY:]NAME[@VERSION]     a symbol
 *	[LIBRARY:]/EXPRESSION/       symbols, by a POSIX extended regular expression (regex(7))
 *	[LIBRARY:]FILE:LINE          the code of a line; FILE is whole parts of a path's end
 *
 * NAME is what a symbol is linked as, or that demangled, with its parameters or without; spaces do
 * not count. A name that nothing is linked as is looked for among the demangled ones, too: `get`
 * finds `get(int)`; it takes `jit::Runtime::get` to find that. Where `*`, `?` or `[` stand in a
 * NAME that has no parenthesis and not the word "operator", it is a pattern (glob(7)). Patterns and
 * expressions are compared with both forms of a name, the demangled with and without parameters;
 * expressions may match anywhere in it.
 *
 * LIBRARY is what stands before the first colon that has no other beside it, if that is no
 * number's: a pattern for the last part of the module's path, for its soname or, with a slash in
 * it, for the whole path. What has no path is called by a word in brackets, which may be left out:
 * "[vdso]", "[kernel]", and "[jit]" for code that the program has made itself.
 * VERSION is a pattern for the symbol's version; after "@@" only symbols match of which that is the
 * default one. In a process one that is no pattern also takes symbols of libraries that have no
 * versions at all, as dlvsym() does.
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
	/** Queries are regular expressions as they stand, without slashes or library. */
	FATHOM_FIND_REGEX = 1u << 0,
	/** Queries are names as they stand: no pattern, library, version or line. */
	FATHOM_FIND_LITERAL = 1u << 1,
	/** What is looked for is every inlined copy of functions, in the debug information. */
	FATHOM_FIND_INLINED = 1u << 2,
	/** Only what the dynamic linker could find, in the kernel what is not static. */
	FATHOM_FIND_EXPORTED = 1u << 3,
	/** Exact names are those that symbols are linked as: they are not compared demangled. */
	FATHOM_FIND_LINKED = 1u << 4
};

/** Options of one search; as struct fathom_options. */
struct fathom_find_options {
	size_t size;
	uint32_t flags;
	/**
	 * Matches of one query, at most; default 1,000,000: that there are more than these, which
	 * are left out, is a note. With 1, nothing but hash tables is read for names that the
	 * dynamic linker knows.
	 */
	uint32_t limit;
	/**
	 * Of TLS symbols in processes and cores only the copy of the thread with this number, as
	 * fathom_match.tid has it; 0: those of all threads.
	 */
	int32_t tid;
	uint32_t reserved_tid; /**< 0 */
	uint64_t reserved[3];
};

/** The table of a file that a match stands in. */
enum fathom_table {
	FATHOM_TABLE_NONE = 0, /**< none: the debug information, or code that the program made */
	FATHOM_TABLE_DYNSYM = 1,
	FATHOM_TABLE_SYMTAB = 2,
	FATHOM_TABLE_MINIDEBUGINFO = 3,
	FATHOM_TABLE_DEBUG = 4,   /**< .symtab of a debug file */
	FATHOM_TABLE_KALLSYMS = 5 /**< the running kernel's own table */
};

/** Bits of fathom_match.flags. */
enum fathom_match_flag {
	/** address holds. */
	FATHOM_MATCH_ADDRESS = 1u << 0,
	/** version is what a program gets that names none: "@@", not "@". */
	FATHOM_MATCH_DEFAULT_VERSION = 1u << 1,
	/** An IFUNC that was resolved: address is what was chosen, resolver the symbol's own. */
	FATHOM_MATCH_RESOLVED = 1u << 2
};

/** What a match is. */
enum fathom_match_kind {
	FATHOM_MATCH_SYMBOL = 0,
	FATHOM_MATCH_LINE = 1,   /**< a stretch of code of a line; name is the function's */
	FATHOM_MATCH_INLINED = 2 /**< a copy of a function */
};

/** A value of fathom_match.rank: nothing was found. */
#define FATHOM_NO_RANK UINT32_MAX

/**
 * One place that a query leads to; or, with reason and without a module, that there is none.
 * Strings belong to the matches, and are NULL where there is nothing to say.
 */
struct fathom_match {
	uint64_t address;         /**< as fathom_symbolize() takes it; see FATHOM_MATCH_ADDRESS */
	uint64_t module_address;  /**< as stated in the ELF; of a TLS symbol, in the TLS block;
				       FATHOM_NO_ADDRESS without the file */
	uint64_t size;            /**< bytes; 0: not stated */
	uint64_t resolver;        /**< of an IFUNC, its address, else 0 */
	const char *name;         /**< demangled */
	const char *linkage_name; /**< as linked, without version */
	const char *version;
	const char *module; /**< path of the file */
	/**
	 * Of a line: the function that has it, with file and line. Of an inlined copy: the copy,
	 * without a line, and as outer the function that it is inlined into, with file and line of
	 * the call, which may be inlined itself: no frame further out is told. Of a symbol NULL.
	 */
	const struct fathom_frame *frame;
	uint32_t query; /**< number of the query */
	/**
	 * Its place among the matches of one query with one name. 0 is what the dynamic linker
	 * answers: dlsym(RTLD_DEFAULT) in that process, or dlsym() of the library that the query
	 * names or that the target is. Where it would find none, the first match has rank 1.
	 */
	uint32_t rank;
	int32_t tid;     /**< of a TLS symbol: the thread whose copy this is; else 0 */
	uint8_t type;    /**< STT_ of elf.h */
	uint8_t binding; /**< STB_ */
	uint8_t table;   /**< enum fathom_table */
	uint8_t source;  /**< enum fathom_source */
	uint8_t reason;  /**< enum fathom_reason: why there is no match, or no address */
	uint8_t flags;   /**< FATHOM_MATCH_ */
	uint8_t kind;    /**< enum fathom_match_kind */
	uint8_t reserved[1];
};

/** What was found. Opaque; independent of the target once made. */
struct fathom_matches;

/**
 * Looks for @n queries. Matches stand in the order of the queries, those of one query in that of
 * their names and ranks, then of addresses; a query without a match has one that says why.
 *
 * An exact name is answered from the hash tables of the dynamic linker, and by one pass over the
 * other symbol tables. In a process all modules are searched, of all namespaces of dlmopen(); for
 * an IFUNC, what it was resolved to is read from the slots of the modules that use it; a TLS symbol
 * has one match for each thread that has its copy: the main thread's first, then those of the
 * others by their numbers. Not known, and so never of rank 0, is the answer
 * where it depends on STB_GNU_UNIQUE symbols of libraries opened with RTLD_LOCAL.
 *
 * The rule of ranks, for whatever takes a name: `fathom addr` and `fathom disasm` take the first
 * match, too. Of the symbols with one name,
 *
 *	1. that which the dynamic linker answers (rank 0);
 *	2. others that it could: exported in .dynsym, other versions;
 *	3. then global, weak, and local symbols of the other tables;
 *	4. of these, in the order in which the dynamic linker searches their modules, then those
 *	   of modules that it does not search, in the order of addresses;
 *	5. then in the order of their addresses.
 *
 * In the kernel, names are those of /proc/kallsyms, with what the image's and the modules' files
 * say of their sizes and types, and then those that only the image's file has. No dynamic linker
 * answers there: the first match has rank 1, the image's symbols before modules', and of each
 * global ones before weak and local ones. Where no file is found, module_address is
 * FATHOM_NO_ADDRESS.
 *
 * Safety: mt-safe
 * Memory: *@ret_matches is the caller's, to be freed with fathom_matches_free()
 * Returns: FATHOM_OK, also when nothing is found: a query that is none has the reason
 *	FATHOM_REASON_BAD_ADDRESS, and a note says why; FATHOM_E_ARGUMENT for options, a thread of a
 *	target that has none, or more than 2^20 queries; FATHOM_E_LIMIT when what the queries find
 *	does not fit the memory budget, which it counts against until the search ends;
 *	FATHOM_E_MEMORY; of a process also what fathom_target_open_process() returns, of the kernel
 *	what fathom_target_open_kernel() does
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
 * Returns: the number of matches, those that only say why there is none included
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
 * Finds the address of the symbol called @name, NAME or NAME@VERSION as in queries above; nothing
 * in it is a pattern, a library or a line. It is that of the first match that fathom_find() has.
 *
 * Safety: mt-safe
 * Memory: writes *@ret_address
 * Returns: FATHOM_OK or FATHOM_E_NOT_FOUND; of the kernel FATHOM_E_OS when it shows no addresses;
 *	else what fathom_target_find_symbols() returns
 */
FATHOM_API fathom_err fathom_target_find_symbol(struct fathom_target *target, const char *name,
						uint64_t *ret_address);

/**
 * Does the same for @n @names at once, at most 2^31 - 1, in one pass over the symbol tables.
 * @flags: 0 or FATHOM_FIND_LINKED. Of name i, @ret_reasons[i] is FATHOM_REASON_NONE where
 * @ret_addresses[i] holds; else FATHOM_REASON_NO_SUCH_SYMBOL, also where a symbol has no address (a
 * TLS symbol of a file); FATHOM_REASON_UNSUPPORTED or _UNMAPPED of an IFUNC or a TLS symbol in a
 * process whose place is not known; FATHOM_REASON_CHANGED; or FATHOM_REASON_NO_PERMISSION of a
 * kernel that shows no addresses (enum fathom_reason).
 *
 * Safety: mt-safe
 * Memory: writes up to @n addresses and @n reasons
 * Returns: FATHOM_OK, also when no name was found; else what fathom_find() returns
 */
FATHOM_API fathom_err fathom_target_find_symbols(struct fathom_target *target, uint32_t flags,
						 const char *const *names, size_t n,
						 uint64_t *ret_addresses, uint8_t *ret_reasons,
						 struct fathom_errinfo *reterr);

/** Takes one @address of name @i; called in the order of the names. */
typedef void (*fathom_symbol_fn)(void *data, size_t i, uint64_t address);

/**
 * Does the same, and calls @fn for every address of a name that stands for several functions:
 * static ones of several source files, of one module, and overloaded ones. The first is that of
 * fathom_target_find_symbols(); of any other name it is the only one.
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
 * The word for a table, such as "dynsym"; "" for FATHOM_TABLE_NONE and what is unknown.
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
