/* SPDX-License-Identifier: MIT */
/* Code that reading a sleeping thread and stopping a thread share. */
#ifndef FATHOM_STACK_CAPTURE_WORK_H
#define FATHOM_STACK_CAPTURE_WORK_H

#include "host/stack/capture.h"
#include "host/stack/task_files.h"
#include "host/tracer/regset.h"

struct fathom_capture {
	struct fathom_capture_options options;
	int memory;       /* of the program that ran at the start: it reports exec(); -1: none */
	int process;      /* pidfd; -1: none */
	int tasks;        /* the folder of its threads */
	uint8_t *scratch; /* to copy stacks into while their threads are stopped */
	size_t scratch_size;
	uint64_t late_ns;  /* spent on threads that did not stop soon */
	uint32_t n_missed; /* times that one did not stop at all */
};

/* Sets why @copy has no registers. @what is static. */
void fathom_capture_fail(struct fathom_capture *c, struct fathom_thread_copy *copy, fathom_err err,
			 const char *what);

/* Sets that access to the thread was refused with errno @number. */
void fathom_capture_refuse(struct fathom_capture *c, struct fathom_thread_copy *copy,
			   struct fathom_task *task, int number);

/* Sets that a file of the thread of @task could not be opened or read, with errno @number. */
void fathom_capture_fail_read(struct fathom_capture *c, struct fathom_thread_copy *copy,
			      struct fathom_task *task, int number);

/*
 * Opens the directory of the thread of @copy and reads its name and state. Returns false, with the
 * reason in @copy, if it has ended. The caller closes @ret.
 */
bool fathom_capture_open(struct fathom_capture *c, struct fathom_thread_copy *copy,
			 struct fathom_task *ret);

/* Pieces of stack in the scratch, one after the other. */
struct fathom_scratch_pieces {
	uint64_t avma[FATHOM_STACK_PIECES];
	size_t size[FATHOM_STACK_PIECES]; /* bytes; 0: could not be read */
	uint8_t n;
};

/* Reads the stack at @copy's sp, and what else was asked for, into the scratch. */
struct fathom_scratch_pieces fathom_capture_read_stack(struct fathom_capture *c,
						       const struct fathom_thread_copy *copy);

/* Gives @copy what is in the scratch; sets its error without memory. */
void fathom_capture_keep_stack(struct fathom_capture *c, struct fathom_thread_copy *copy,
			       const struct fathom_scratch_pieces *pieces);

/* Forgets the call that @copy seems to be in if it was not made in the usual way of its machine. */
void fathom_capture_check_call(struct fathom_capture *c, struct fathom_thread_copy *copy);

/* Describes the call of @copy, which is in one. */
struct fathom_blocking_call fathom_capture_call(struct fathom_capture *c,
						const struct fathom_thread_copy *copy,
						const struct fathom_task *task);

/*
 * Takes the registers @r of a stopped thread into @copy. On x86 also the system call that the
 * thread was in, on aarch64 what @copy says of it stays if the thread is still there. Returns false
 * if the machine is unknown.
 */
bool fathom_capture_take_registers(const struct fathom_regset *r, struct fathom_thread_copy *copy);

/* Takes what the file syscall says into @copy: its call, and the registers that are known by it. */
void fathom_capture_take_syscall(struct fathom_capture *c, struct fathom_thread_copy *copy,
				 const struct fathom_task_syscall *s);

#endif
