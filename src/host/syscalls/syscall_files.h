/* SPDX-License-Identifier: MIT */
/*
 * Stores what the descriptors of a call are open for in its record, as ranges of memory that no
 * program has: the text shows the state at the moment of the call.
 */
#ifndef FATHOM_SYSCALLS_SYSCALL_FILES_H
#define FATHOM_SYSCALLS_SYSCALL_FILES_H

#include "host/syscalls/syscall_format.h"
#include "host/syscalls/socket_names.h"

/* Bits that select what is told of descriptors. */
enum fathom_syscall_file {
	FATHOM_SYSCALL_FILE_PATHS = 1 << 0,   /* also of the current folder */
	FATHOM_SYSCALL_FILE_SOCKETS = 1 << 1, /* their protocol and addresses */
	FATHOM_SYSCALL_FILE_DEVICES = 1 << 2, /* numbers after their paths */
	FATHOM_SYSCALL_FILE_PIDFDS = 1 << 3   /* the number of the process */
};

struct fathom_syscall_files {
	uint32_t wanted; /* enum fathom_syscall_file */
	struct fathom_socket_names *sockets;
};

/*
 * Copies what descriptor @fd of thread @tid is open for, or its current folder, if @fd is -1, as
 * /proc has it; returns how many bytes, 0 if there is no such descriptor.
 */
size_t fathom_syscall_file_link(int32_t tid, int32_t fd, char to[PATH_MAX]);

/*
 * Adds what the descriptors in the text of @record, as it is with @options, are open for in thread
 * @tid.
 */
void fathom_syscall_files_add(const struct fathom_syscall_files *files,
			      struct fathom_syscall_record *record,
			      const struct fathom_syscall_options *options, int32_t tid);

/* struct fathom_syscall_options.name_fd, with the struct fathom_syscall_record as data. */
bool fathom_syscall_files_name(void *record, int32_t fd, bool after, struct fathom_fd_name *ret);

#endif
