/* SPDX-License-Identifier: MIT */
/*
 * A process that touches files and memory for us, because whoever touches them may wait for ever.
 *
 * A thread that waits for a file system whose server is gone cannot be ended, and keeps its process
 * from ending. So the helper is a process of its own, with no descriptors but its end of a socket.
 * It blocks all signals, ends when it has had nothing to do for a second, and is left behind where
 * it gets stuck. It is made by clone(2) and calls async-signal-safe functions only: the program
 * that we are a guest in may have many threads. That program gets no signal when the helper ends,
 * and meets it in no wait().
 *
 * Questions: 'p', a path and a second one for when the first fails, each with its NUL; the answer
 * is a packet for each part of the path that was reached, and one when all was done. 'm', a path of
 * /proc/PID/mem with its NUL, an address and a size, both as 8 bytes; the answer is errno as 4
 * bytes and what could be read.
 */
#ifndef FATHOM_BASE_REACH_HELPER_H
#define FATHOM_BASE_REACH_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The largest piece of memory that is read at a time, and the largest question. */
#define FATHOM_HELPER_MEMORY   32768
#define FATHOM_HELPER_QUESTION (1 + 2 * PATH_MAX + 2 * sizeof(uint64_t))

/* Answers of one byte. */
#define FATHOM_HELPER_ON   '.'
#define FATHOM_HELPER_DONE '!'

struct fathom_helper {
	int socket; /* our end; -1: there is no helper */
	pid_t pid;
};

/* Starts a helper; false where that cannot be done. */
bool fathom_helper_start(struct fathom_helper *ret);

/* Ends a helper that has nothing to do. */
void fathom_helper_end(struct fathom_helper *h);

/* Whether the helper, whose socket is closed, has ended by now; is to be asked until it has. */
bool fathom_helper_has_ended(pid_t pid);

/* Whether the helper has work and waits for nothing but a processor. */
bool fathom_helper_is_running(const struct fathom_helper *h);

#endif
