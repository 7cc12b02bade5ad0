/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Addresses in the text of logs: stack traces of sanitizers, of the kernel, of C libraries and
 * runtimes, as people copy them into tickets.
 *
 * One instruction of one library has several numbers in logs: its stated address, its distance from
 * the library's first mapping, its offset in the file. And a number can be that of the instruction,
 * of the one after a call, or of a place within the call. What it is follows from the format of the
 * line, never from the size of the number.
 */
#ifndef FATHOM_FILTER_H
#define FATHOM_FILTER_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/session.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A reader of one log. Opaque. It remembers the modules that the log has named. */
struct fathom_log_filter;

/** Options of a log filter; as struct fathom_options. */
struct fathom_log_filter_options {
	size_t size;
	uint32_t flags; /**< none yet: 0 */
	/** Milliseconds for all that one call asks of the stores; default 10,000. */
	uint32_t store_timeout_ms;
	/**
	 * The target of addresses without a module, and of modules that have the name of its file;
	 * NULL: such addresses have no answer. The filter holds it.
	 */
	struct fathom_target *target;
	/**
	 * Directories with files that a log names without a path, NULL-terminated; NULL: none
	 */
	const char *const *module_dirs;
	/** Where debug files are, and the sysroot, which is prepended to paths in the log. */
	const struct fathom_target_options *where;
	/**
	 * Path of a copy of /proc/PID/maps of the log's process: addresses in memory without a
	 * module are in its files; NULL: none
	 */
	const char *maps;
	/** Stores of indexes, as fathom_store_open() takes them, NULL-terminated; NULL: none */
	const char *const *stores;
	uint64_t reserved[2];
};

/** Kinds of numbers in a log: how far a number is from the instruction that it is about. */
enum fathom_log_kind {
	FATHOM_LOG_EXACT = 0,  /**< that of the instruction */
	FATHOM_LOG_RETURN = 1, /**< a return address: the instruction after the call */
	FATHOM_LOG_LOWERED = 2 /**< lowered already: a place within the call, or the instruction */
};

/** Kinds of places that numbers in a log count from. */
enum fathom_log_base {
	FATHOM_LOG_STATED = 0,        /**< none: an address as stated in the ELF file */
	FATHOM_LOG_FILE_OFFSET = 1,   /**< the start of the file */
	FATHOM_LOG_FIRST_MAPPING = 2, /**< where the module's first mapping was */
	FATHOM_LOG_CODE_MAPPING = 3,  /**< where its mapping with code was */
	FATHOM_LOG_LIVE = 4,          /**< none: an address in memory */
	FATHOM_LOG_SYMBOL = 5,        /**< the symbol that the log names */
	FATHOM_LOG_MAPPED = 6         /**< none: an address in memory whose module is known */
};

/** One address of a log. It points into the text that was read. */
struct fathom_log_address {
	size_t at;          /**< of the number's first byte in the text */
	size_t size;        /**< bytes of the number, with 0x */
	size_t line_start;  /**< of its line in the text */
	size_t line_end;    /**< of LF, CRLF, or the end of the text, after the line */
	uint64_t line;      /**< number of the line in the log; the first is 1 */
	uint64_t number;    /**< as in the log; without its symbol */
	const char *format; /**< such as "sanitizer" */
	const char *module; /**< as the log names it, without a NUL; NULL: the target */
	size_t module_size; /**< bytes of module */
	const char *symbol; /**< of FATHOM_LOG_SYMBOL, without a NUL; else NULL */
	size_t symbol_size; /**< bytes of symbol */
	uint8_t kind;       /**< enum fathom_log_kind */
	uint8_t base;       /**< enum fathom_log_base */
	uint8_t is_by_path; /**< 1: nothing but its name says that the module is this file */
	uint8_t reason;     /**< enum fathom_reason: why there is no answer */
	uint8_t is_guessed; /**< 1: where its module was in memory is a guess; all else fails */
	uint8_t reserved[3];
	const struct fathom_answer *answer; /**< NULL: there is none */
	/**
	 * The target that @ref answer is of: the file of its module, or that of the options; NULL
	 * without an answer. It belongs to the filter and lives until the next call with it.
	 */
	struct fathom_target *target;
};

/** The addresses of some lines. Opaque. */
struct fathom_log_addresses;

/**
 * Creates a filter of one log. @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_filter is the caller's, to be destroyed with fathom_log_filter_destroy()
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know;
 *	FATHOM_E_MEMORY; as fathom_store_open()
 */
FATHOM_API fathom_err fathom_log_filter_create(struct fathom *session,
					       const struct fathom_log_filter_options *options,
					       struct fathom_log_filter **ret_filter,
					       struct fathom_errinfo *reterr);

/**
 * Destroys @filter, which may be NULL.
 *
 * Safety: mt-safe per object
 * Memory: frees @filter and closes its files; addresses that it has found stay
 * Returns: nothing
 */
FATHOM_API void fathom_log_filter_destroy(struct fathom_log_filter *filter);

/**
 * Reads the next lines of the log, @size bytes at @text, and finds and names their addresses. All
 * lines must be whole, but the log's last one may lack its end. Lines may hold any bytes; of long
 * ones the first 65,536 are looked at.
 *
 * A number is taken for an address only where a format says what it means. What a module is called
 * leads to its file: by the build-id in the log, below the debug directories, or in a store; by its
 * path; by the last part of that, in the module directories; by that of the target. A file whose
 * build-id is not the log's is refused. So is one that is known by name alone, if the instruction
 * before a return address of the log is no call there, or no call of a stack leads to the frame
 * inside of it: the answers of such a module have the reason FATHOM_REASON_BUILD_ID_MISMATCH.
 *
 * Addresses in memory are in the modules that lines of the same report place: maps, and lines that
 * have one place both in memory and in a module. A report that is read at once is known as a whole.
 * For stacks of gdb, Rust and valgrind of which nothing tells that, the one place is guessed at
 * which all return addresses are after calls of the file.
 *
 * A symbol of several functions has as many addresses, unless the log tells their size. They
 * are in the order of the text.
 *
 * Safety: mt-safe per object
 * Memory: *@ret_addresses is the caller's, to be freed with fathom_log_addresses_free(); they
 *	point into @text
 * Returns: FATHOM_OK, also if there are none, or a file or the target cannot be read any more;
 *	FATHOM_E_MEMORY; FATHOM_E_CANCELLED
 */
FATHOM_API fathom_err fathom_log_filter_read(struct fathom_log_filter *filter, const char *text,
					     size_t size,
					     struct fathom_log_addresses **ret_addresses,
					     struct fathom_errinfo *reterr);

/**
 * Returns how many of the @size bytes at @text, whole lines, are best read now. The others, the
 * last ones, are of a report that has not ended: lines after them may tell where its modules were
 * in memory. Ask again with what follows, and read all when nothing has come for a second, or the
 * log has ended. No more than 256 KiB wait.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: a number of bytes up to @size, whole lines
 */
FATHOM_API size_t fathom_log_filter_ready(const struct fathom_log_filter *filter, const char *text,
					  size_t size);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of addresses
 */
FATHOM_API size_t fathom_log_addresses_count(const struct fathom_log_addresses *addresses);

/**
 * Returns address @i, below fathom_log_addresses_count().
 *
 * Safety: mt-safe
 * Memory: the address belongs to @addresses
 * Returns: the address
 */
FATHOM_API const struct fathom_log_address *fathom_log_addresses_get(
	const struct fathom_log_addresses *addresses, size_t i);

/**
 * Frees @addresses, which may be NULL.
 *
 * Safety: neither
 * Memory: frees @addresses and their answers
 * Returns: nothing
 */
FATHOM_API void fathom_log_addresses_free(struct fathom_log_addresses *addresses);

/**
 * Returns the word for a kind, such as "lowered"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_log_kind_name(enum fathom_log_kind kind);

/**
 * Returns the word for a base, such as "file-offset"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_log_base_name(enum fathom_log_base base);

#ifdef __cplusplus
}
#endif

#endif
