/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Tracing: records what programs call, of functions and of the kernel, and reports it as events.
 * Traces programs that it runs, processes that it attaches to, the calling process, and reads trace
 * files.
 */
#ifndef FATHOM_TRACE_H
#define FATHOM_TRACE_H

#include <fathom/error.h>
#include <fathom/session.h>
#include <fathom/trace_events.h>
#include <fathom/trace_options.h>
#include <fathom/trace_sites.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When the hook reads the clock. */
enum fathom_trace_clock {
	FATHOM_TRACE_CLOCK_FULL = 0, /**< at each event */
	/** At one in 64 of each thread: others have the time of the last one before. */
	FATHOM_TRACE_CLOCK_SPARSE = 1,
	FATHOM_TRACE_CLOCK_NONE = 2 /**< never: between threads no order is known */
};

/** Bits of fathom_trace_syscalls.flags. */
enum fathom_syscalls_flag {
	/** Of functions nothing is reported, and nothing is put into programs. */
	FATHOM_SYSCALLS_ONLY = 1u << 0,
	FATHOM_SYSCALLS_ENTRIES = 1u << 1, /**< tell also when calls begin */
	FATHOM_SYSCALLS_STRACE = 1u << 2,  /**< texts are those of strace(1) 6.1 */
	FATHOM_SYSCALLS_VERBOSE = 1u << 3, /**< do not abbreviate structures */
	FATHOM_SYSCALLS_HEX = 1u << 4, /**< strings with other bytes than ASCII's in hexadecimal */
	FATHOM_SYSCALLS_ALL_HEX = 1u << 5, /**< all strings */
	FATHOM_SYSCALLS_FILES = 1u << 6,   /**< name the paths that descriptors are open for */
	FATHOM_SYSCALLS_RAW = 1u << 7,     /**< numbers instead of names of constants */
	FATHOM_SYSCALLS_BOTH = 1u << 8,    /**< numbers, and names in comments */
	/**
	 * Of a program that is run, with FATHOM_SYSCALLS_ONLY: have it stop at the calls of the
	 * set only, by a filter (seccomp(2)). It gets no rights by exec() then, and ends if the
	 * calling process does.
	 */
	FATHOM_SYSCALLS_FILTER = 1u << 9,
	/** name protocol and addresses of sockets, of those in the caller's network namespace */
	FATHOM_SYSCALLS_SOCKETS = 1u << 10,
	FATHOM_SYSCALLS_DEVICES = 1u << 11, /**< name paths and numbers of devices */
	FATHOM_SYSCALLS_PIDFDS = 1u << 12,  /**< name the processes of pidfds */
	/**
	 * Read the stack of the thread at each call and each signal. With FATHOM_SYSCALLS_STRACE
	 * its frames have names only, no lines and no inlined calls.
	 */
	FATHOM_SYSCALLS_STACKS = 1u << 13
};

/** Bytes of strings that are shown, unless it is said. */
#define FATHOM_SYSCALLS_STRING_LIMIT 32

/** Choice of system calls (x86-64), and how they are shown. */
struct fathom_trace_syscalls {
	size_t size;
	uint32_t flags;        /**< FATHOM_SYSCALLS_ */
	uint32_t string_limit; /**< bytes of strings and elements of arrays that are shown */
	/**
	 * NULL: all. Names, classes as "%file" (see strace(1)) and regular expressions as "/^open",
	 * between commas; after "!" all but these.
	 */
	const char *set;
	/**
	 * Changes of calls of the set, each
	 * SET[:error=E][:retval=N][:signal=S][:delay_enter=T]
	 * [:delay_exit=T][:when=W], as -e inject= of strace(1) has it: with error or retval the
	 * call is not made.
	 */
	const char *const *inject;
	size_t n_inject;
	/**
	 * Only calls that refer to one of these files, by its path as it is written here or as it
	 * is without symbolic links, or by a descriptor that is open for it. None: all calls.
	 */
	const char *const *paths;
	size_t n_paths;
	/** Sets of calls, as @ref set. NULL: nothing is said. */
	const char *abbrev;  /**< abbreviate their structures, and no others */
	const char *verbose; /**< show their structures, and only addresses of others */
	const char *raw;     /**< show their arguments and results as numbers */
	/** Descriptors between commas, "all"; after "!" all but these: NULL: none. */
	const char *dump_reads;  /**< have all bytes that are read from them */
	const char *dump_writes; /**< likewise, written to them */
	/**
	 * enum fathom_syscall_method; 0: by ptrace(2), or, of a process that traces itself, by any
	 * that the system allows. By dispatch: of such a process only, else
	 * FATHOM_E_ARGUMENT. By rewriting: of a program that is run, and
	 * its children; calls that cannot be recorded so are seen by ptrace(2). It gets no rights
	 * by exec() then, and ends if the tracer ends, as with FATHOM_SYSCALLS_FILTER.
	 */
	uint32_t method;
	uint32_t reserved1;
	uint64_t reserved[1];
};

/** Bits of fathom_trace_options.flags. */
enum fathom_trace_flag {
	/** A thread whose ring is full never waits: it loses events. */
	FATHOM_TRACE_LOSSY = 1u << 0,
	/** Tell nothing of child processes, until they run another program, nor of that. */
	FATHOM_TRACE_NO_CHILDREN = 1u << 1,
	/** Tell of returns, too, where sites record them. */
	FATHOM_TRACE_EXITS = 1u << 2,
	/** Do not fold: each call is an event of its own. */
	FATHOM_TRACE_NO_FOLD = 1u << 3,
	/**
	 * Keep the latest events of each thread, FATHOM_TRACE_KEPT at least, and tell of them at
	 * the end, or when control asks for it. Threads never wait. Actions have no effect.
	 */
	FATHOM_TRACE_LATEST = 1u << 4,
	/**
	 * Tell of calls from one module to another, too: those by the procedure linkage table.
	 * Without this flag and the next one, that is done in programs that have no sites.
	 */
	FATHOM_TRACE_CALLS = 1u << 5,
	FATHOM_TRACE_NO_CALLS = 1u << 6, /**< Do not. */
	/**
	 * Of processes that are attached to: one ends only when all its events were reported. So a
	 * log is whole when whoever waits for the process learns of its end.
	 */
	FATHOM_TRACE_HOLD_ENDS = 1u << 7,
	/** Record threads in scopes only: fathom_trace_thread(). */
	FATHOM_TRACE_SCOPES = 1u << 8,
	/**
	 * Of a program that is left: fathom_trace_run() does not wait for its end, and its status
	 * is 0. One that stops at a filter of system calls is not left before it ends.
	 */
	FATHOM_TRACE_NO_WAIT = 1u << 9
};

/** Events of each thread that FATHOM_TRACE_LATEST keeps. */
#define FATHOM_TRACE_KEPT 65000

/** Selects functions, and says what to do at their calls. */
struct fathom_trace_at {
	const char *query;
	uint32_t actions; /**< FATHOM_TRACE_AT_ */
	uint32_t reserved1;
};

/**
 * Options of a run. Queries are as for fathom_find(); "FILE:" stands for all functions of a source
 * file, of which FILE is a path suffix of whole parts.
 */
struct fathom_trace_options {
	size_t size;
	uint32_t flags; /**< FATHOM_TRACE_ */
	uint32_t clock; /**< enum fathom_trace_clock */
	/**
	 * Takes @n events, in the order of their times; returns 0 if no more are wanted: the
	 * program runs on. It is called on a thread of its own; with @n 0 when no more have come
	 * for now.
	 */
	int (*events)(void *data, const struct fathom_trace_event *events, size_t n);
	void *data; /**< for events and control */
	/**
	 * NULL, or asked each few milliseconds what to do; returns enum fathom_trace_control. It is
	 * called on the thread of events.
	 */
	int (*control)(void *data);
	const char *const *only;   /**< record these functions only; NULL: all */
	const char *const *under;  /**< tell of these and of what they call only; NULL: all */
	const char *const *except; /**< do not record these; NULL: none */
	size_t n_only;
	size_t n_under;
	size_t n_except;
	const struct fathom_trace_at *at; /**< NULL: none */
	size_t n_at;
	uint32_t depth; /**< tell of so many levels of calls only; 0: all */
	uint32_t reserved1;
	/** NULL, or called once processes are attached to; later calls are reported. */
	void (*ready)(void *data);
	/**
	 * NULL, or called when all was reported. With FATHOM_TRACE_HOLD_ENDS the process that ended
	 * last is not gone before it returns.
	 */
	void (*over)(void *data);
	/**
	 * Calls of one function in a second, after which its sites are recorded no more: a note
	 * says so. 0: any number. Without effect on FATHOM_TRACE_LATEST.
	 */
	uint64_t max_rate;
	/**
	 * NULL, or called when process @pid has ended, with its @status as waitpid(2) has it, by a
	 * thread of its own. When control is asked next, all its events can be reported. With
	 * FATHOM_TRACE_HOLD_ENDS the process is not gone before that was done.
	 */
	void (*ended)(void *data, int32_t pid, int status);
	/** System calls, too; NULL: none. Of a file, only how they are shown. */
	const struct fathom_trace_syscalls *syscalls;
	/** Run the program with the rights of this user, by name, as root only may. NULL: ours. */
	const char *user;
	/**
	 * NULL, or a folder in which records may wait to be reported, in a file without a name that
	 * takes at most @ref spool_size bytes (24 for a call) and a quarter of what is free there.
	 * Threads so rarely wait for events(), which may be called much later. Without effect where
	 * system calls are reported, with max_rate or ended, and on FATHOM_TRACE_LATEST and
	 * FATHOM_TRACE_HOLD_ENDS.
	 */
	const char *spool;
	uint64_t spool_size;
	/**
	 * NULL, or called once if nothing is traced any more and records still wait in the spool:
	 * by the thread of events(), which may end it then by returning 0.
	 */
	void (*rest)(void *data);
	uint64_t reserved[3];
};

/** Answers of control. */
enum fathom_trace_control {
	FATHOM_TRACE_GO_ON = 0,
	FATHOM_TRACE_TELL = 1, /**< tell what is kept (FATHOM_TRACE_LATEST), and go on */
	/** Leave all programs as they were, and tell of nothing more. */
	FATHOM_TRACE_LEAVE = 2
};

/** Why sites are not recorded: indexes of fathom_trace_result.n_refused. */
enum fathom_trace_refusal {
	FATHOM_TRACE_NO_ROOM = 1, /**< the slot is too short, and has no prefix within reach */
	FATHOM_TRACE_CHANGED = 2, /**< the program has other bytes there than its file */
	FATHOM_TRACE_TOO_FAR = 3, /**< its module is out of reach of the hook */
	/** where the return address lies is not known (-finstrument-functions) */
	FATHOM_TRACE_NO_FRAME = 4
};

/** Result of a run. */
struct fathom_trace_result {
	size_t size;
	int32_t status; /**< of the program, as waitpid(2) has it */
	uint32_t reserved1;
	uint64_t n_sites;      /**< that were recorded */
	uint64_t n_refused[8]; /**< that could not be, by enum fathom_trace_refusal */
	uint64_t lost;         /**< events that were lost */
	/**
	 * The longest time for which threads were stopped to attach to a process or to leave one.
	 */
	uint64_t stop_ns;
	uint64_t n_calls;      /**< slots of calls from one module to another that were recorded */
	uint64_t n_returns;    /**< of n_sites, those at returns */
	uint64_t n_unrecorded; /**< programs that could not be recorded; notes say why */
};

/**
 * Runs @argv, found along PATH, and reports each call that its sites record: of the program, its
 * libraries, those that it loads later, its threads, its child processes and the programs that
 * these run. If the calling process ends, the program runs on. Machine: x86-64.
 *
 * While it runs it is traced (ptrace(2)): no debugger can attach to it. A program that exec() would
 * give other rights (set-user-ID) is not recorded.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK when the program and all its children have ended; FATHOM_E_NOT_FOUND or
 *	FATHOM_E_OS when it cannot be run; FATHOM_E_ARGUMENT; FATHOM_E_MEMORY;
 *	FATHOM_E_UNSUPPORTED on other machines
 */
FATHOM_API fathom_err fathom_trace_run(struct fathom *session, char *const *argv,
				       const struct fathom_trace_options *options,
				       struct fathom_trace_result *ret_result,
				       struct fathom_errinfo *reterr);

/**
 * Attaches to the @n processes @pids, which run, and reports each call that their sites record
 * from then on, as fathom_trace_run() does. All threads are stopped for that, for milliseconds.
 * When control says so, the processes are left: their text is what it was, byte for byte, and no
 * thread is in the runtime. If the calling process ends without that, they run on, and their
 * sites call the hook, which finds nobody and counts; the next one who attaches mends that. The
 * status of the result is 0.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK when the processes and all their children have ended, or were left;
 *	FATHOM_E_NOT_FOUND when there is no such process; FATHOM_E_OS when one cannot be traced:
 *	another one traces it, or the caller may not; FATHOM_E_UNSUPPORTED when one uses the gs
 *	segment or is of 32 bits, and on other machines; FATHOM_E_ARGUMENT; FATHOM_E_MEMORY. Then
 *	all are as they were.
 */
FATHOM_API fathom_err fathom_trace_attach(struct fathom *session, const int32_t *pids, size_t n,
					  const struct fathom_trace_options *options,
					  struct fathom_trace_result *ret_result,
					  struct fathom_errinfo *reterr);

/**
 * Reads the trace file at @path (FATHOM_TRACE_FILE) and reports its events, on the calling thread.
 * Of @options only what selects events counts: only, under, except, depth, at, and of the flags
 * FATHOM_TRACE_NO_FOLD and FATHOM_TRACE_NO_CHILDREN; "FILE:" is not known here. A file that ends in
 * the middle is reported up to there: what was written last, before it was full or its writer
 * killed, may be cut.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND or FATHOM_E_OS when it cannot be read;
 *	FATHOM_E_FORMAT when it is no trace file, or broken: events before that were reported;
 *	FATHOM_E_ARGUMENT; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_trace_read(struct fathom *session, const char *path,
					const struct fathom_trace_options *options,
					struct fathom_trace_result *ret_result,
					struct fathom_errinfo *reterr);

/**
 * Starts to log what the calling process calls. A process that is made for that attaches to it
 * (fathom_trace_attach()) and writes the log; wait(2) does not see it. All threads are recorded
 * when this returns, and child processes that are made later. The log is whole when the process has
 * ended, or fathom_trace_stop() has returned. On aarch64 the process changes its own text instead
 * (docs/trace.md says what differs). Machines: x86-64, aarch64.
 *
 * @options are words as for the command, separated by spaces; '...' keeps spaces together: --log
 * FILE, -o FILE, --export WORD, --tree, --json, -c (--count), --last N, --only, --under and --not
 * QUERY, --depth N, --max-rate N, --at QUERY:WORD, --exits, --calls and --clock WORD, --lossy,
 * and the words --no-children, --no-fold and --scopes, which is FATHOM_TRACE_SCOPES. Without --log
 * and -o, lines go to standard error.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for unknown words, or if it is traced already; FATHOM_E_OS,
 *	FATHOM_E_UNSUPPORTED and FATHOM_E_MEMORY as fathom_trace_attach(): nothing has changed
 */
FATHOM_API fathom_err fathom_trace_start(const char *options, struct fathom_errinfo *reterr);

/**
 * Ends what fathom_trace_start() has begun: the process is as it was before.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND if this process has not begun anything; on aarch64
 *	FATHOM_E_UNSUPPORTED or FATHOM_E_OS when its text cannot be put back: the trace has ended
 */
FATHOM_API fathom_err fathom_trace_stop(struct fathom_errinfo *reterr);

/**
 * Adds @change to a count of the calling thread, whoever traces it: it is recorded while that is
 * above 0. A thread begins with 1, with FATHOM_TRACE_SCOPES with 0; so -1 and +1 leave a region
 * out, and +1 and -1 are a scope. @change 0 only asks. On x86-64, where programs may not use
 * rdgsbase (before Linux 5.9, on old processors), it calls arch_prctl(2): a filter of system calls
 * has to allow that.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: the count before; 0 if the thread is not traced
 */
FATHOM_API int fathom_trace_thread(int change);

#ifdef __cplusplus
}
#endif

#endif
