/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Events of a trace, of a run or of a file, and the formats that they are written in.
 */
#ifndef FATHOM_TRACE_EVENTS_H
#define FATHOM_TRACE_EVENTS_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/stack.h>

#ifdef __cplusplus
extern "C" {
#endif

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
enum fathom_syscall_method {
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

/** A system call. What it points to is valid during the call that reports it. */
struct fathom_trace_syscall {
	const char *name; /**< such as "openat"; "syscall_471" if the table has none */
	/** The call, with what it has led to; not ended by a NUL. */
	const char *text;
	uint32_t text_size;   /**< bytes */
	uint32_t entry_size;  /**< bytes of the text that are known before the call */
	uint32_t exit_size;   /**< bytes up to the parenthesis after the arguments */
	uint32_t result_from; /**< offset in the text of the result */
	const char *error;    /**< such as "ENOENT"; NULL: it did not fail */
	uint64_t system_ns;   /**< processor time that the kernel has spent in it */
	uint64_t number;
	int64_t result; /**< as the kernel has it: -4095 to -1 are errors */
	uint64_t values[FATHOM_SYSCALL_ARGUMENTS];
	uint64_t pc;          /**< after the instruction that calls the kernel; 0: unknown */
	uint32_t machine;     /**< EM_ of elf.h: of whose calls the number is */
	uint32_t n_arguments; /**< that are shown */
	struct fathom_syscall_argument_text arguments[FATHOM_SYSCALL_ARGUMENTS];
	const void *record; /**< what text is made of; opaque */
	uint32_t record_size;
	uint8_t outcome;     /**< enum fathom_syscall_outcome */
	uint8_t method;      /**< enum fathom_syscall_method */
	uint8_t is_injected; /**< 1: the call was not made, its result was given */
	uint8_t is_delayed;  /**< 1: it was held up */
	/** The bytes that it has read or written, as lines of text, if that was asked for. */
	const char *dump;
	uint32_t dump_size; /**< bytes */
};

/** Frames that are read of one stack, as strace(1) does. */
#define FATHOM_SYSCALLS_FRAMES 256

/** Actions when a function is called. */
enum fathom_trace_action {
	FATHOM_TRACE_AT_START = 1u << 0, /**< tell of events from this call on; of none before */
	FATHOM_TRACE_AT_STOP = 1u << 1,  /**< tell of none from this call on */
	FATHOM_TRACE_AT_STACK = 1u << 2, /**< tell of the calls that it is within, too */
	/** Tell what is kept (FATHOM_TRACE_LATEST). */
	FATHOM_TRACE_AT_DUMP = 1u << 3
};

/** A function of which events are reported. What it points to belongs to the run. */
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

/** Within which call that was reported an event is. */
enum fathom_trace_parent {
	/** There is none, or it is not known: the direct caller was not recorded. */
	FATHOM_TRACE_PARENT_UNKNOWN = 0,
	FATHOM_TRACE_PARENT_DIRECT = 1, /**< the parent is the direct caller */
	/** The direct caller was not recorded, or not reported; the parent has not returned. */
	FATHOM_TRACE_PARENT_GAP = 2
};

/** An event. What it points to is valid during the call that reports it. */
struct fathom_trace_event {
	uint64_t ns;    /**< since the run began */
	uint64_t stack; /**< bytes of stack in use where the function was entered */
	uint64_t count; /**< calls: how often it follows itself, at least 1; lost: events */
	/** return: since the call, 0: that was not recorded; system call: from begin to end */
	uint64_t duration_ns;
	/** call, return; of a system call one that stands for it; else NULL */
	const struct fathom_trace_function *function;
	const char *text;   /**< of other types; else NULL */
	const char *thread; /**< name of the thread, as it was when it began to be reported */
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
	/** of the parent, the last call of that depth on this stack that was reported */
	uint32_t parent_depth;
	/**
	 * The stack of the thread when a system call ended, when it began one that does not return
	 * here (exit, exec), or when a signal came: with FATHOM_SYSCALLS_STACKS; else NULL.
	 */
	const struct fathom_trace_stack *call_stack;
};

struct fathom_trace_result;

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
	FATHOM_TRACE_TEXT_DURATIONS = 12,
	FATHOM_TRACE_PAGE = 13 /**< HTML: calls on a timeline, and sums, for a browser */
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
 * Returns the word for a capture method of system calls, as --method takes it: "ptrace", "rewrite"
 * or "dispatch"; "" for others.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_syscall_method_name(enum fathom_syscall_method method);

#ifdef __cplusplus
}
#endif

#endif
