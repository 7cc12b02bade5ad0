/* SPDX-License-Identifier: MIT */
/* The file stat of a process or thread below /proc (proc_pid_stat(5)). */
#ifndef FATHOM_BASE_PROC_STAT_H
#define FATHOM_BASE_PROC_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that hold any such file. */
#define FATHOM_PROC_STAT_SIZE 2048

/* Flags of a thread (linux/include/linux/sched.h). */
#define FATHOM_PF_EXITING   0x4
#define FATHOM_PF_IO_WORKER 0x10 /* from Linux 5.12 on; before, of threads that run a guest */
#define FATHOM_PF_USER_WORKER \
	0x4000 /* from Linux 6.4 on; another flag before, of threads of any name */
#define FATHOM_PF_KTHREAD 0x200000

/* Numbers that the file does not have, or hides, are 0. */
struct fathom_proc_stat {
	int32_t pid;          /* field 1: the thread */
	char name[64];        /* 2 */
	char state;           /* 3: R S D T t Z X I as in proc(5) */
	int32_t parent;       /* 4: the process that started it */
	uint32_t flags;       /* 9 */
	uint32_t n_threads;   /* 20, of the process */
	uint64_t start_ticks; /* 22: when it started, in ticks since boot */
	uint64_t first_stack; /* 28: where the stack of the program begins */
	int32_t exit_signal;  /* 38: that its parent gets when it ends; -1: none, a thread */
	int32_t wait_status;  /* 52, as waitpid(2) will have it */
};

/* Parses the @size bytes of the file @text; returns false if they are no such file. */
bool fathom_proc_stat_parse(const char *text, size_t size, struct fathom_proc_stat *ret);

#endif
