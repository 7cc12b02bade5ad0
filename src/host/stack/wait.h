/* SPDX-License-Identifier: MIT */
/*
 * Describes the call that a sleeping thread of a live process waits in, and what it waits for, from
 * the arguments of its system call, from its memory and from /proc (proc(5)). No file is opened but
 * those of /proc, so nothing here waits for a file system or a peer.
 *
 * Names in texts are raw: whoever prints them escapes control characters.
 */
#ifndef FATHOM_STACK_WAIT_H
#define FATHOM_STACK_WAIT_H

#include "host/stack/capture.h"

/* Kinds of things that threads wait for. */
enum fathom_wait_kind {
	FATHOM_WAIT_UNKNOWN,
	FATHOM_WAIT_FUTEX,  /* a condition variable, a semaphore, a lock without an owner */
	FATHOM_WAIT_MUTEX,  /* owner: its TID */
	FATHOM_WAIT_THREAD, /* the end of the thread owner */
	FATHOM_WAIT_DESCRIPTOR,
	FATHOM_WAIT_DESCRIPTORS,
	FATHOM_WAIT_CHILD, /* owner: its PID, 0 if more than one would do */
	FATHOM_WAIT_TIME,
	FATHOM_WAIT_SIGNAL,
	FATHOM_WAIT_CONTINUED, /* a call that the kernel continues after a stop */
	FATHOM_WAIT_FILE,      /* a path to be opened */
	FATHOM_WAIT_SYSTEM_V   /* a semaphore set or a message queue, svipc(7) */
};

struct fathom_wait {
	const char *syscall; /* its name, static; NULL: unknown */
	/*
	 * TID of the mutex's owner or of the thread to end, PID of the child: as /proc has them,
	 * not as the process does in a PID namespace of its own. 0: none.
	 */
	int32_t owner;
	uint8_t kind;   /* enum fathom_wait_kind */
	char text[256]; /* "" if nothing more is known; ends with "..." if it was cut */
};

/* The sockets and the threads of one process at one moment, which descriptions share. */
struct fathom_wait_facts;

struct fathom_wait_source {
	int proc; /* descriptor of /proc/PID */
	const struct fathom_reader *memory;
	uint32_t machine; /* EM_ of the program */
	/*
	 * Used by one thread at a time. NULL: each description reads the facts for itself, which
	 * takes long with many threads and sockets.
	 */
	struct fathom_wait_facts *facts;
	/* Times are left out: waits for one thing have one text. */
	bool has_no_times;
};

/* Returns facts about one process, which are read when they are needed; NULL without memory. */
struct fathom_wait_facts *fathom_wait_facts_create(void);
void fathom_wait_facts_destroy(struct fathom_wait_facts *facts);

/*
 * Describes what @thread waits for. Returns false if nothing but the system call's name is known:
 * the thread was in no system call that waits, or is in another one by now.
 */
bool fathom_wait_describe(const struct fathom_wait_source *from,
			  const struct fathom_thread_copy *thread, struct fathom_wait *ret);

/*
 * Returns whether thread @tid of the process whose directory below /proc is @proc waits for a disk
 * now, as the function of the kernel that it sleeps in says (wchan). False, too, if that may not be
 * known, or another function waits for the disk.
 */
bool fathom_wait_is_disk(int proc, int32_t tid);

#endif
