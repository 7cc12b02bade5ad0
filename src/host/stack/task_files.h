/* SPDX-License-Identifier: MIT */
/* Reads the kernel's files of a thread: those below /proc/PID/task/TID (proc_pid(5)). */
#ifndef FATHOM_STACK_TASK_FILES_H
#define FATHOM_STACK_TASK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thread's directory. It stays the thread's own when the number is reused. */
struct fathom_task {
	int dir;     /* descriptors; -1: not open */
	int status;  /* opened when it is first read */
	int syscall; /* the same */
};

/* Opens the directory of thread @tid below @proc, that of its process. Returns false with errno. */
bool fathom_task_open(struct fathom_task *t, int proc, int32_t tid);
void fathom_task_close(struct fathom_task *t);

/* The file stat. */
struct fathom_task_stat {
	char name[16];
	char state;
	bool is_kernel_worker; /* of io_uring or vhost: a thread of the process without user code */
};

/* Returns false with errno: ESRCH if the thread has ended. */
bool fathom_task_stat(const struct fathom_task *t, struct fathom_task_stat *ret);

/*
 * Returns the number after @label, a line break and the start of a line, in @text; @none if there
 * is no such line.
 */
uint64_t fathom_task_number(const char *text, const char *label, int base, uint64_t none);

/* Facts of the file status. */
struct fathom_task_status {
	uint64_t voluntary; /* context switches */
	uint64_t forced;
	int32_t tracer;      /* the process that traces the thread; 0: none */
	bool handler_is_due; /* for a signal that waits, and is not blocked; also if unknown */
};

bool fathom_task_status(struct fathom_task *t, struct fathom_task_status *ret);

/* The file syscall. */
struct fathom_task_syscall {
	bool runs;       /* nothing else is known */
	bool in_syscall; /* number and arguments are known */
	int64_t number;
	uint64_t arguments[6];
	uint64_t sp;
	uint64_t pc;
};

bool fathom_task_syscall(struct fathom_task *t, struct fathom_task_syscall *ret);

/* Reads the file wchan, of @size bytes: the function of the kernel that the thread sleeps in. */
bool fathom_task_wchan(const struct fathom_task *t, char *to, size_t size);

#endif
