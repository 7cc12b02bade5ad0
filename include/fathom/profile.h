/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Profiles: where programs spend their time. <fathom/profile_record.h> records them,
 * <fathom/profile_report.h> sums them up; this header reads their files. docs/profile-format.md
 * describes these.
 *
 * A profile has samples. Each has a weight, what it counts for in the unit of the event (for
 * task-clock, nanoseconds of processor time), and the number of its stack. A stack is a node: a
 * location and the node of its caller, so stacks share what they have in common. Locations have an
 * address in a module, and names once they are resolved, maybe on another machine.
 */
#ifndef FATHOM_PROFILE_H
#define FATHOM_PROFILE_H

#include <fathom/answer.h>
#include <fathom/error.h>
#include <fathom/profile_annotate.h>
#include <fathom/profile_record.h>
#include <fathom/profile_report.h>
#include <fathom/session.h>
#include <fathom/trust.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A profile that was read. Opaque. */
struct fathom_profile;

/* Of <fathom/symbolize.h>. */
struct fathom_answers;

/** Kinds of modules of a profile. Enumerators are never removed or renumbered. */
enum fathom_profile_module_kind {
	FATHOM_PROFILE_MODULE_FILE = 1,   /**< an ELF file */
	FATHOM_PROFILE_MODULE_VDSO = 2,   /**< the code that the kernel maps into every process */
	FATHOM_PROFILE_MODULE_JIT = 3,    /**< code that a process has made */
	FATHOM_PROFILE_MODULE_KERNEL = 4, /**< the kernel and its modules */
	FATHOM_PROFILE_MODULE_MEMORY = 5, /**< memory that nothing describes */
	/** The innermost frame of waits: its name is what the thread waits for, and no code's. */
	FATHOM_PROFILE_MODULE_WAITS = 6,
	/** A script, by its interpreter: "[python 3.11]". Its names are the script's functions. */
	FATHOM_PROFILE_MODULE_SCRIPT = 7
};

/** Kinds of samples. Enumerators are never removed or renumbered. */
enum fathom_profile_part {
	FATHOM_PROFILE_SAMPLED = 0, /**< its stack is where the thread was */
	/** The thread was in the kernel, whose stack is not permitted; the stack called it. */
	FATHOM_PROFILE_KERNEL_HIDDEN = 1,
	/** The event was counted, but no sample says where: the stack is empty. */
	FATHOM_PROFILE_UNSAMPLED = 2,
	/** The thread waited, where its stack says; the weight is nanoseconds, up to its ns. */
	FATHOM_PROFILE_WAITING = 3,
	/** The thread had no processor, but nothing else to wait for; likewise. */
	FATHOM_PROFILE_RUNNABLE = 4
};

/** A thread under one name: one that is renamed becomes another one of the same numbers. */
struct fathom_profile_thread {
	int32_t pid;
	int32_t tid;
	int32_t parent; /**< PID of the parent process; 0: not known */
	uint32_t reserved;
	uint64_t ns;         /**< since the recording began, when it was first seen so */
	const char *name;    /**< never NULL */
	const char *process; /**< name of the process, as its first thread has it; never NULL */
	/** Path of the cgroup that the process was in when it was first seen; "": not known. */
	const char *cgroup;
};

/** A module. */
struct fathom_profile_module {
	const char *path;        /**< or a name in brackets; never NULL */
	const uint8_t *build_id; /**< NULL without one */
	uint32_t build_id_size;  /**< bytes */
	uint8_t kind;            /**< enum fathom_profile_module_kind */
	uint8_t reserved[3];
	/** Of a file without a build-id, by which it is known again: its size in bytes; else 0. */
	uint64_t file_size;
	uint64_t changed; /**< likewise: its last change (st_mtime), nanoseconds since 1970 */
	/** Of a script: index of the module that executes it; UINT32_MAX: it is not known. */
	uint32_t runtime;
	uint32_t reserved1;
};

/** A place in code, which nodes refer to. */
struct fathom_profile_location {
	/** as the file of the module states it; of other modules in the process, or the kernel */
	struct fathom_pc pc;
	uint32_t module;          /**< index; UINT32_MAX: none */
	uint8_t trust;            /**< enum fathom_trust */
	uint8_t is_signal_return; /**< 1: a signal trampoline */
	uint8_t reserved[2];
	/**
	 * Its names, once fathom_profile_resolve() has been called; until then those that the file
	 * has, of JIT code and the kernel. Never NULL.
	 */
	const struct fathom_answer *answer;
};

/** A node: a frame, with all that called it. */
struct fathom_profile_node {
	uint32_t caller;   /**< node; 0: none, it is the outermost frame */
	uint32_t location; /**< index */
};

/** A sample. */
struct fathom_profile_sample {
	uint64_t ns;     /**< since the recording began */
	uint64_t weight; /**< in the unit of the event; of waits in nanoseconds */
	uint32_t thread; /**< index */
	uint32_t node;   /**< the innermost frame; 0: no stack */
	uint8_t part;    /**< enum fathom_profile_part */
	uint8_t stop;    /**< enum fathom_stop: where the walk ended; ENTRY: the stack is whole */
	uint8_t goes_on; /**< 1: of FATHOM_PROFILE_WAITING: the wait goes on after ns */
	uint8_t reserved[1];
	/**
	 * Of FATHOM_PROFILE_WAITING, who has ended the wait: index of a thread + 1;
	 * FATHOM_PROFILE_INTERRUPT; 0: it is not known.
	 */
	uint32_t waker;
};

/** A sample's waker: an interrupt, of a timer, a disk or a network say. */
#define FATHOM_PROFILE_INTERRUPT UINT32_MAX

/** Takes a sample, which is valid during the call; returns other than 0 to get no more. */
typedef int (*fathom_profile_sample_fn)(void *data, const struct fathom_profile_sample *sample);

/** Facts about a profile, and how it was recorded. Texts are "" if they are not known. */
struct fathom_profile_info {
	const char *command;      /**< the program with its arguments, or the processes */
	const char *event;        /**< such as "task-clock" */
	const char *unit;         /**< of weights: "ns", "cycles" */
	const char *method;       /**< such as "perf-events" */
	const char *machine;      /**< such as "x86_64" */
	const char *kernel;       /**< its release */
	const char *host;         /**< name of the machine */
	uint32_t frequency;       /**< samples that were asked for, a second of processor time */
	uint8_t is_complete;      /**< 0: the file ends before the recording did */
	uint8_t is_kernel_hidden; /**< 1: the kernel's stacks were not permitted */
	uint8_t has_unknown_ends; /**< 1: it is not told which stacks are whole */
	uint8_t reserved[1];
	uint64_t started;     /**< nanoseconds since 1970; 0: not known */
	uint64_t duration_ns; /**< of the recording, or up to the last sample */
	uint64_t weight;      /**< of all samples but waits; so are n_samples, n_whole, n_stacks */
	uint64_t n_samples;   /**< with and without a stack */
	uint64_t lost;        /**< samples that found no room */
	uint64_t throttled;   /**< how often the kernel has held samples back */
	uint64_t n_whole;     /**< whose stacks end in FATHOM_STOP_ENTRY; 0 if has_unknown_ends */
	uint64_t n_stacks;    /**< samples with a stack */
	uint64_t waiting_ns;  /**< of all threads: FATHOM_PROFILE_WAITING */
	uint64_t runnable_ns; /**< of all threads: FATHOM_PROFILE_RUNNABLE */
	uint64_t n_waits;     /**< samples of both */
};

/**
 * Reads the profile @path. A file that was cut short is read up to there. Profiles of other
 * programs are told apart by their first bytes, and converted: perf.data, pprof's,
 * .cpuprofile of Chrome and Node.js, collapsed stacks.
 *
 * Safety: mt-safe
 * Memory: *@ret_profile is the caller's, to be freed with fathom_profile_free(); it keeps @session
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT; FATHOM_E_OS; FATHOM_E_FORMAT: no profile, or of a later
 *	version; FATHOM_E_CORRUPT; FATHOM_E_LIMIT: it does not fit the session's memory budget, or
 *	defines more than is read; FATHOM_E_UNSUPPORTED: of another byte order, or compressed in a
 *	way that this build cannot read; FATHOM_E_TIMEOUT: its file system does not answer;
 *	FATHOM_E_CHANGED; FATHOM_E_CANCELLED; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_profile_open(struct fathom *session, const char *path,
					  struct fathom_profile **ret_profile,
					  struct fathom_errinfo *reterr);

/**
 * Safety: mt-safe per object
 * Memory: frees @profile, which may be NULL, and all that it has returned
 * Returns: nothing
 */
FATHOM_API void fathom_profile_free(struct fathom_profile *profile);

/**
 * Safety: mt-safe
 * Memory: the result belongs to @profile
 * Returns: never NULL
 */
FATHOM_API const struct fathom_profile_info *fathom_profile_get_info(
	const struct fathom_profile *profile);

/**
 * Safety: mt-safe
 * Memory: the result belongs to @profile
 * Returns: *@ret_n threads
 */
FATHOM_API const struct fathom_profile_thread *fathom_profile_threads(
	const struct fathom_profile *profile, size_t *ret_n);

/**
 * Safety: mt-safe
 * Memory: the result belongs to @profile
 * Returns: *@ret_n modules
 */
FATHOM_API const struct fathom_profile_module *fathom_profile_modules(
	const struct fathom_profile *profile, size_t *ret_n);

/**
 * Safety: mt-safe
 * Memory: the result belongs to @profile
 * Returns: *@ret_n locations
 */
FATHOM_API const struct fathom_profile_location *fathom_profile_locations(
	const struct fathom_profile *profile, size_t *ret_n);

/**
 * Returns the nodes. Number 0 stands for no stack. A node's caller has a lower number.
 *
 * Safety: mt-safe
 * Memory: the result belongs to @profile
 * Returns: *@ret_n nodes, at least 1
 */
FATHOM_API const struct fathom_profile_node *fathom_profile_nodes(
	const struct fathom_profile *profile, size_t *ret_n);

/**
 * Calls @fn for each sample, in the order of the file (nearly that of time), until it returns other
 * than 0. They are read anew each time, so that millions need no memory.
 *
 * Safety: mt-safe
 * Memory: none
 * Returns: FATHOM_OK; FATHOM_E_CHANGED when the file was written to or truncated meanwhile
 */
FATHOM_API fathom_err fathom_profile_each_sample(const struct fathom_profile *profile,
						 fathom_profile_sample_fn fn, void *data,
						 struct fathom_errinfo *reterr);

/** Options of resolving names; as struct fathom_options. */
struct fathom_profile_resolve_options {
	size_t size;
	uint32_t flags; /**< FATHOM_NAMES_ONLY, FATHOM_NO_DEMANGLE of <fathom/symbolize.h> */
	uint32_t reserved1;
	/** Directory that is tried first for the files of modules; default: none. */
	const char *sysroot;
	/** Directories with debug files, NULL-terminated; default: "/usr/lib/debug". */
	const char *const *debug_dirs;
	uint64_t reserved[4];
};

/**
 * Finds the names of all locations of files: each once. A file that is not there, or has another
 * build-id, names nothing (FATHOM_REASON_NO_FILE, FATHOM_REASON_BUILD_ID_MISMATCH); nor does one
 * without a build-id that has another size or time of change. @options may be NULL.
 *
 * Safety: neither
 * Memory: the answers belong to @profile
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT; FATHOM_E_CANCELLED; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_profile_resolve(struct fathom_profile *profile,
					     const struct fathom_profile_resolve_options *options,
					     struct fathom_errinfo *reterr);

/**
 * Finds the names of @n places in @module as fathom_profile_resolve() does, without a profile:
 * those of samples while they are recorded, say. @options may be NULL.
 *
 * Safety: mt-safe
 * Memory: *@ret_answers is the caller's, to be freed with fathom_answers_free()
 * Returns: FATHOM_OK; FATHOM_E_NOT_FOUND: @module is no file, its file is not there, or another one
 *	is; FATHOM_E_ARGUMENT; FATHOM_E_CANCELLED; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_profile_name_module(
	struct fathom *session, const struct fathom_profile_module *module,
	const struct fathom_profile_resolve_options *options, const struct fathom_pc *pcs, size_t n,
	struct fathom_answers **ret_answers, struct fathom_errinfo *reterr);

/** Which frames of a stack are shown that a script has frames in. Never renumbered. */
enum fathom_profile_frames {
	FATHOM_PROFILE_ALL_FRAMES = 0,    /**< all that the file has */
	FATHOM_PROFILE_MERGED_FRAMES = 1, /**< all but the interpreter's own */
	FATHOM_PROFILE_SCRIPT_FRAMES = 2, /**< those of the script, and what it waits for */
	FATHOM_PROFILE_NATIVE_FRAMES = 3  /**< all but those of the script */
};

/**
 * Leaves frames out of all that is made of @profile from now on: of its nodes, its samples, and so
 * of reports and exports. The weight of a frame that is left out is that of its caller. Stacks in
 * which no script has a frame stay whole. At first all frames are shown.
 *
 * Safety: neither
 * Memory: what fathom_profile_nodes() has returned changes
 * Returns: FATHOM_OK; FATHOM_E_ARGUMENT; FATHOM_E_LIMIT; FATHOM_E_MEMORY
 */
FATHOM_API fathom_err fathom_profile_show_frames(struct fathom_profile *profile,
						 enum fathom_profile_frames frames,
						 struct fathom_errinfo *reterr);

/**
 * Returns the word for a part, such as "kernel-hidden"; "" for unknown values.
 *
 * Safety: mt-safe
 * Memory: the text is static
 * Returns: never NULL
 */
FATHOM_API const char *fathom_profile_part_name(enum fathom_profile_part part);

#ifdef __cplusplus
}
#endif

#endif
