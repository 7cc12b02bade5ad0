/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Stacks: how the threads of a process, core or snapshot got where they are.
 */
#ifndef FATHOM_STACK_H
#define FATHOM_STACK_H

#include <fathom/answer.h>
#include <fathom/death.h>
#include <fathom/target.h>
#include <fathom/trust.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Stacks of threads, at the moment they were read. Opaque. */
struct fathom_stacks;

/** Bits of fathom_stack_options.flags. */
enum fathom_stack_flag {
	FATHOM_STACK_NAMES_ONLY = 1u << 0,  /**< no files, lines or inlined calls */
	FATHOM_STACK_NO_DEMANGLE = 1u << 1, /**< names as they are linked */
	FATHOM_STACK_NATIVE = 1u << 2       /**< native frames only */
};

/** Kinds of frames. */
enum fathom_frame_kind {
	FATHOM_FRAME_NATIVE = 0,
	/**
	 * A function of a script, which an interpreter executes: pc is that of its instruction in
	 * the interpreter's own code; sp is known only if the frame stands in place of a native
	 * one. It is called by the next frame of this kind, or by native code between them
	 */
	FATHOM_FRAME_SCRIPT = 1,
	FATHOM_FRAME_RUNTIME = 2 /**< native, of the interpreter that executes a script */
};

/** Which threads of a live process may be stopped while they are read. */
enum fathom_stack_stop_mode {
	/**
	 * Only those that run, or whose stack cannot be followed without all registers; each for
	 * itself, for some microseconds; none whose system call would end early by it.
	 */
	FATHOM_STACK_STOP_AUTO = 0,
	FATHOM_STACK_STOP_NEVER = 1,
	FATHOM_STACK_STOP_ALL = 2 /**< all of them, together: the stacks are of one moment */
};

/** A frame of an interpreter. Texts are copied. */
struct fathom_interpreter_frame {
	const char *function; /**< never NULL */
	const char *file;     /**< NULL: not known */
	uint32_t line;        /**< 0: not known */
	uint32_t reserved;
};

/** Frames of an interpreter, in place of some native frames. */
struct fathom_interpreter_run {
	size_t size;     /**< sizeof(struct fathom_interpreter_run) */
	size_t n_native; /**< native frames that the run replaces, at least 1 */
	const struct fathom_interpreter_frame *frames; /**< the innermost first */
	size_t n_frames;                               /**< at least 1 */
	uint64_t reserved[2];
};

struct fathom_thread;

/** Options of reading stacks; as struct fathom_options. */
struct fathom_stack_options {
	size_t size;
	uint32_t flags;      /**< enum fathom_stack_flag */
	uint32_t stop;       /**< enum fathom_stack_stop_mode */
	const int32_t *tids; /**< the threads to read; NULL: all */
	size_t n_tids;
	uint32_t max_frames; /**< of one thread; default 10,000 */
	/**
	 * Milliseconds for threads to stop, in all; default 10,000. For those that wait for a
	 * processor: others are given up after 50 each.
	 */
	uint32_t deadline_ms;
	/**
	 * Called for each native frame of each thread, the innermost first, once all are named. If
	 * frame @first and some after it are an interpreter at work, fills *@run and returns 1:
	 * these frames become one, whose answer has the interpreter's frames. The next call is for
	 * the frame after them. Else it returns 0. @thread is not final yet: only its frames, tid
	 * and name count. NULL: not called.
	 */
	int (*interpret)(void *data, struct fathom_target *target,
			 const struct fathom_thread *thread, size_t first,
			 struct fathom_interpreter_run *run);
	void *interpret_data;
	/**
	 * Of a thread with more than max_frames, so many of the outermost frames are read, too, and
	 * those between are left out (fathom_thread.n_left_out); default 0
	 */
	uint32_t outer_frames;
	uint32_t reserved1;
	/**
	 * Called on the calling thread, at most once a second, while @n_threads have been asked to
	 * stop and have got no processor for it since @waited_ms. Returns 0 to wait on, up to
	 * deadline_ms; else they are given up. NULL: not called.
	 */
	int (*waiting)(void *data, size_t n_threads, uint32_t waited_ms);
	void *waiting_data;
	uint64_t reserved[1];
};

/** One physical frame. Inlined calls are in its answer. */
struct fathom_stack_frame {
	struct fathom_pc pc;
	uint64_t sp; /**< the stack pointer in this frame; FATHOM_NO_ADDRESS if unknown */
	const struct fathom_answer *answer; /**< its names; never NULL */
	uint8_t trust;                      /**< enum fathom_trust */
	/**
	 * 1: a signal trampoline; its callee is the handler, its caller what the signal interrupted
	 */
	uint8_t is_signal_return;
	uint8_t kind; /**< enum fathom_frame_kind */
	uint8_t reserved[5];
	/** the interpreter, such as "python 3.11"; NULL: the frame is native */
	const char *runtime;
};

/** The registers of a thread, by the DWARF numbers of its machine's psABI. */
struct fathom_thread_registers {
	const uint64_t *value;
	uint64_t known;   /**< bit i: value[i] is known */
	uint32_t n;       /**< registers in value */
	uint32_t machine; /**< EM_ of elf.h */
};

/** One thread. */
struct fathom_thread {
	int32_t pid; /**< of its process; 0: not known */
	int32_t tid;
	const char *name; /**< NULL: not known */
	/** the system call that it is in, such as "futex"; NULL: none, or not known */
	const char *syscall;
	const char *waits_for;                   /**< what for, in words; NULL: not known */
	const struct fathom_stack_frame *frames; /**< the innermost first */
	size_t n_frames;
	struct fathom_thread_registers registers;
	uint64_t pause_ns;      /**< how long it was stopped; 0: it was not */
	uint64_t fault_address; /**< that the signal is about; FATHOM_NO_ADDRESS: none */
	int64_t syscall_number; /**< -1: none, or not known */
	int32_t owner;          /**< TID or PID that it waits for; 0: not known */
	/**
	 * of a core: the signal that it was about to take, mostly what ended it; else the fault
	 * (SIGSEGV, SIGBUS, SIGFPE, SIGILL) whose handler the thread runs; 0: none, or not proven
	 */
	int32_t signal;
	int32_t signal_code;   /**< si_code of that signal */
	char state;            /**< R S D T t Z X I as in proc(5); 0: not known */
	uint8_t stop;          /**< enum fathom_stop; without frames FATHOM_STOP_NONE */
	uint8_t reason;        /**< enum fathom_reason: why there are no frames, or not all */
	uint8_t was_restarted; /**< 1: its system call was started anew after the stop */
	const char *failed;    /**< why it could not be read, in words; NULL: it was */
	size_t n_left_out;     /**< frames between the inner and the outer ones; 0: none */
	size_t left_out_at;    /**< index of the first frame after those that are left out */
	/**
	 * enum fathom_trust of the first guess among them; FATHOM_TRUST_REGISTERS: all are exact
	 */
	uint8_t left_out_trust;
	uint8_t is_kernel_worker; /**< 1: of io_uring or vhost: it has no stack but the kernel's */
	uint8_t reserved[6];
	/**
	 * Why it died, or is about to: of a core the thread that the signal ended; else one that
	 * runs the handler of a fault, or whose stack goes through abort() or std::terminate().
	 * NULL: it does not die
	 */
	const struct fathom_death *died;
	/**
	 * Why frames of an interpreter that runs in this thread are not there, or stand after all
	 * native ones; NULL: they are where they belong, or there is none
	 */
	const char *script_failed;
};

/**
 * Reads the stacks of the threads of @target: a process, a core with registers, or a snapshot of
 * fathom_snapshot_write_stacks(). @options may be NULL.
 *
 * Threads of a process that sleep in a system call are read while they sleep. All others are
 * stopped one after the other, copied, and let go before they are unwound (see enum
 * fathom_stack_stop_mode). That takes ptrace(2), so a process that another debugger traces, or that
 * the caller may not trace, can only be read where it sleeps; its threads say so.
 *
 * Where an interpreter runs (CPython 3.8 to 3.14; PHP 7.4, 8.1 to 8.4; on x86-64 Lua 5.3 and 5.4,
 * Ruby 2.7, 3.0 to 3.4), the frames of its functions stand before the native frame of the loop that
 * executes them (enum fathom_frame_kind), each found by an address on the native stack: none is
 * matched by counting, or by names. Functions of JavaScript (node 16, 18, 20, 22 on x86-64) stand
 * in place of the native frames that they are.
 *
 * Each frame says how it was found (enum fathom_trust), each thread why its stack ends (enum
 * fathom_stop): only FATHOM_STOP_ENTRY is a whole stack. One of which frames are left out has
 * another: FATHOM_STOP_LIMIT if it was followed to its entry.
 *
 * Safety: mt-safe
 * Memory: *@ret_stacks is the caller's, to be freed with fathom_stacks_free(); it outlives @target
 * Returns: FATHOM_OK, also if some threads could not be read; FATHOM_E_ARGUMENT for options
 *	that this version does not know; FATHOM_E_UNSUPPORTED if @target has no threads (a file)
 *	or its machine is not x86-64, i386 or aarch64; FATHOM_E_NOT_FOUND for a tid that it does
 *	not have; FATHOM_E_CHANGED if the process became another program meanwhile; FATHOM_E_OS;
 *	FATHOM_E_MEMORY; FATHOM_E_CANCELLED
 */
FATHOM_API fathom_err fathom_stacks_capture(struct fathom_target *target,
					    const struct fathom_stack_options *options,
					    struct fathom_stacks **ret_stacks,
					    struct fathom_errinfo *reterr);

/**
 * Writes a snapshot as fathom_snapshot_write() does, with the stacks of @target's threads:
 * fathom_stacks_capture() reads them as it does here, with @options, and finds the same later in
 * the snapshot: it has the registers and stacks, and what else leads from frame to frame.
 *
 * Safety: mt-safe
 * Memory: borrows all arguments
 * Returns: as fathom_stacks_capture() and fathom_snapshot_write() do
 */
FATHOM_API fathom_err fathom_snapshot_write_stacks(struct fathom_target *target,
						   const struct fathom_stack_options *options,
						   const char *path, struct fathom_errinfo *reterr);

/** The state of a process, also of one that is no target: a kernel thread, or a zombie. */
struct fathom_process_state {
	size_t size;
	char name[64]; /**< that of its first thread, or what a kernel thread is called */
	int32_t pid;
	int32_t parent;           /**< the process that started it, or has adopted it */
	char state;               /**< of its first thread: R S D T t Z X I as in proc(5) */
	uint8_t is_kernel_thread; /**< 1: it has no stack but the kernel's */
	uint8_t has_ended;        /**< 1: all of its threads have: a zombie */
	uint8_t reserved[5];
};

/**
 * Reads the state of process @pid, a number of the PID namespace of /proc, to *@ret, whose size is
 * set.
 *
 * Safety: mt-safe
 * Memory: writes *@ret only
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT for a size that this version does not know;
 *	FATHOM_E_NOT_FOUND if there is no such process; FATHOM_E_OS if /proc does not tell
 */
FATHOM_API fathom_err fathom_process_state_read(int32_t pid, struct fathom_process_state *ret,
						struct fathom_errinfo *reterr);

/**
 * The registers of a thread at some moment, and a copy of its stack: what a sample of perf has
 * (PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER).
 */
struct fathom_stack_sample {
	size_t size;
	struct fathom_thread_registers registers; /**< pc and sp must be known */
	const void *stack;                        /**< the copy */
	uint64_t stack_address;                   /**< where its first byte was */
	size_t stack_size;                        /**< bytes of it */
	int32_t tid;                              /**< what the thread is called in the answer */
	uint32_t reserved;
};

/**
 * Unwinds @n samples of threads of @target, a process, core or snapshot: thread i of the result is
 * that of @samples[i]. Of the stack only the copies are read, because the thread has run on; where
 * one ends, the walk does (FATHOM_STOP_UNREADABLE). Code is what @target has now. Of @options the
 * flags, max_frames and interpret count; it may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_stacks is the caller's, to be freed with fathom_stacks_free(); it keeps nothing of
 *	@samples
 * Returns: as fathom_stacks_capture(); FATHOM_E_ARGUMENT, too, for a sample of another machine than
 *	the target's, or without pc and sp
 */
FATHOM_API fathom_err fathom_stacks_unwind_samples(struct fathom_target *target,
						   const struct fathom_stack_options *options,
						   const struct fathom_stack_sample *samples,
						   size_t n, struct fathom_stacks **ret_stacks,
						   struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe
 * Memory: none
 * Returns: the number of threads
 */
FATHOM_API size_t fathom_stacks_count(const struct fathom_stacks *stacks);

/**
 * Returns thread @i, below fathom_stacks_count().
 *
 * Safety: mt-safe
 * Memory: the thread and all that it points to belong to @stacks
 * Returns: the thread
 */
FATHOM_API const struct fathom_thread *fathom_stacks_get(const struct fathom_stacks *stacks,
							 size_t i);

/**
 * Frees @stacks, which may be NULL.
 *
 * Safety: mt-safe per object
 * Memory: frees @stacks, its threads, frames and answers
 * Returns: nothing
 */
FATHOM_API void fathom_stacks_free(struct fathom_stacks *stacks);

/**
 * Returns the word for a trust, such as "frame-pointer"; "" for unknown values.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_trust_name(enum fathom_trust trust);

/**
 * Returns the word for a stop, such as "no-rule"; "" for FATHOM_STOP_NONE and unknown values.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_stop_name(enum fathom_stop stop);

/**
 * Returns what a stop means, such as "nothing says how to go on from here"; "" for FATHOM_STOP_NONE
 * and unknown values.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_stop_text(enum fathom_stop stop);

/**
 * Returns the name of register @number of @machine (EM_ of elf.h), such as "rbx"; NULL if unknown.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: the name or NULL
 */
FATHOM_API const char *fathom_register_name(uint32_t machine, uint32_t number);

/**
 * Returns the name of signal @number of this machine, such as "SIGSEGV"; NULL if it has none.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: the name or NULL
 */
FATHOM_API const char *fathom_signal_name(int32_t number);

/**
 * Returns the name of @code, why @signal was sent (si_code), such as "SEGV_MAPERR"; NULL if it has
 * none.
 *
 * Safety: as-safe
 * Memory: the text is static
 * Returns: the name or NULL
 */
FATHOM_API const char *fathom_signal_code_name(int32_t signal, int32_t code);

#ifdef __cplusplus
}
#endif

#endif
