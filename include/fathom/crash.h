/* SPDX-License-Identifier: MIT */
/**
 * @file
 * A crash handler: one call, and the program reports by itself where it has crashed.
 *
 * The report says the program, the thread, the signal and its address; what lies there; the text
 * that glibc wrote before it called abort(), or type and text of the C++ exception; the stack of
 * the crashing thread with names, lines and inlined calls; its registers; the code around its pc;
 * and the memory map. A handler writes it by system calls alone: it allocates nothing and takes no
 * lock, so it works in the middle of malloc() and dlopen(), too. Afterwards the program ends as it
 * would have without it: by the handler that was installed before, or by the signal, with a core
 * whose registers are those of the crash.
 *
 * Programs that cannot be changed are run with LD_PRELOAD=libfathom-crash.so; fathom_crash(3)
 * lists the words of its environment variable FATHOM_CRASH. All threads have stacks for the
 * handler there.
 * @code
 *	int main(void)
 *	{
 *		fathom_crash_install(NULL, NULL, NULL);
 *		...
 * @endcode
 */
#ifndef FATHOM_CRASH_H
#define FATHOM_CRASH_H

#include <fathom/error.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fathom;

/** Bits of fathom_crash_options.flags. */
enum fathom_crash_flag {
	/** Report names only: installing decodes no debug information, which can take seconds. */
	FATHOM_CRASH_NAMES_ONLY = 1u << 0
};

/** Options of fathom_crash_install(); as struct fathom_options. */
struct fathom_crash_options {
	size_t size;
	uint32_t flags; /**< enum fathom_crash_flag */
	/** Descriptor to write the report to, which the program keeps open; 0: standard error. */
	int32_t fd;
	/**
	 * Path of the file to append the report to instead, created when a crash happens; copied.
	 * `%p` stands for the process number, `%t` for that of the thread, `%%` for `%`. If it
	 * cannot be opened or written, the report goes to standard error; also if it is a symbolic
	 * link, belongs to another user than root, or is a file with two names. NULL: use fd.
	 */
	const char *path;
	/**
	 * Signals that report, each below 32 and one that ends the program by default. NULL: SEGV,
	 * BUS, ILL, FPE, ABRT, TRAP and SYS.
	 */
	const int *signals;
	size_t n_signals;
	/** Where to look for debug files; NULL: the default places. */
	const struct fathom_target_options *target;
	uint64_t reserved[4];
};

/**
 * Prepares the process as fathom_self_prepare() does and installs the handler. What was installed
 * before is called after the report: a handler as the kernel would call it, else the default action
 * is taken. Signals that the program ignores are still ignored when a process sends them. A second
 * call replaces the first one's options and knows all libraries that are loaded now.
 *
 * So a handler without SA_ONSTACK runs on the stack that was interrupted; if that has no room left,
 * the default action is taken. (On processors other than x86-64, and with shadow stacks, it runs on
 * the alternate stack, if there is one.)
 *
 * Gives the calling thread a stack for the handler (fathom_crash_thread_stack()).
 *
 * One thread reports at a time. If several crash at once, the others wait for it for at most five
 * seconds, and go on without a report then. A thread whose report is written holds up no other: its
 * earlier handler may run for long, return or jump away. If it has none, its report is the last, as
 * the process ends. A crash inside the handler writes one line and takes the default action. At
 * most 16 crashes of one process are reported, those of handlers that return from one place only
 * once. A child after fork() reports as itself.
 *
 * @session may be NULL, for one with default options; it is kept until fathom_crash_uninstall().
 *
 * Safety: neither
 * Memory: keeps @session; the handler uses 128 KB that are set aside for it
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for options that this version does not know, or signals
 *	that cannot be handled or do not end a program by default; errors of fathom_self_prepare().
 *	After an error nothing has changed
 */
FATHOM_API fathom_err fathom_crash_install(struct fathom *session,
					   const struct fathom_crash_options *options,
					   struct fathom_errinfo *reterr);

/**
 * Restores the handlers that were there before fathom_crash_install(), unless the program has
 * installed others since. Does nothing if nothing is installed. No thread may crash meanwhile.
 *
 * Safety: neither
 * Memory: frees what fathom_crash_install() has prepared, but no thread's stack
 * Returns: nothing
 */
FATHOM_API void fathom_crash_uninstall(void);

/**
 * Gives the calling thread an alternate signal stack, so that it reports even if its own stack has
 * overflowed: AT_MINSIGSTKSZ + 128 KB after a guard page. Each thread needs one of its own. It is
 * freed when the thread ends. A thread that has an alternate stack already keeps it.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: maps the stack
 * Returns: FATHOM_OK; FATHOM_E_MEMORY; FATHOM_E_OS
 */
FATHOM_API fathom_err fathom_crash_thread_stack(struct fathom_errinfo *reterr);

/**
 * Frees the stack that fathom_crash_thread_stack() has given to the calling thread, if it did, for
 * instance before the thread sets another one.
 *
 * Safety: mt-safe; not in signal handlers
 * Memory: unmaps the stack
 * Returns: nothing
 */
FATHOM_API void fathom_crash_thread_stack_free(void);

#ifdef __cplusplus
}
#endif

#endif
