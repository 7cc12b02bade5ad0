/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The calling process: after one preparing call, any thread and any signal handler can name any
 * address of the program and its libraries.
 *
 * Preparing opens files, allocates and takes locks. Lookups do none of that: they search the
 * prepared tables, and read other memory only in ways that cannot fault. In ten lines:
 * @code
 *	fathom_create(NULL, &session, NULL);
 *	fathom_self_prepare(session, NULL, &self, NULL);
 *	...
 *	void handler(int number, siginfo_t *info, void *context)
 *	{
 *		char line[512];
 *		size_t size = fathom_self_format(self, line, sizeof line, "%G at %t%n", number,
 *						 info->si_addr);
 *		(void)write(2, line, size < sizeof line ? size : sizeof line - 1);
 *	}
 * @endcode
 */
#ifndef FATHOM_SELF_H
#define FATHOM_SELF_H

#include <stdarg.h>

#include <fathom/error.h>
#include <fathom/answer.h>
#include <fathom/symbolize.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The prepared process. Opaque. */
struct fathom_self;

/** Bits of fathom_self_options.flags. */
enum fathom_self_flag {
	/**
	 * Prepare files, lines and inlined calls, too, not only names: decode all debug information
	 * of all modules and store it in the index cache, or load it from there.
	 */
	FATHOM_SELF_FULL = 1u << 0,
	/** Prepare unwind rules, too: for fathom_unwind(). */
	FATHOM_SELF_UNWIND = 1u << 1
};

/** Options of fathom_self_prepare(); as struct fathom_options. */
struct fathom_self_options {
	size_t size;
	uint32_t flags;
	/**
	 * The signal by which fathom_unwind() stops other threads, such as SIGRTMIN + 5; 0: it does
	 * not. From now on, until the process ends, it has a handler of the library, which ignores
	 * those that others send.
	 */
	int32_t signal;
	/** Where to look for debug files; NULL: the default places. */
	const struct fathom_target_options *target;
	uint64_t reserved[4];
};

/** A good size for the buffer of fathom_self_lookup(), in bytes: about 30 frames. */
#define FATHOM_SELF_BUFFER 2048

/** Number of most recently unloaded libraries whose strings are kept. */
#define FATHOM_SELF_KEPT 64

/**
 * Prepares the process for fathom_self_lookup(): opens the file of each module and its debug file
 * if there is one, verifies it against memory, copies its symbols, demangled, and closes it. No
 * descriptor stays open. A module without a file is prepared from memory; a note says what is
 * missing (fathom_self_note()).
 *
 * Safety: mt-safe
 * Memory: *@ret_self is the caller's, to be freed with fathom_self_destroy(); it keeps @session
 *	until then
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT, also if the signal has a handler of the program or
 *	none can be set for it; FATHOM_E_MEMORY; FATHOM_E_OS when neither the memory map nor the
 *	dynamic linker tells what is loaded
 */
FATHOM_API fathom_err fathom_self_prepare(struct fathom *session,
					  const struct fathom_self_options *options,
					  struct fathom_self **ret_self,
					  struct fathom_errinfo *reterr);

/**
 * Follows dlopen() and dlclose(): prepares new libraries and forgets unloaded ones. If nothing has
 * changed, only reads the dynamic linker's counters. Waits for other threads that are in dlopen()
 * or dlclose(), so it must not be called from dl_iterate_phdr()'s callback, nor while such a thread
 * waits for this one.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: frees the strings of libraries that were unloaded long ago (fathom_self_lookup())
 * Returns: as fathom_self_prepare(); after an error, everything prepared before stays in use
 */
FATHOM_API fathom_err fathom_self_refresh(struct fathom_self *self, struct fathom_errinfo *reterr);

/**
 * Frees @self, which may be NULL. No thread or signal handler may use it now or later.
 *
 * Safety: neither
 * Memory: frees @self and the strings of its answers
 * Returns: nothing
 */
FATHOM_API void fathom_self_destroy(struct fathom_self *self);

/**
 * Names @pc of this process within a few microseconds; usually within one.
 *
 * Puts the answer, its frames and its module into @buffer, of @size bytes. If frames do not fit,
 * inlined ones are left out and the reason is FATHOM_REASON_LIMIT; the physical function is always
 * there.
 *
 * Code that objects of this process have published with <fathom/jit.h> is asked for first: it has a
 * name, in @buffer, and no lines.
 *
 * A module that the program may unload counts as loaded only if the dynamic linker says so now and
 * its build-id is in memory, so unloaded code is never named. Two kinds of modules are answered
 * from their dynamic symbols in memory, or by the bounds of their call frame information, with
 * FATHOM_REASON_NOT_PREPARED: modules loaded since the last fathom_self_refresh(), and modules
 * without a build-id, which might be another one loaded at the same place. module and
 * module_address then say what to resolve later, and the texts of the answer are in @buffer, too.
 * All other texts belong to @self and live as long as it does. Texts of an unloaded library live
 * until FATHOM_SELF_KEPT others have been unloaded after it and fathom_self_refresh() has been
 * called: copy them to keep them longer.
 *
 * @flags are FATHOM_NAMES_ONLY and FATHOM_NO_DEMANGLE.
 *
 * Safety: as-safe; takes less than 8 KB of stack, preserves errno
 * Memory: writes at most @size bytes to @buffer
 * Returns: the answer, in @buffer; NULL when that is smaller than 256 bytes
 */
FATHOM_API const struct fathom_answer *fathom_self_lookup(const struct fathom_self *self,
							  struct fathom_pc pc, uint32_t flags,
							  void *buffer, size_t size);

/**
 * Calls fathom_self_refresh(), then fathom_self_lookup(): the answer is current, also for modules
 * without a build-id.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: writes at most @size bytes to @buffer
 * Returns: as fathom_self_lookup()
 */
FATHOM_API const struct fathom_answer *fathom_self_lookup_now(struct fathom_self *self,
							      struct fathom_pc pc, uint32_t flags,
							      void *buffer, size_t size);

/**
 * Returns what went wrong with a module; as fathom_target_note().
 *
 * Safety: mt-safe
 * Memory: the note lives as long as @self
 * Returns: note number @i, counted from 0; NULL after the last one
 */
FATHOM_API const struct fathom_errinfo *fathom_self_note(const struct fathom_self *self, size_t i);

/**
 * Writes text to @buf as snprintf() does, for signal handlers: allocates nothing, uses no locale
 * and no floating point, and survives invalid pointers. @self may be NULL: then no address has a
 * name.
 *
 * A directive is `%[flags][width][.precision][type]letter`; width and precision may be `*`.
 *
 * - d i u x X o b: a number, signed, unsigned, hexadecimal, octal, binary
 * - c C s: a character; text
 * - p: a pointer in hexadecimal; 0 and -1 as such
 * - t: the name of an address, `NAME+0xOFF`, or `0xADDRESS` without one; with type l followed by `
 *   FILE:LINE` if that is known; with # as `&NAME` or `&ADDRESS`
 * - m: the name of the error number in the argument, such as `ENOENT`; nothing for 0; with the flag
 *   space, one space before the name. (errno itself is not read.)
 * - G: the name of the signal number in the argument
 * - P H T: process number, thread number, nanoseconds since @self was prepared; no argument
 * - n %: a newline; a per cent sign
 *
 * Widths above 4,096 count as 4,096; a number has at most 64 digits, whatever the precision.
 *
 * Types of numbers: none int, hhh bool ("true"), hh char, h short, l long, ll long long, j, z.
 * Types of c and s: none UTF-8, hh bytes as code page 437 shows them, h UTF-16, l wchar_t.
 *
 * Flags: `0`, `-`, `+` and space as in printf; # (or a backtick) adds 0x, 0 or 0b, and quotes text
 * and characters as C does; `'`, `,` and `_` group digits by three; ^ writes capitals; ! reads text
 * without checking that it is readable.
 *
 * Unreadable text is shown as `!!ADDRESS`, NULL as `NULL`, or as nothing with the flag space. Text
 * ends at a NUL, where readable memory ends, or after @precision units, at most 65,536. Outside
 * quotes, control characters other than newline and tab are shown as their symbols, and bytes that
 * are not UTF-8 as U+FFFD. In names of addresses, newline and tab are shown as symbols, too, and
 * other hidden characters (fathom_point_is_hidden()) as U+FFFD.
 *
 * Text that does not fit is cut between characters and ends in `...`, followed by a newline if the
 * whole text ends in one. It always ends in a NUL if @cap is not 0. An unknown directive and all
 * that follow it are written literally, because their arguments cannot be located.
 *
 * Safety: as-safe; takes less than 8 KB of stack, preserves errno
 * Memory: writes at most @cap bytes to @buf
 * Returns: the length of the whole text, without the NUL, whether it fitted or not
 */
FATHOM_API size_t fathom_self_format(const struct fathom_self *self, char *buf, size_t cap,
				     const char *format, ...);

/**
 * Does what fathom_self_format() does, with the arguments as a list.
 *
 * Safety: as-safe; takes less than 8 KB of stack, preserves errno
 * Memory: writes at most @cap bytes to @buf
 * Returns: the length of the whole text, without the NUL, whether it fitted or not
 */
FATHOM_API size_t fathom_self_vformat(const struct fathom_self *self, char *buf, size_t cap,
				      const char *format, va_list arguments);

#ifdef __cplusplus
}
#endif

#endif
