/* SPDX-License-Identifier: MIT */
/*
 * Copies of the threads of a live process: registers, the stack, and what the kernel says of each.
 *
 * A thread that sleeps in a system call is read while it sleeps: /proc/PID/task/TID/syscall has its
 * pc, its sp and the arguments of the call. What was read is of one moment if that file and both
 * counts of context switches are the same afterwards. Any other thread is stopped (PTRACE_SEIZE,
 * PTRACE_INTERRUPT), copied and released. Everything is opened before the first stop.
 *
 * A stop ends some blocking calls with EINTR (signal(7)): a call without a timeout is started anew
 * before the release; one with a timeout is not stopped, unless the caller insists.
 */
#ifndef FATHOM_STACK_CAPTURE_H
#define FATHOM_STACK_CAPTURE_H

#include "fathom/error.h"
#include "host/file/maps.h"
#include "host/space/target.h"
#include "safe/base/reader.h"
#include "safe/unwind/registers.h"

/* One thread at one moment. */
struct fathom_thread_copy {
	int32_t tid;           /* in this process's PID namespace */
	char name[16];         /* "" if unknown */
	char state;            /* of proc_pid_stat(5): R S D T t Z X I P; 0: unknown */
	bool is_kernel_worker; /* it has no registers and no stack of its own */
	bool in_syscall;       /* number and arguments are known */
	bool was_stopped;      /* by us */
	bool was_restarted;   /* its system call would have ended with EINTR: it was started anew */
	bool was_interrupted; /* its system call ended with EINTR, probably by the stop */
	int64_t syscall;
	uint64_t arguments[6];
	uint64_t pause_ns; /* from the request to stop to the release; 0: not stopped */
	uint64_t stood_ns; /* a moment of that, by the monotonic clock */
	struct fathom_registers registers; /* those that are known */
	/*
	 * Its stack: the first piece begins at or below sp; the others were asked for. What could
	 * not be read is missing.
	 */
	struct fathom_stack_pieces pieces;
	/*
	 * set by the caller: addresses of other stacks to copy, too, such as one below a signal's
	 */
	uint8_t n_also;
	uint64_t also[FATHOM_STACK_PIECES - 1];
	uint8_t *stack; /* the bytes of all pieces; NULL: none */
	/*
	 * Why there are no registers: FATHOM_OK: they are there; FATHOM_E_NOT_FOUND: the thread has
	 * ended; FATHOM_E_CHANGED: it ran on while it was read, or runs another program by now;
	 * FATHOM_E_TIMEOUT: it did not stop; FATHOM_E_OS: no permission, or traced by another
	 * process, whose directory below /proc is failed.file; FATHOM_E_UNSUPPORTED: it runs, or
	 * waits with a timeout, and was not to be stopped; FATHOM_E_MEMORY
	 */
	fathom_err err;
	struct fathom_errinfo failed;
};

struct fathom_capture;

/* The process to capture, and how. The caller keeps all that is pointed to. */
struct fathom_capture_options {
	int pid;  /* in our PID namespace; 0: in another, cannot stop */
	int proc; /* descriptor of /proc/PID, which pins the process */
	const struct fathom_reader *memory;
	const struct fathom_maps *maps; /* read before; tells where stacks end */
	uint32_t machine;               /* EM_ of the program: EM_X86_64, EM_386, EM_AARCH64 */
	uint32_t deadline_ms;           /* until threads have to have stopped */
	/*
	 * Called while the thread of @copy sleeps, or stands, once its stack was read, to read what
	 * else must be of that moment; maybe on another thread. What it has read is in vain if
	 * @copy has an error afterwards. NULL: not called.
	 */
	void (*read_more)(void *data, const struct fathom_thread_copy *copy);
	void *read_more_data;
	/* as in struct fathom_stack_options */
	int (*waiting)(void *data, size_t n_threads, uint32_t waited_ms);
	void *waiting_data;
};

/* Prepares to copy threads: FATHOM_E_OS without /proc, FATHOM_E_MEMORY. */
fathom_err fathom_capture_create(const struct fathom_capture_options *options,
				 struct fathom_capture **ret, struct fathom_errinfo *reterr);
void fathom_capture_destroy(struct fathom_capture *c);

/* Returns whether the program that ran at the start has gone, by exec() or its end. */
bool fathom_capture_is_gone(const struct fathom_capture *c);

/* Lists the threads, the main thread first, then by number. The caller frees *@ret_tids. */
fathom_err fathom_capture_list(struct fathom_capture *c, int32_t **ret_tids, size_t *ret_n,
			       struct fathom_errinfo *reterr);

/*
 * Reads what the kernel says of the thread of @copy, and if it sleeps its registers and stack. Of
 * @copy tid and also[] are set, all else is zero. One that was in another call or place afterwards
 * is read again a few times.
 */
void fathom_capture_peek(struct fathom_capture *c, struct fathom_thread_copy *copy);

/*
 * Stops the threads of the @n copies, all zero but for tid, copies and releases them: one after the
 * other, or with @together all at one moment. Without @insist a thread whose call has a timeout and
 * would end early is left alone (FATHOM_E_UNSUPPORTED). A thread that does not stop before the
 * deadline is left alone (FATHOM_E_TIMEOUT); after a few of those, threads in an uninterruptible
 * sleep (state D) are left alone at once. A process that was stopped stays stopped, and a signal
 * that was on its way arrives.
 *
 * The kernel reports each stop to a handler of SIGCHLD in this process that has no SA_NOCLDSTOP.
 */
void fathom_capture_stop(struct fathom_capture *c, struct fathom_thread_copy *copies, size_t n,
			 bool together, bool insist);

/*
 * Stops all threads at one moment, also those that appear meanwhile, copies and releases them, as
 * fathom_capture_stop() does with @together. The caller frees *@ret and deinits its copies. Fails
 * as fathom_capture_list() does.
 */
fathom_err fathom_capture_stop_all(struct fathom_capture *c, bool insist,
				   struct fathom_thread_copy **ret, size_t *ret_n,
				   struct fathom_errinfo *reterr);

/* Frees what @copy owns. */
void fathom_thread_copy_deinit(struct fathom_thread_copy *copy);

#endif
