/* SPDX-License-Identifier: MIT */
/* Describes the descriptors of a thread without opening their files. */
#ifndef FATHOM_STACK_DESCRIPTOR_H
#define FATHOM_STACK_DESCRIPTOR_H

#include "host/stack/task.h"

/*
 * Appends what descriptor @fd is: a path, "pipe:[INODE]", a socket's addresses, "process PID", or
 * nothing if it is not known. Returns whether something was appended. Unless @inode is 0, a socket
 * or a pipe with another inode is not described.
 */
bool fathom_descriptor_name(struct fathom_waiter *w, int32_t fd, uint64_t inode,
			    enum fathom_direction way);

/*
 * Returns the PID, as /proc has it, of the process that pidfd @fd refers to; 0 if @fd is no pidfd,
 * or that is unknown.
 */
int32_t fathom_descriptor_pid(const struct fathom_waiter *w, int32_t fd);

/* Several descriptors, of which the first few are named. */
struct fathom_descriptors {
	uint32_t n;
	struct {
		int32_t fd;
		uint64_t inode; /* 0: unknown */
	} first[4];
};

void fathom_descriptors_add(struct fathom_descriptors *d, int32_t fd, uint64_t inode);

/* Reads the members of the epoll descriptor @fd; returns false if they are not known. */
bool fathom_descriptors_read_epoll(const struct fathom_waiter *w, int32_t fd,
				   struct fathom_descriptors *ret);

#endif
