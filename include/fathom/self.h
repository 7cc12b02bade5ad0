/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The calling process itself: after one call that prepares, any address of the program and of its
 * libraries is named from any thread and from signal handlers.
 *
 * Preparing opens files, allocates and takes locks; looking up does none of that: it searches
 * tables that were made before, and reads other memory only so that it cannot fault. In ten lines:
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

/** This process, as it was prepared. Opaque. */
struct fathom_self;

/** Bits of fathom_self_options.flags. */
enum fathom_self_flag {
	/**
	 * Files, lines and inlined calls, too: all debug information of all modules is decoded, or
	 * taken from the index cache, where it is stored then. Without it: names.
	 */
	FATHOM_SELF_FULL = 1u << 0
};

/** Options of fathom_self_prepare(); as struct fathom_options. */
struct fathom_self_options {
	size_t size;
	uint32_t flags;
	uint32_t reserved1;
	/** Where debug files are looked for; NULL: where they are by default. */
	const struct fathom_target_options *target;
	uint64_t reserved[4];
};

/** A good size for the buffer of fathom_self_lookup(), in bytes: some 30 frames. */
#define FATHOM_SELF_BUFFER 2048

/** Libraries that were unloaded whose strings are kept, those that went last. */
#define FATHOM_SELF_KEPT 64

/**
 * Prepares the process for fathom_self_lookup(): opens the file of each module, verified against
 * what is in memory, with its debug file where there is one, copies its symbols, demangled, and
 * closes it. No descriptor stays open. A module whose file is not there is prepared from memory;
 * what could not be had is noted (fathom_self_note()).
 *
 * Safety: mt-safe
 * Memory: *@ret_self is the caller's, to be ended with fathom_self_destroy(); it keeps
 *	@session until then
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT; FATHOM_E_MEMORY; FATHOM_E_OS when neither the memory map
 *	nor the loader says what is loaded
 */
FATHOM_API fathom_err fathom_self_prepare(struct fathom *session,
					  const struct fathom_self_options *options,
					  struct fathom_self **ret_self,
					  struct fathom_errinfo *reterr);

/**
 * Follows dlopen() and dlclose(): prepares what came since, forgets where what is gone was. Costs
 * no more than a look at the loader's counters when nothing has changed. Waits for other threads
 * that are in dlopen() or dlclose(): not to be called from dl_iterate_phdr()'s callback, nor while
 * such a thread waits for this one.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: frees the strings of libraries that have been gone for long (fathom_self_lookup())
 * Returns: as fathom_self_prepare(); after an error what was prepared is still used
 */
FATHOM_API fathom_err fathom_self_refresh(struct fathom_self *self, struct fathom_errinfo *reterr);

/**
 * Ends @self, which may be NULL. Nobody may be asking, nor will be: handlers that use it must be
 * gone.
 *
 * Safety: neither
 * Memory: frees @self and the strings of its answers
 * Returns: nothing
 */
FATHOM_API void fathom_self_destroy(struct fathom_self *self);

/**
 * Names @pc of this process, in at most some microseconds; most often in less than one.
 *
 * The answer, its frames and its module are put into @buffer, of @size bytes. Frames that have no
 * room are left out, the physical function never; the reason is FATHOM_REASON_LIMIT then.
 *
 * A module that the program may unload is believed to be there only if the loader says so now and
 * its build-id is in memory; so the name of code that is gone is never given. What came since the
 * last fathom_self_refresh(), and what cannot be told from something else that was loaded at its
 * place for want of a build-id, is answered from the dynamic symbols that it has in memory, with
 * FATHOM_REASON_NOT_PREPARED: module and module_address say what to resolve later. The texts of
 * such an answer are in @buffer, too; all others belong to @self and live as long as it. Those of a
 * library that is unloaded live until FATHOM_SELF_KEPT others have been unloaded after it, and
 * fathom_self_refresh() has been called: copy them to keep them for longer.
 *
 * @flags are FATHOM_NAMES_ONLY and FATHOM_NO_DEMANGLE.
 *
 * Safety: as-safe; takes less than 8 KB of stack, leaves errno as it is
 * Memory: writes at most @size bytes to @buffer
 * Returns: the answer, in @buffer; NULL when that is smaller than 256 bytes
 */
FATHOM_API const struct fathom_answer *fathom_self_lookup(const struct fathom_self *self,
							  struct fathom_pc pc, uint32_t flags,
							  void *buffer, size_t size);

/**
 * As fathom_self_lookup(), after fathom_self_refresh(): the answer is that of the moment of the
 * call, also for modules without a build-id.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: writes at most @size bytes to @buffer
 * Returns: as fathom_self_lookup()
 */
FATHOM_API const struct fathom_answer *fathom_self_lookup_now(struct fathom_self *self,
							      struct fathom_pc pc, uint32_t flags,
							      void *buffer, size_t size);

/**
 * What went wrong with a module; as fathom_target_note().
 *
 * Safety: mt-safe
 * Memory: the note lives as long as @self
 * Returns: note number @i, counted from 0; NULL when there are not so many
 */
FATHOM_API const struct fathom_errinfo *fathom_self_note(const struct fathom_self *self, size_t i);

/**
 * Writes text to @buf as snprintf() does, for signal handlers: it allocates nothing, has no locale
 * and no floating point, and follows no pointer that leads nowhere. @self may be NULL: then no
 * address has a name.
 *
 * A directive is `%[flags][width][.precision][type]letter`; width and precision may be `*`.
 *
 * - d i u x X o b: a number, signed, unsigned, hexadecimal, octal, binary
 * - c C s: a character; text
 * - p: a pointer in hexadecimal; 0 and -1 as such
 * - t: the name of an address, `NAME+0xOFF`, or `0xADDRESS` without one; with type l followed by
 *   ` FILE:LINE` where that is known; with # as `&NAME` or `&ADDRESS`
 * - m: the name of the error number that is its argument, as `ENOENT`; nothing for 0, and with the
 *   flag space one before it. (errno itself is not read.)
 * - G: the name of the signal number that is its argument
 * - P H T: the process, the thread, nanoseconds since @self was prepared; no argument
 * - n %: a newline; a per cent sign
 *
 * Widths beyond 4,096 count as that; no precision makes more than 64 digits.
 *
 * Types of numbers: none int, hhh bool ("true"), hh char, h short, l long, ll long long, j, z.
 * Types of c and s: none UTF-8, hh bytes as code page 437 shows them, h UTF-16, l wchar_t.
 *
 * Flags: `0`, `-`, `+` and space as in printf; # (or a backtick) adds 0x, 0 or 0b, and quotes text
 * and characters as C does; `'`, `,` and `_` group digits by three; ^ writes capitals; ! reads text
 * without looking whether it can be read.
 *
 * Text that cannot be read is `!!ADDRESS`, NULL is `NULL`, nothing with the flag space. It ends
 * where memory that can be read ends, at a NUL, or after @precision units, 65,536 at most. Outside
 * quotes control characters, but newline and tab, are shown as the symbols for them, and what is no
 * UTF-8 as U+FFFD. In names of addresses these two are shown so, too, and what is hidden otherwise
 * (fathom_point_is_hidden()) as U+FFFD.
 *
 * What does not fit is cut between characters and ends in `...`, and a newline if the whole text
 * does. There is always a NUL when @cap is not 0. A directive that is none is written as it stands,
 * and those that follow it are, too: their arguments could not be told.
 *
 * Safety: as-safe; takes less than 8 KB of stack, leaves errno as it is
 * Memory: writes at most @cap bytes to @buf
 * Returns: the length of the whole text, without the NUL, whether it fitted or not
 */
FATHOM_API size_t fathom_self_format(const struct fathom_self *self, char *buf, size_t cap,
				     const char *format, ...);

/**
 * As fathom_self_format(), with the arguments as a list.
 *
 * Safety: as-safe; takes less than 8 KB of stack, leaves errno as it is
 * Memory: writes at most @cap bytes to @buf
 * Returns: the length of the whole text, without the NUL, whether it fitted or not
 */
FATHOM_API size_t fathom_self_vformat(const struct fathom_self *self, char *buf, size_t cap,
				      const char *format, va_list arguments);

#ifdef __cplusplus
}
#endif

#endif
