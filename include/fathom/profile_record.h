/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Recording profiles: samples of the threads of a program that is started, or of processes.
 */
#ifndef FATHOM_PROFILE_RECORD_H
#define FATHOM_PROFILE_RECORD_H

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
	FATHOM_RECORD_ALL = 1 << 1
};

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
	fathom_profile_write_fn write; /**< takes the file */
	void *data;                    /**< of is_done and write */
	uint32_t method;               /**< enum fathom_profile_method */
	uint32_t flags;                /**< FATHOM_RECORD_ flags */
	/** Takes the PID of the program before is_done is called. NULL: it is not told. */
	int32_t *pid;
	uint64_t reserved[4];
};

/** The result of recording. */
struct fathom_record_result {
	uint64_t n_samples;   /**< with a stack */
	uint64_t n_whole;     /**< of them with a whole one */
	uint64_t lost;        /**< samples that found no room in the ring */
	uint64_t throttled;   /**< how often the kernel has held samples back */
	uint64_t bytes;       /**< of the file */
	uint64_t weight;      /**< of the event, in its unit */
	uint64_t hidden;      /**< of that, in the kernel or not sampled: without a place */
	uint64_t waiting_ns;  /**< that all threads together have waited */
	uint64_t unseen_ns;   /**< of that, in waits whose stack was not read */
	uint64_t runnable_ns; /**< that all threads together have waited for a processor */
	uint64_t wall_ns;     /**< how long it was recorded */
	uint64_t recorder_ns; /**< processor time that recording has taken */
	uint32_t n_threads;   /**< threads that were sampled */
	/** threads of pids that were left out, as no more files can be open (RLIMIT_NOFILE) */
	uint32_t n_left_out;
	uint32_t event;           /**< enum fathom_profile_event that was sampled */
	uint32_t method;          /**< enum fathom_profile_method that has sampled */
	int32_t status;           /**< of the program, as waitpid(2) has it; 0 for pids */
	uint8_t is_cut;           /**< 1: max_bytes ended the recording */
	uint8_t is_kernel_hidden; /**< 1: the kernel's own stacks were not permitted */
	uint8_t reserved[2];
};

/**
 * Records a profile, which it passes to write as it is made: each beginning of it that ends with a
 * record can be read. A program that is started is waited for, also where for_ns or is_done end the
 * recording before its end. Names of JIT code and of the kernel are found while they are there, all
 * others by fathom_profile_resolve().
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
