/* SPDX-License-Identifier: MIT */
/*
 * One stopped thread of a program that this thread traces (ptrace(2)): registers, memory, single
 * steps, and system calls that the thread makes for us. Machine: x86-64.
 */
#ifndef FATHOM_TRACER_TRACEE_H
#define FATHOM_TRACER_TRACEE_H

#include <sys/types.h>
#include <sys/user.h>

#include "host/tracer/user.h"
#include "safe/base/error.h"
#include "safe/base/reader.h"
#include "safe/unwind/registers.h"

struct sock_fprog;

/*
 * A program: its memory, and where it has a `syscall` instruction. The kernel tells the end of a
 * first thread only when the ends of all others were taken: a wait for one thread takes the
 * statuses of the others, too, and passes them on.
 */
struct fathom_tracee {
	pid_t pid;
	/*
	 * Takes @status of thread @tid, as waitpid(2) has it, to be handled later; NULL: drops it
	 */
	void (*note)(void *data, pid_t tid, int status);
	void *data;
	int memory;                  /* descriptor of /proc/PID/mem */
	uint64_t syscall_avma;       /* 0: none was seen yet */
	uint64_t call_sp;            /* stack pointer of calls made for us; 0: that of the thread */
	struct fathom_reader reader; /* whatever its protection */
	struct fathom_reader own;    /* what the program can read itself */
};

/*
 * Starts @argv, found along PATH, with its first thread seized by the calling thread, with
 * @options of PTRACE_SEIZE; FATHOM_E_OS. @stops: it has stopped before exec(), which the first
 * wait tells, and may be let go on to its next system call. @filter is one of its system calls, or
 * NULL. @user is whom it runs as, or NULL. *@ret_report is a descriptor: when exec() has failed,
 * errno can be read from it, as an int; else it ends.
 */
fathom_err fathom_tracee_start(struct fathom_tracee *t, char *const *argv, long options, bool stops,
			       const struct sock_fprog *filter, const struct fathom_user *user,
			       int *ret_report, struct fathom_errinfo *reterr);
/* Makes @t the program of process @pid, which the calling thread traces already. */
void fathom_tracee_init(struct fathom_tracee *t, pid_t pid);
void fathom_tracee_deinit(struct fathom_tracee *t);

/* Opens the memory of the program that exec() has started. */
bool fathom_tracee_open_memory(struct fathom_tracee *t);

bool fathom_tracee_read(const struct fathom_tracee *t, uint64_t avma, void *to, size_t size);
/* Returns the word at @avma; 0 if it cannot be read. */
uint64_t fathom_tracee_word(const struct fathom_tracee *t, uint64_t avma);
/* Writes into the memory of the program, code too, whatever its protection. */
bool fathom_tracee_write(const struct fathom_tracee *t, uint64_t avma, const void *from,
			 size_t size);
/* Writes into the memory of the program of thread @tid, code too. */
bool fathom_tracee_write_byte(pid_t tid, uint64_t avma, uint8_t byte);

bool fathom_tracee_get(pid_t tid, struct user_regs_struct *ret);
bool fathom_tracee_set(pid_t tid, const struct user_regs_struct *regs);

/* Copies @regs to the general registers by their DWARF numbers. */
void fathom_tracee_registers(const struct user_regs_struct *regs, struct fathom_registers *ret);

/*
 * Waits for thread @tid; returns its status, as waitpid(2) has it, or -1 if the calling thread
 * traces no other any more.
 */
int fathom_tracee_wait(const struct fathom_tracee *t, pid_t tid);

/*
 * Changes @regs, of a thread that was stopped in a call, to make that call again from its
 * beginning, for where the kernel does not restart it. Does nothing if they are in no call.
 */
void fathom_tracee_again(struct user_regs_struct *regs);

/*
 * Runs stopped thread @tid to where its next system call begins or ends; false if something else
 * has happened to it, which was noted.
 */
bool fathom_tracee_run_to_call(const struct fathom_tracee *t, pid_t tid);
/*
 * Makes a system call in stopped thread @tid, with all signals blocked, and returns its result;
 * -ESRCH if the thread has ended or runs another program instead, which was noted.
 */
long fathom_tracee_call(const struct fathom_tracee *t, pid_t tid, long number,
			const uint64_t arguments[6]);

/*
 * Unblocks SIGTRAP in stopped thread @tid; returns whether it was blocked. The kernel sets a signal
 * that is blocked when a step ends to its default action.
 */
bool fathom_tracee_unblock_trap(pid_t tid);
/* Blocks signal @number in stopped thread @tid. */
void fathom_tracee_block(pid_t tid, int number);

#endif
