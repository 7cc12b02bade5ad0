/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Recording profiles: samples of the threads of a program that is started, or of processes.
 */
#ifndef FATHOM_PROFILE_RECORD_H
#define FATHOM_PROFILE_RECORD_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Events that are sampled. Enumerators are never removed or renumbered. */
enum fathom_profile_event {
	/** cycles where the processor counts them, else task-clock */
	FATHOM_PROFILE_EVENT_DEFAULT = 0,
	FATHOM_PROFILE_EVENT_TASK_CLOCK = 1, /**< processor time, in nanoseconds */
	FATHOM_PROFILE_EVENT_CYCLES = 2      /**< cycles of the processor, by its counters */
};

/** Methods of sampling. Enumerators are never removed or renumbered. */
enum fathom_profile_method {
	FATHOM_PROFILE_METHOD_DEFAULT = 0, /**< the first that is permitted */
	FATHOM_PROFILE_METHOD_PERF = 1,    /**< perf events interrupt each thread while it runs */
	/**
	 * Threads that have run since the last look are looked at from outside: those that sleep as
	 * they are, those that run are stopped for a moment by ptrace(2).
	 */
	FATHOM_PROFILE_METHOD_POLLING = 2
};

/** Flags of recording. */
enum fathom_record_flags {
	FATHOM_RECORD_NO_WAITS = 1 << 0, /**< not how long, and for what, threads wait */
	/**
	 * All processes of the machine, by perf events only; pids are none. With a program, as long
	 * as that runs. The event is cpu-clock, in place of task-clock: a sample counts for its
	 * period, and what a processor did not run is not counted.
	 */
	FATHOM_RECORD_ALL = 1 << 1,
	/**
	 * The program has SIGPIPE and SIGXFSZ as they are by default, even if this process ignores
	 * them, as Python does; and it blocks no signal, even if the calling thread does.
	 */
	FATHOM_RECORD_RESTORE_SIGNALS = 1 << 2,
	/**
	 * A program that runs on after its recording is left to the caller, who finds its PID by
	 * the option pid, and waits for it.
	 */
	FATHOM_RECORD_LEAVE_PROGRAM = 1 << 3
};

/* Of <fathom/profile.h>. */
struct fathom_profile_module;
struct fathom_profile_thread;

/** A frame of a sample while it is recorded. Texts are NULL if they are not known. */
struct fathom_record_frame {
	/** as the file of the module states it; of other modules in the process, or the kernel */
	struct fathom_pc pc;
	const struct fathom_profile_module *module; /**< NULL: none */
	/**
	 * Of JIT code, the kernel, and what a thread waits for. Functions of files are found by the
	 * caller, by the module's path and pc.
	 */
	const char *name;
	const char *linkage_name;
	const char *file;
	uint32_t line;            /**< 0: not known */
	uint8_t trust;            /**< enum fathom_trust */
	uint8_t is_signal_return; /**< 1: a signal trampoline */
	uint8_t kind;             /**< enum fathom_frame_kind of <fathom/stack.h> */
	uint8_t reserved;
};

/** A sample while it is recorded: what <fathom/profile.h> has of it, with its stack. */
struct fathom_record_sample {
	const struct fathom_profile_thread *thread;
	const struct fathom_record_frame *frames; /**< the innermost first */
	size_t n_frames;
	uint64_t ns;     /**< since the recording began */
	uint64_t weight; /**< in the unit of the event; of waits in nanoseconds */
	uint8_t part;    /**< enum fathom_profile_part */
	uint8_t stop;    /**< enum fathom_stop: where the walk ended; ENTRY: the stack is whole */
	uint8_t reserved[6];
};

/**
 * Takes a sample, on the thread that records. What it points to is valid during the call; modules
 * and the texts of frames until the recording ends. Returns other than 0 to end the recording.
 */
typedef int (*fathom_record_sample_fn)(void *data, const struct fathom_record_sample *sample);

/** Takes @n bytes of a profile's file; returns 0 if it fails. */
typedef int (*fathom_profile_write_fn)(void *data, const void *bytes, size_t n);

/** Options of recording; as struct fathom_options. */
struct fathom_record_options {
	size_t size;
	uint32_t event; /**< enum fathom_profile_event */
	/** Samples of each second that a thread has a processor; default 997, polling 99. */
	uint32_t frequency;
	/** The program and its arguments, NULL-terminated; NULL: the processes of pids. */
	const char *const *argv;
	/**
	 * Processes, with all their threads and children from now on. The calling process can be
	 * one of them, by perf events only.
	 */
	const int32_t *pids;
	size_t n_pids;
	uint64_t for_ns;    /**< how long to record; default: until the program or all pids end */
	uint64_t max_bytes; /**< of the file: the recording ends there; default: no limit */
	/**
	 * Called ten times a second or more often, also while the program runs on after its
	 * recording; other than 0 ends the recording. NULL: not called.
	 */
	int (*is_done)(void *data);
	fathom_profile_write_fn write; /**< takes the file; NULL: there is none, but sample */
	void *data;                    /**< of is_done, write and sample */
	uint32_t method;               /**< enum fathom_profile_method */
	uint32_t flags;                /**< FATHOM_RECORD_ flags */
	/** Takes the PID of the program before is_done is called. NULL: it is not told. */
	int32_t *pid;
	/** Takes each sample, some milliseconds after it was taken. NULL: it is not called. */
	fathom_record_sample_fn sample;
	/**
	 * Three descriptors that the program has as 0, 1 and 2: its standard input, output and
	 * error. NULL: those of the calling process.
	 */
	const int32_t *streams;
	uint64_t reserved[3];
};

/**
 * The result of recording. While is_done and sample run, it has the event, the method and the sums
 * so far; bytes, wall_ns, recorder_ns, n_threads and status are known at the end.
 */
struct fathom_record_result {
	uint64_t n_samples; /**< with a stack */
	uint64_t n_whole;   /**< of them with a whole one */
	uint64_t lost;      /**< samples that found no room in the ring */
	uint64_t throttled; /**< how often the kernel has held samples back */
	uint64_t bytes;     /**< of the file */
	uint64_t weight;    /**< of the event, in its unit */
	uint64_t hidden;    /**< of that, in the kernel or not sampled: without a place */
	/**
	 * samples in an interpreter whose script was not read: its thread slept by then, or is of
	 * the calling process
	 */
	uint64_t scripts_missed;
	uint64_t waiting_ns;  /**< that all threads together have waited */
	uint64_t unseen_ns;   /**< of that, in waits whose stack was not read */
	uint64_t runnable_ns; /**< that all threads together have waited for a processor */
	uint64_t wall_ns;     /**< how long it was recorded */
	uint64_t recorder_ns; /**< processor time that recording has taken */
	uint32_t n_threads;   /**< threads that were sampled */
	/**
	 * threads of pids that were left out, as no more files can be open (RLIMIT_NOFILE), or as
	 * they may not be observed and others may
	 */
	uint32_t n_left_out;
	uint32_t event;  /**< enum fathom_profile_event that was sampled */
	uint32_t method; /**< enum fathom_profile_method that has sampled */
	/**
	 * of the program, as waitpid(2) has it; 0 for pids, if another thread has waited, or if the
	 * program was left
	 */
	int32_t status;
	uint8_t is_cut;           /**< 1: max_bytes ended the recording */
	uint8_t is_kernel_hidden; /**< 1: the kernel's own stacks were not permitted */
	uint8_t reserved[2];
};

/**
 * Records a profile, which it passes to write as it is made: each beginning of it that ends with a
 * record can be read. A program that is started is waited for, also where for_ns or is_done end the
 * recording before its end, unless FATHOM_RECORD_LEAVE_PROGRAM says otherwise. Names of JIT code
 * and of the kernel are found while they are there, all others by fathom_profile_resolve() or
 * fathom_profile_name_module().
 *
 * Safety: mt-safe; a program is started by fork(2)
 * Memory: none is kept
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT; FATHOM_E_NOT_FOUND: there is no such program or process;
 *	FATHOM_E_OS: no permission, or a failed write; FATHOM_E_UNSUPPORTED: this kernel has no
 *	perf events, or on this machine, or the calling process would poll itself;
 *	FATHOM_E_LIMIT: too many open files, or too little memory for samples; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_record_run(struct fathom *session,
					const struct fathom_record_options *options,
					struct fathom_record_result *ret,
					struct fathom_errinfo *reterr);

#ifdef __cplusplus
}
#endif

#endif
