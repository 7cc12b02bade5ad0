/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Options of a trace as command lines state them. One table serves `fathom trace` and
 * fathom_trace_start(); a program with a command line of its own can take the same options.
 */
#ifndef FATHOM_TRACE_OPTIONS_H
#define FATHOM_TRACE_OPTIONS_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bits of fathom_trace_option.flags. */
enum fathom_trace_option_flag {
	FATHOM_TRACE_OPTION_COMMAND = 1u << 0, /**< `fathom trace` takes it */
	FATHOM_TRACE_OPTION_SELF = 1u << 1     /**< fathom_trace_start() takes it */
};

/** One option. */
struct fathom_trace_option {
	const char *name;     /**< "depth" of "--depth"; NULL: the option is a letter */
	const char *argument; /**< as help shows it: "N"; "[=SET]" is optional; NULL: none */
	/** Its help, in a few words; NULL: it is an older name of the one before. */
	const char *help;
	const char *refusal; /**< why an argument is refused: "is not full, sparse or none" */
	uint32_t limit;      /**< the largest number, where one from 1 on is wanted; else 0 */
	uint16_t letter;     /**< 'c' of "-c"; 0: none */
	uint16_t flags;      /**< FATHOM_TRACE_OPTION_ */
};

/** Bits of fathom_trace_settings.flags. */
enum fathom_trace_settings_flag {
	FATHOM_TRACE_SETTINGS_COUNTS = 1u << 0,   /**< count the calls of each function */
	FATHOM_TRACE_SETTINGS_JSON = 1u << 1,     /**< write JSON Lines, if no format is named */
	FATHOM_TRACE_SETTINGS_DURATIONS = 1u << 2 /**< write how long system calls took */
};

struct fathom_trace_options;
struct fathom_trace_syscalls;

/** Settings that options make; as struct fathom_options. Arguments must outlive them. */
struct fathom_trace_settings {
	size_t size;
	struct fathom_trace_options *options; /**< what to record; not NULL */
	/**
	 * How to record system calls; not NULL. An option that wants them stores it in options.
	 */
	struct fathom_trace_syscalls *syscalls;
	const char *log;            /**< file to write to; NULL: none is named */
	const char *const *threads; /**< numbers or names of the threads to report; NULL: all */
	size_t n_threads;
	uint32_t format; /**< enum fathom_trace_format; 0: none is named */
	uint32_t last;   /**< number of last events to keep; 0: all are written at once */
	uint32_t flags;  /**< FATHOM_TRACE_SETTINGS_ */
	uint32_t reserved1;
	uint64_t reserved[4];
};

/**
 * Returns option @i, or NULL past the last one.
 *
 * Safety: mt-safe
 * Memory: the option is static
 * Returns: NULL at the end
 */
FATHOM_API const struct fathom_trace_option *fathom_trace_option_get(size_t i);

/**
 * Stores what @option, one of fathom_trace_option_get(), says with @argument in @settings.
 * @argument is NULL if there is none.
 *
 * Safety: mt-safe per object
 * Memory: fathom_trace_settings_free() frees what @settings then holds
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT if @argument is refused; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_trace_option_take(const struct fathom_trace_option *option,
					       const char *argument,
					       struct fathom_trace_settings *settings);

/**
 * Completes @settings when all options are taken: chooses a format if none is named, and sets the
 * FATHOM_TRACE_ flags of the options that follow from it and from the last events to keep.
 *
 * Safety: mt-safe per object
 * Memory: none
 * Returns: nothing
 */
FATHOM_API void fathom_trace_settings_complete(struct fathom_trace_settings *settings);

/**
 * Safety: mt-safe per object
 * Memory: frees the lists that options have made in @settings, its options and its syscalls
 * Returns: nothing
 */
FATHOM_API void fathom_trace_settings_free(struct fathom_trace_settings *settings);

#ifdef __cplusplus
}
#endif

#endif
