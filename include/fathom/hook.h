/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Hooks: the calling process has functions of its own called where functions begin or return; and
 * it changes its own code. Machines: x86-64, aarch64.
 *
 * A hook needs sites (fathom/trace_sites.h): a slot that the compiler has left at the entry of a
 * function, as with -fpatchable-function-entry=18,16. The slot gets a jump to a stub near its
 * module; the stub calls the hook function and jumps back. To switch a hook off changes one byte of
 * each jump: then it leads past the call. To remove it gives the slot its own bytes back.
 *
 * @code
 *	static void count(void *data, const struct fathom_hook_call *call)
 *	{
 *		++*(_Atomic unsigned long *)data;
 *	}
 *	...
 *	const char *only[] = { "parse_*" };
 *	struct fathom_hook_options options = { .size = sizeof options, .only = only, .n_only = 1 };
 *
 *	fathom_hook_add(session, count, &n, &options, &hook, NULL);
 *	...
 *	fathom_hook_remove(hook, NULL);
 * @endcode
 *
 * On aarch64 a site is one instruction, and nobody is stopped: it is changed by one store, also
 * when a hook is added or removed.
 *
 * While bytes of code are written other than these single ones, all other threads of the process
 * are stopped, by a child that traces them (ptrace(2)) and that wait(2) does not return. So they
 * must not be traced by anybody else, such as a debugger or `fathom trace`. No page is ever
 * writable and executable: code is written through /proc/self/mem.
 */
#ifndef FATHOM_HOOK_H
#define FATHOM_HOOK_H

#include <fathom/error.h>
#include <fathom/session.h>
#include <fathom/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * General registers of a call, by the numbers that DWARF has for them: rax is 0, rsp is 7; on
 * aarch64 x0 is 0, sp is 31.
 */
#if defined(__aarch64__)
#define FATHOM_HOOK_REGISTERS 32
#else
#define FATHOM_HOOK_REGISTERS 16
#endif

/** A call of a hooked function, or its return. It is valid until the hook function returns. */
struct fathom_hook_call {
	uint64_t function; /**< address of its entry */
	uint64_t site;     /**< address of the slot */
	uint64_t caller;   /**< where the function returns to */
	/** address at which that return address lies; aarch64: the stack pointer, it is in x30 */
	uint64_t stack;
	/** Values of the registers at the site; changes have no effect. */
	const uint64_t *registers;
	uint32_t place; /**< enum fathom_site_place */
	uint32_t reserved;
};

/**
 * Is called on the thread that calls the hooked function, which may hold any lock. It must return;
 * it may not leave by longjmp() or an exception. What it calls itself is not hooked: on one thread
 * hook functions never nest.
 */
typedef void (*fathom_hook_fn)(void *data, const struct fathom_hook_call *call);

/** Bits of fathom_hook_options.flags. */
enum fathom_hook_flag {
	FATHOM_HOOK_OFF = 1u << 0,   /**< it begins switched off */
	FATHOM_HOOK_EXITS = 1u << 1, /**< returns, too, where sites record them */
	/**
	 * The hook function, with all that it calls, was compiled with -mgeneral-regs-only: it
	 * leaves vector and x87 registers alone, so they need not be saved.
	 */
	FATHOM_HOOK_NO_VECTORS = 1u << 2
};

/** Options; as struct fathom_options. Without any choice all functions with sites are hooked. */
struct fathom_hook_options {
	size_t size;
	uint32_t flags; /**< FATHOM_HOOK_ */
	uint32_t reserved1;
	const char *const *only;   /**< queries as for fathom_find(): these functions; NULL: all */
	const char *const *except; /**< not these; NULL: none */
	size_t n_only;
	size_t n_except;
	/** Addresses of entries of functions: these only; NULL: all. */
	const uint64_t *functions;
	size_t n_functions;
	uint64_t reserved[4];
};

/** A hook. Opaque. */
struct fathom_hook;

/**
 * Adds a hook: @fn is called, with @data, where a chosen function of the calling process begins,
 * or of its libraries that are loaded now. Functions without a site, and those that have a hook
 * or that somebody traces, are left out.
 *
 * The hook function may use any register, but no AMX tiles, and of SVE no more than q0 to q31 have.
 * A hooked call takes up to 4 KiB of
 * stack beside what @fn needs. Unwinders go from @fn through the hooked function to its caller.
 *
 * Safety: mt-safe; not in signal handlers nor in hook functions
 * Memory: *@ret_hook is the caller's, to be given back with fathom_hook_remove(). Stubs stay
 *	mapped, and are used again for the same sites
 * Returns: FATHOM_OK, also when no function was chosen; FATHOM_E_ARGUMENT; FATHOM_E_OS when other
 *	threads cannot be stopped or code not be written; FATHOM_E_TIMEOUT when a thread does not
 *	stop within a second; FATHOM_E_UNSUPPORTED on other machines, and on aarch64 when several
 *	threads run and code cannot be changed under them; FATHOM_E_MEMORY; and what
 *	fathom_find() returns. Then no code has changed
 */
FATHOM_API fathom_err fathom_hook_add(struct fathom *session, fathom_hook_fn fn, void *data,
				      const struct fathom_hook_options *options,
				      struct fathom_hook **ret_hook, struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of sites that call the hook function
 */
FATHOM_API size_t fathom_hook_count(const struct fathom_hook *hook);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of chosen sites that could not be hooked, for the reason @why:
 *	FATHOM_TRACE_NO_ROOM also for calls of -finstrument-functions, which are the program's own;
 *	FATHOM_TRACE_CHANGED also for sites that are hooked or traced already
 */
FATHOM_API size_t fathom_hook_refused(const struct fathom_hook *hook,
				      enum fathom_trace_refusal why);

/**
 * Switches @hook on, or off if @on is 0, while all threads run. When this returns, each call that
 * begins then does what it says; calls that have begun before may still call the hook function.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_OS when code cannot be written
 */
FATHOM_API fathom_err fathom_hook_switch(struct fathom_hook *hook, int on,
					 struct fathom_errinfo *reterr);

/**
 * Removes @hook, which may be NULL: all code is what it was before, byte for byte, and no thread is
 * in the hook function when this returns.
 *
 * Safety: mt-safe per object; not in signal handlers nor in hook functions
 * Memory: frees @hook, unless FATHOM_E_OS is returned
 * Returns: FATHOM_OK; FATHOM_E_OS as for fathom_hook_add(), and FATHOM_E_ARGUMENT in a hook
 *	function: nothing has changed, and it can be tried again; FATHOM_E_TIMEOUT when a thread did
 *	not leave the hook function for 10 seconds: the code is what it was
 */
FATHOM_API fathom_err fathom_hook_remove(struct fathom_hook *hook, struct fathom_errinfo *reterr);

/** The most bytes that fathom_code_write() takes. */
#define FATHOM_CODE_MOST 4096

/**
 * Writes the @n bytes @bytes over code of the calling process at @code, while all its other threads
 * are stopped. No thread stands within these bytes then but at the first. What the bytes do is the
 * caller's business; so are frames of signal handlers that return into them.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for more than FATHOM_CODE_MOST bytes; FATHOM_E_OS when
 *	other threads cannot be stopped or the bytes not be written; FATHOM_E_TIMEOUT when a thread
 *	does not stop, or does not leave these bytes, within a second; FATHOM_E_UNSUPPORTED on other
 *	machines, and on aarch64 when several threads run and these instructions are none that may
 *	change under them. Then nothing has changed
 */
FATHOM_API fathom_err fathom_code_write(void *code, const void *bytes, size_t n,
					struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
