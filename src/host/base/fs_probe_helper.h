/* SPDX-License-Identifier: MIT */
/*
 * A process that touches files and memory for us, because that may block for ever.
 *
 * A thread that waits for a file system whose server is gone cannot be ended, and keeps its process
 * from ending. So the helper is a process, with no descriptors but its end of a socket. It blocks
 * all signals and ends when it has had no work for a second. If it gets stuck, it is abandoned. It
 * is made by clone(2) and calls async-signal-safe functions only, because the program may have many
 * threads. The program gets no signal when the helper ends, and no wait() returns it.
 *
 * Questions:
 * - 'p', a path and a second one for when the first fails, each with its NUL. The answer is a
 *   packet for each part of the path that was reached, and one at the end.
 * - 'm', a path of /proc/PID/mem with its NUL, an address and a size, both as 8 bytes. The answer
 *   is errno as 4 bytes and the bytes that could be read.
 */
#ifndef FATHOM_BASE_FS_PROBE_HELPER_H
#define FATHOM_BASE_FS_PROBE_HELPER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most bytes of memory in one answer, and the largest question. */
#define FATHOM_HELPER_MEMORY   32768
#define FATHOM_HELPER_QUESTION (1 + 2 * PATH_MAX + 2 * sizeof(uint64_t))

/* Answers of one byte. */
#define FATHOM_HELPER_ON   '.'
#define FATHOM_HELPER_DONE '!'

struct fathom_helper {
	int socket; /* our end; -1 without a helper */
	pid_t pid;
};

/* Starts a helper; false if that fails. */
bool fathom_helper_start(struct fathom_helper *ret);

/* Ends a helper without work. */
void fathom_helper_end(struct fathom_helper *h);

/* Returns whether the helper, whose socket is closed, has ended. To be called until it has. */
bool fathom_helper_has_ended(pid_t pid);

/* Returns whether the helper has work and waits only for a processor. */
bool fathom_helper_is_running(const struct fathom_helper *h);

#endif
