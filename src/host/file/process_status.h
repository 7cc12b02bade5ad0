/* SPDX-License-Identifier: MIT */
/* The status of a process or thread (proc_pid_status(5)), which a list of groups can make long. */
#ifndef FATHOM_FILE_PROCESS_STATUS_H
#define FATHOM_FILE_PROCESS_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/* Most numbers of a process: PID namespaces are nested 32 levels deep below the first. */
#define FATHOM_MAX_PIDS 33

/* The numbers of a process or thread in its PID namespaces, from that of /proc inwards. */
struct fathom_pids {
	uint64_t at[FATHOM_MAX_PIDS];
	unsigned n; /* 0: unknown */
};

/* Returns the text of the status at @path, which the caller frees; NULL if it cannot be read. */
char *fathom_status_read(const char *path);

/* Returns what follows @label, such as "\nUid:", in @text; NULL if there is no such line. */
const char *fathom_status_line(const char *text, const char *label);

/* Returns the number of the process of thread @tid; 0: unknown. */
int fathom_status_process(int tid);

/* Capabilities (include/uapi/linux/capability.h). */
enum { FATHOM_CAP_SYS_PTRACE = 19, FATHOM_CAP_SYS_ADMIN = 21 };

/*
 * Returns 1 if thread @tid, 0: the calling process, has effective capability @number, 0 if
 * not, -1 if nothing says so.
 */
int fathom_status_capability(int tid, unsigned number);

/*
 * Returns how system calls of thread @tid are filtered (seccomp(2)): the number of its filters; 0
 * if there are none; INT_MAX in strict mode, or if that cannot be read.
 */
int fathom_status_filters(int tid);

/*
 * Returns why process or thread @pid has no program to look at, such as "is a kernel thread: it
 * runs no program"; NULL if it may have one, or is not there.
 */
const char *fathom_status_lack(int pid);

/* Returns whether process @pid is not there, or has ended and nobody has waited for it. */
bool fathom_status_has_ended(int pid);

/*
 * Returns a thread of process @pid that lives: its first one, unless that has ended before others;
 * @pid if none is found, or it is the number of another thread.
 */
int fathom_status_live_thread(int pid);

/* Reads the line NSpid of @text, which may be NULL. */
void fathom_status_pids(const char *text, struct fathom_pids *ret);

#endif
