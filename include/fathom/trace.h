/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Tracing: the places in a program at which function entries and returns can be recorded.
 *
 * A *site* is a place at the entry of a function, or before one of its returns, that the compiler
 * has left for this purpose. Its *slot* is the bytes that may be replaced.
 *
 * Sites that a section of the file records are found in stripped files, too:
 *
 *	-fpatchable-function-entry       __patchable_function_entries
 *	-mrecord-mcount                  __mcount_loc
 *	-mrecord-return                  __return_loc
 *	-fxray-instrument                xray_instr_map
 *
 * What no section records counts only at the start of a function, that is, where the symbol of a
 * function or an FDE begins: a call of __fentry__ or a NOP (`-mnop-mcount`) at its first
 * instruction; and what all its instructions lead to without a choice: a call of mcount (`-pg`) or
 * of __cyg_profile_func_enter (`-finstrument-functions`). A NOP behind a prologue (`-pg
 * -mnop-mcount`) counts only in modules that were linked with `-pg`. Behind such a call of
 * __cyg_profile_func_enter, each call of __cyg_profile_func_exit in the function, and each jump to
 * it, is a return (x86-64).
 *
 * No record is believed before the code says the same. Records that are not believed are counted,
 * by reason.
 */
#ifndef FATHOM_TRACE_H
#define FATHOM_TRACE_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/stack.h>
#include <fathom/target.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a site is known. */
enum fathom_site_kind {
	FATHOM_SITE_PATCHABLE = 1,  /**< -fpatchable-function-entry */
	FATHOM_SITE_MCOUNT_LOC = 2, /**< -mrecord-mcount: a call or a NOP */
	FATHOM_SITE_RETURN_LOC = 3, /**< -mrecord-return: a call or a NOP */
	FATHOM_SITE_XRAY = 4,       /**< -fxray-instrument */
	FATHOM_SITE_FENTRY = 5,     /**< a call of __fentry__ or mcount at the start */
	FATHOM_SITE_MCOUNT = 6,     /**< a call of mcount behind the prologue */
	FATHOM_SITE_NOP = 7,        /**< a NOP of five or six bytes at the start */
	FATHOM_SITE_MCOUNT_NOP = 8, /**< such a NOP behind the prologue */
	/** a call of __cyg_profile_func_enter, or of __cyg_profile_func_exit at returns */
	FATHOM_SITE_CYG_PROFILE = 9
};

/** One more than the largest kind, with room for kinds to come. */
#define FATHOM_SITE_KINDS 16

/** Where in its function a site is. */
enum fathom_site_place {
	FATHOM_SITE_ENTRY = 0,
	FATHOM_SITE_RETURN = 1,
	FATHOM_SITE_TAIL_CALL = 2 /**< before a jump to another function */
};

/** Contents of a slot. */
enum fathom_site_content {
	FATHOM_SITE_NOPS = 0, /**< NOPs only */
	FATHOM_SITE_CALL = 1, /**< one call */
	FATHOM_SITE_SLED = 2  /**< a jump over NOPs, or a return before NOPs (XRay) */
};

/** Bits of fathom_site.flags. */
enum fathom_site_flag {
	/** An entry whose slot lies behind instructions that change the stack or registers. */
	FATHOM_SITE_BEHIND_PROLOGUE = 1u << 0,
	/** The memory of the process does not hold these bytes: somebody has replaced them. */
	FATHOM_SITE_CHANGED = 1u << 1,
	/** FATHOM_SITE_CYG_PROFILE: what is called there is told nothing (clang). */
	FATHOM_SITE_BARE = 1u << 2
};

/** Why a record is not believed. */
enum fathom_site_refusal {
	FATHOM_REFUSED_NOT_CODE = 1,    /**< it does not point to code */
	FATHOM_REFUSED_OTHER_CODE = 2,  /**< there is other code than what it promises */
	FATHOM_REFUSED_NO_FUNCTION = 3, /**< it belongs to no function that is known */
	FATHOM_REFUSED_NO_SLOT = 4,     /**< all its NOPs are in front of the function */
	FATHOM_REFUSED_OVERLAP = 5,     /**< it points into the slot of another one */
	FATHOM_REFUSED_AMBIGUOUS = 6,   /**< a NOP that may be padding */
	FATHOM_REFUSED_NO_DECODER = 7   /**< the decoder library is not installed */
};

/** One more than the largest refusal, with room for refusals to come. */
#define FATHOM_SITE_REFUSALS 16

/** It is not known how far the stack pointer has moved. */
#define FATHOM_SITE_NO_FRAME UINT16_MAX

/** One site. Addresses are as for fathom_symbolize(). What it points to belongs to the sites. */
struct fathom_site {
	uint64_t address;        /**< of the slot */
	uint64_t function;       /**< of the function's entry */
	uint64_t module_address; /**< of the slot, as in struct fathom_answer */
	/** Names the function; NULL without FATHOM_SITES_NAMES. */
	const struct fathom_answer *answer;
	const uint8_t *bytes;  /**< of the slot, as in the file: size bytes */
	const uint8_t *prefix; /**< NOPs directly in front of the function: prefix_size bytes */
	uint32_t module;       /**< index of its module */
	uint16_t size;         /**< bytes of the slot */
	uint16_t prefix_size;  /**< bytes in front of the function that belong to the site */
	uint8_t kind;          /**< enum fathom_site_kind */
	uint8_t place;         /**< enum fathom_site_place */
	uint8_t content;       /**< enum fathom_site_content */
	uint8_t flags;         /**< FATHOM_SITE_ bits */
	/**
	 * FATHOM_SITE_CYG_PROFILE: bytes from the stack pointer to the function's return address,
	 * or FATHOM_SITE_NO_FRAME.
	 */
	uint16_t frame;
	uint8_t reserved[2];
};

/** Bits of fathom_call_slot.flags. */
enum fathom_slot_flag {
	/** Code calls through it itself (-fno-plt); else the procedure linkage table does. */
	FATHOM_SLOT_DIRECT = 1u << 0,
	/** The function need not be anywhere. */
	FATHOM_SLOT_WEAK = 1u << 1,
	/** Its symbol is said to be a function. */
	FATHOM_SLOT_FUNCTION = 1u << 2,
	/** The function is one by which parts of the C library call each other (GLIBC_PRIVATE). */
	FATHOM_SLOT_PRIVATE = 1u << 3
};

/** Why calls through a slot are not recorded. */
enum fathom_slot_refusal {
	/** Code takes what it holds as data: pointers to functions must stay equal. */
	FATHOM_SLOT_POINTER = 1,
	FATHOM_SLOT_MAY_BE_NOWHERE = 2, /**< the function need not be anywhere, and code may ask */
	FATHOM_SLOT_NOT_CALLED = 3      /**< no code that calls through it was found */
};

/** A slot by which a module calls a function of another one. What it points to is the sites'. */
struct fathom_call_slot {
	uint64_t address;
	uint64_t module_address; /**< as in struct fathom_answer */
	uint64_t relocation;     /**< address of its relocation, by which it is filled */
	/**
	 * Address of the operand of its stub, 4 bytes, by which calls are led elsewhere, as code
	 * may take what the slot holds as data; 0: the slot itself is.
	 */
	uint64_t operand;
	const char *symbol; /**< of the function; as linked without FATHOM_SITES_NAMES */
	const char *linkage_name;
	uint32_t module; /**< index of its module */
	uint8_t flags;   /**< FATHOM_SLOT_ bits */
	uint8_t refusal; /**< enum fathom_slot_refusal; 0: calls through it can be recorded */
	uint8_t reserved[2];
};

/** A module, with or without sites. */
struct fathom_site_module {
	const char *path;
	uint64_t bias;        /**< address - bias is the address as stated in the file */
	size_t first;         /**< index of its first site */
	size_t count;         /**< number of its sites, which follow each other */
	uint32_t machine;     /**< EM_ of elf.h */
	uint32_t n_functions; /**< known starts of functions */
	uint32_t n_kind[FATHOM_SITE_KINDS];       /**< number of sites of each kind */
	uint32_t n_refused[FATHOM_SITE_REFUSALS]; /**< number of records not believed, by reason */
	size_t first_slot;                        /**< index of its first slot */
	size_t slots; /**< number of its slots, which follow each other */
};

/** Bits of fathom_sites_options.flags. */
enum fathom_sites_flag {
	/** Name the functions of the sites. */
	FATHOM_SITES_NAMES = 1u << 0,
	/** With names: no demangling. */
	FATHOM_SITES_NO_DEMANGLE = 1u << 1,
	/** List also the slots by which modules call functions of others (x86-64). */
	FATHOM_SITES_CALLS = 1u << 2
};

/** Options; as struct fathom_options. */
struct fathom_sites_options {
	size_t size;
	uint32_t flags;
	uint32_t reserved1;
	uint64_t reserved[4];
};

/** Sites by module, within it by address. Opaque; independent of the target once made. */
struct fathom_sites;

/**
 * Lists the sites of all modules of @target. @options may be NULL.
 *
 * Modules for other machines than x86-64 and aarch64 have no sites. Neither has code that a process
 * makes itself.
 *
 * Safety: mt-safe
 * Memory: *@ret_sites is the caller's, to be freed with fathom_sites_free()
 * Returns: FATHOM_OK, also when there are no sites; FATHOM_E_ARGUMENT; FATHOM_E_UNSUPPORTED for the
 *	running kernel; FATHOM_E_LIMIT when a module has more than FATHOM_SITES_MAX sites;
 *	FATHOM_E_MEMORY; for a process also what fathom_symbolize() returns
 */
FATHOM_API fathom_err fathom_trace_sites(struct fathom_target *target,
					 const struct fathom_sites_options *options,
					 struct fathom_sites **ret_sites,
					 struct fathom_errinfo *reterr);

/** Maximum number of sites of one module. */
#define FATHOM_SITES_MAX (1u << 24)

/**
 * Safety: neither
 * Memory: frees @sites, which may be NULL, and all that was reached through it
 * Returns: nothing
 */
FATHOM_API void fathom_sites_free(struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of sites
 */
FATHOM_API size_t fathom_sites_count(const struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: the site belongs to @sites
 * Returns: site @i, which must be below the count
 */
FATHOM_API const struct fathom_site *fathom_sites_get(const struct fathom_sites *sites, size_t i);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of slots; 0 without FATHOM_SITES_CALLS
 */
FATHOM_API size_t fathom_sites_slot_count(const struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: the slot belongs to @sites
 * Returns: slot @i, which must be below their count
 */
FATHOM_API const struct fathom_call_slot *fathom_sites_slot_get(const struct fathom_sites *sites,
								size_t i);

/**
 * Returns the word for why a slot is left out, such as "pointer"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_slot_refusal_name(enum fathom_slot_refusal refusal);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of modules
 */
FATHOM_API size_t fathom_sites_module_count(const struct fathom_sites *sites);

/**
 * Safety: mt-safe
 * Memory: the module belongs to @sites
 * Returns: module @i, which must be below their count
 */
FATHOM_API const struct fathom_site_module *fathom_sites_module_get(
	const struct fathom_sites *sites, size_t i);

/**
 * Returns the word for a kind, such as "patchable"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_site_kind_name(enum fathom_site_kind kind);

/**
 * Returns the word for a place, such as "entry"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_site_place_name(enum fathom_site_place place);

/**
 * Returns the word for a refusal, such as "not-code"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_site_refusal_name(enum fathom_site_refusal refusal);

/** When the hook reads the clock. */
enum fathom_trace_clock {
	FATHOM_TRACE_CLOCK_FULL = 0, /**< at each event */
	/** At one in 64 of each thread: others have the time of the last one before. */
	FATHOM_TRACE_CLOCK_SPARSE = 1,
	FATHOM_TRACE_CLOCK_NONE = 2 /**< never: between threads no order is known */
};

/** Types of events. */
enum fathom_trace_type {
	FATHOM_TRACE_CALL = 1,   /**< a function was entered */
	FATHOM_TRACE_RETURN = 2, /**< a function returns */
	FATHOM_TRACE_SIGNAL = 3, /**< a signal is delivered; its name is in text */
	FATHOM_TRACE_START = 4,  /**< a thread, a process or a program begins, as text says */
	FATHOM_TRACE_EXIT = 5,   /**< a thread or process has ended, as text says */
	FATHOM_TRACE_LOST = 6,   /**< count events found no room */
	FATHOM_TRACE_NOTE = 7,   /**< something about the trace itself, in text */
	/** A call that a call selected by FATHOM_TRACE_AT_STACK is within; the outermost last. */
	FATHOM_TRACE_CALLER = 8,
	/** A system call has ended, or never will (exit_group()); its duration is known. */
	FATHOM_TRACE_SYSCALL = 9,
	/** A system call begins (FATHOM_SYSCALLS_ENTRIES). */
	FATHOM_TRACE_SYSCALL_ENTRY = 10
};

/** How a system call was seen. */
enum fathom_syscall_way {
	FATHOM_SYSCALL_BY_PTRACE = 1, /**< the thread was stopped by ptrace(2), twice */
	/**
	 * The instruction leads to code that was put into the program, and makes and records the
	 * call: the thread was not stopped.
	 */
	FATHOM_SYSCALL_BY_REWRITING = 2,
	/**
	 * The kernel sent the thread SIGSYS for it (syscall user dispatch), and the handler made
	 * and recorded the call: of a program that traces itself.
	 */
	FATHOM_SYSCALL_BY_DISPATCH = 3
};

/** How a system call has ended. */
enum fathom_syscall_outcome {
	FATHOM_SYSCALL_BEGINS = 0,    /**< not yet */
	FATHOM_SYSCALL_HAS_ENDED = 1, /**< with a result */
	FATHOM_SYSCALL_NEVER_ENDS = 2 /**< its thread has ended in it */
};

/** The most arguments of a system call. */
#define FATHOM_SYSCALL_ARGUMENTS 6

/** An argument of a system call, as it is shown. */
struct fathom_syscall_argument_text {
	const char *name; /**< as the kernel's sources call it; NULL: none is known */
	uint32_t begin;   /**< offset of its text in that of the call */
	uint32_t end;
};

/** A system call. What it points to is valid during the call that tells of it. */
struct fathom_trace_syscall {
	const char *name; /**< such as "openat"; "syscall_471" if the table has none */
	/** The call, with what it has led to; not ended by a NUL. */
	const char *text;
	uint32_t text_size;   /**< bytes */
	uint32_t entry_size;  /**< bytes of the text that are known before the call */
	uint32_t exit_size;   /**< bytes up to the parenthesis behind the arguments */
	uint32_t result_from; /**< offset in the text of the result */
	const char *error;    /**< such as "ENOENT"; NULL: it did not fail */
	uint64_t system_ns;   /**< processor time that the kernel has spent in it */
	uint64_t number;
	int64_t result; /**< as the kernel has it: -4095 to -1 are errors */
	uint64_t values[FATHOM_SYSCALL_ARGUMENTS];
	uint64_t pc;          /**< behind the instruction that calls the kernel; 0: unknown */
	uint32_t machine;     /**< EM_ of elf.h: of whose calls the number is */
	uint32_t n_arguments; /**< that are shown */
	struct fathom_syscall_argument_text arguments[FATHOM_SYSCALL_ARGUMENTS];
	const void *record; /**< what text is made of; opaque */
	uint32_t record_size;
	uint8_t outcome;     /**< enum fathom_syscall_outcome */
	uint8_t way;         /**< enum fathom_syscall_way */
	uint8_t is_injected; /**< 1: the call was not made, its result was given */
	uint8_t is_delayed;  /**< 1: it was held up */
	/** The bytes that it has read or written, as lines of text, if that was asked for. */
	const char *dump;
	uint32_t dump_size; /**< bytes */
};

/** Bits of fathom_trace_syscalls.flags. */
enum fathom_syscalls_flag {
	/** Of functions nothing is told, and nothing is put into programs. */
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

/** Frames that are read of one stack, as strace(1) does. */
#define FATHOM_SYSCALLS_FRAMES 256

/** Bytes of strings that are shown, unless it is said. */
#define FATHOM_SYSCALLS_STRING_LIMIT 32

/** Choice of system calls (x86-64), and how they are shown. */
struct fathom_trace_syscalls {
	size_t size;
	uint32_t flags;        /**< FATHOM_SYSCALLS_ */
	uint32_t string_limit; /**< bytes of strings and elements of arrays that are shown */
	/**
	 * NULL: all. Names, classes as "%file" (see strace(1)) and regular expressions as "/^open",
	 * between commas; behind "!" all but these.
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
	/** Descriptors between commas, "all"; behind "!" all but these: NULL: none. */
	const char *dump_reads;  /**< have all bytes that are read from them */
	const char *dump_writes; /**< likewise, written to them */
	/**
	 * enum fathom_syscall_way; 0: by ptrace(2). By rewriting: of a program that is run, and its
	 * children; calls that cannot be recorded so are seen by ptrace(2). It gets no rights by
	 * exec() then, and ends if the tracer ends, as with FATHOM_SYSCALLS_FILTER.
	 */
	uint32_t way;
	uint32_t reserved1;
	uint64_t reserved[1];
};

/** Actions when a function is called. */
enum fathom_trace_action {
	FATHOM_TRACE_AT_START = 1u << 0, /**< tell of events from this call on; of none before */
	FATHOM_TRACE_AT_STOP = 1u << 1,  /**< tell of none from this call on */
	FATHOM_TRACE_AT_STACK = 1u << 2, /**< tell of the calls that it is within, too */
	/** Tell what is kept (FATHOM_TRACE_LATEST). */
	FATHOM_TRACE_AT_DUMP = 1u << 3
};

/** A function of which events are told. What it points to belongs to the run. */
struct fathom_trace_function {
	const char *name;         /**< demangled, or "??" */
	const char *linkage_name; /**< as linked; NULL where only a plain name is known */
	/** Path of the file, as the system reports it; of a call of a library, of the caller's. */
	const char *module;
	uint64_t address;        /**< of its entry, in the process; 0: a call of a library */
	uint64_t module_address; /**< the same as stated in the file */
	/** Counted from 0 through the run; another one if its file is loaded again. */
	uint32_t number;
	uint32_t name_size; /**< bytes of name */
};

/** A frame of the stack of a thread that makes a system call. */
struct fathom_trace_frame {
	struct fathom_stack_frame frame;
	/** of the pc in the file of its module; FATHOM_NO_ADDRESS: it is in none */
	uint64_t file_offset;
	/** Counted from 0 through the run; frames with the same pc and the same names have one. */
	uint32_t number;
	uint32_t reserved;
};

/** The stack of a thread that makes a system call. */
struct fathom_trace_stack {
	const struct fathom_trace_frame *frames; /**< the innermost first */
	size_t n_frames;                         /**< at most FATHOM_SYSCALLS_FRAMES */
	uint8_t stop;                            /**< enum fathom_stop */
	uint8_t reserved[7];
};

/** Within which call that was told of an event is. */
enum fathom_trace_parent {
	/** There is none, or it is not known: the direct caller was not recorded. */
	FATHOM_TRACE_PARENT_UNKNOWN = 0,
	FATHOM_TRACE_PARENT_DIRECT = 1, /**< the parent is the direct caller */
	/** The direct caller was not recorded, or not told of; the parent has not returned. */
	FATHOM_TRACE_PARENT_GAP = 2
};

/** An event. What it points to is valid during the call that tells of it. */
struct fathom_trace_event {
	uint64_t ns;    /**< since the run began */
	uint64_t stack; /**< bytes of stack in use where the function was entered */
	uint64_t count; /**< calls: how often it follows itself, at least 1; lost: events */
	/** return: since the call, 0: that was not recorded; system call: from begin to end */
	uint64_t duration_ns;
	/** call, return; of a system call one that stands for it; else NULL */
	const struct fathom_trace_function *function;
	const char *text;   /**< of other types; else NULL */
	const char *thread; /**< name of the thread, as it was when it began to be told of */
	int32_t pid;
	int32_t tid;
	/**
	 * Recorded calls that it may be within: they lie above it on the stack. Those that are not
	 * its parent, nor its parent's, may have returned.
	 */
	uint32_t depth;
	uint8_t type; /**< enum fathom_trace_type */
	/** Which of the thread's stacks it is on, in the order in which they were seen. */
	uint8_t stack_number;
	uint8_t actions; /**< FATHOM_TRACE_AT_ that this call was selected for */
	uint8_t parent;  /**< call, system call: enum fathom_trace_parent */
	const struct fathom_trace_syscall *syscall; /**< system calls; else NULL */
	/** exit: as waitpid(2) has it; signal: its number */
	int32_t status;
	/** of the parent, the last call of that depth on this stack that was told of */
	uint32_t parent_depth;
	/**
	 * The stack of the thread when a system call ended, when it began one that does not return
	 * here (exit, exec), or when a signal came: with FATHOM_SYSCALLS_STACKS; else NULL.
	 */
	const struct fathom_trace_stack *call_stack;
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
	 * Of processes that are attached to: one ends only when all its events were told. So a log
	 * is whole when whoever waits for the process learns of its end.
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
	/** NULL, or called once processes are attached to: what they call from now on is told. */
	void (*ready)(void *data);
	/**
	 * NULL, or called when all was told. With FATHOM_TRACE_HOLD_ENDS the process that ended
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
	 * thread of its own. When control is asked next, all its events can be told. With
	 * FATHOM_TRACE_HOLD_ENDS the process is not gone before that was done.
	 */
	void (*ended)(void *data, int32_t pid, int status);
	/** System calls, too; NULL: none. Of a file, only how they are shown. */
	const struct fathom_trace_syscalls *syscalls;
	/** Run the program with the rights of this user, by name, as root only may. NULL: ours. */
	const char *user;
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
 * Runs @argv, found along PATH, and tells of each call that its sites record: of the program, its
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
 * Attaches to the @n processes @pids, which run, and tells of each call that their sites record
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
 * Reads the trace file at @path (FATHOM_TRACE_FILE) and tells of its events, on the calling thread.
 * Of @options only what selects events counts: only, under, except, depth, at, and of the flags
 * FATHOM_TRACE_NO_FOLD and FATHOM_TRACE_NO_CHILDREN; "FILE:" is not known here. A file that ends in
 * the middle is told of up to there: what was written last, before it was full or its writer
 * killed, may be cut.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND or FATHOM_E_OS when it cannot be read;
 *	FATHOM_E_FORMAT when it is no trace file, or broken: events before that were told;
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
 * out, and +1 and -1 are a scope. @change 0 only asks.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: the count before; 0 if the thread is not traced
 */
FATHOM_API int fathom_trace_thread(int change);

/** Formats that events can be written in. */
enum fathom_trace_format {
	FATHOM_TRACE_FILE = 1, /**< what fathom_trace_read() reads; docs/trace.md describes it */
	FATHOM_TRACE_PERFETTO = 2,     /**< protobuf of Perfetto, for ui.perfetto.dev */
	FATHOM_TRACE_CHROME = 3,       /**< JSON of the Trace Event Format, for chrome://tracing */
	FATHOM_TRACE_COLLAPSED = 4,    /**< a line for each path of calls, for flame graphs */
	FATHOM_TRACE_DOT = 5,          /**< a graph of who calls whom, for dot of Graphviz */
	FATHOM_TRACE_TREE = 6,         /**< each path of calls as an indented line, for people */
	FATHOM_TRACE_TREE_JSON = 7,    /**< the same as JSON Lines */
	FATHOM_TRACE_TEXT = 8,         /**< a line for each event, for people */
	FATHOM_TRACE_JSON = 9,         /**< an object for each event, as JSON Lines */
	FATHOM_TRACE_COUNTS = 10,      /**< a line for each function: calls, and times of returns */
	FATHOM_TRACE_COUNTS_JSON = 11, /**< the same as JSON Lines */
	/** FATHOM_TRACE_TEXT, with the nanoseconds that system calls took */
	FATHOM_TRACE_TEXT_DURATIONS = 12
};

/** Takes @n bytes that a writer has written; returns 0 if it fails. */
typedef int (*fathom_trace_write_fn)(void *data, const void *bytes, size_t n);

/** Writes events in a format. Opaque. */
struct fathom_trace_writer;

/**
 * Makes a writer, which passes what it writes to @write; that returns 0 if it fails. Folded calls
 * are written as one, only text and FATHOM_TRACE_JSON say how many, and only counts count them all;
 * give FATHOM_TRACE_NO_FOLD where each is wanted with its time.
 *
 * Safety: mt-safe
 * Memory: *@ret_writer is the caller's, to be freed with fathom_trace_writer_free()
 * Returns: FATHOM_OK, FATHOM_E_ARGUMENT, FATHOM_E_MEMORY; FATHOM_E_UNSUPPORTED for a format that
 *	this build lacks
 */
FATHOM_API fathom_err fathom_trace_writer_create(enum fathom_trace_format format,
						 fathom_trace_write_fn write, void *data,
						 struct fathom_trace_writer **ret_writer,
						 struct fathom_errinfo *reterr);

/**
 * Takes events: it can be fathom_trace_options.events, with the writer as data.
 *
 * Safety: neither
 * Memory: none
 * Returns: 0 after a failure: FATHOM_E_MEMORY or that of write
 */
FATHOM_API int fathom_trace_writer_take(void *writer, const struct fathom_trace_event *events,
					size_t n);

/**
 * Keeps the last @n events that @writer takes from now on, to be written when
 * fathom_trace_writer_tell() is called, or at a call that FATHOM_TRACE_AT_DUMP selects. What is
 * kept at the end is not written.
 *
 * Safety: neither
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT if @n is 0; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_trace_writer_keep(struct fathom_trace_writer *writer, uint32_t n,
					       struct fathom_errinfo *reterr);

/**
 * Writes what @writer keeps, the oldest event first, and forgets it.
 *
 * Safety: neither
 * Memory: none
 * Returns: 0 after a failure: FATHOM_E_MEMORY or that of write
 */
FATHOM_API int fathom_trace_writer_tell(struct fathom_trace_writer *writer);

/**
 * Writes what stands at the end. @result may be NULL: it is not known.
 *
 * Safety: neither
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_OS if a write has failed; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_trace_writer_finish(struct fathom_trace_writer *writer,
						 const struct fathom_trace_result *result,
						 struct fathom_errinfo *reterr);

/**
 * Safety: neither
 * Memory: frees @writer, which may be NULL
 * Returns: nothing
 */
FATHOM_API void fathom_trace_writer_free(struct fathom_trace_writer *writer);

/**
 * Returns the word for a type, such as "call"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_trace_type_name(enum fathom_trace_type type);

/**
 * Returns the word for a way of seeing system calls, as --way takes it: "ptrace", "rewrite" or
 * "dispatch"; "" for others.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_syscall_way_name(enum fathom_syscall_way way);

#ifdef __cplusplus
}
#endif

#endif
