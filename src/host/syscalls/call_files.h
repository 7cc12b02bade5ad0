/* SPDX-License-Identifier: MIT */
/*
 * Stores what the descriptors of a call are open for in its record, as pieces of memory that no
 * program has: the text shows the state at the moment of the call.
 */
#ifndef FATHOM_SYSCALLS_CALL_FILES_H
#define FATHOM_SYSCALLS_CALL_FILES_H

#include "host/syscalls/call_format.h"
#include "host/syscalls/socket_names.h"

/* Bits that select what is told of descriptors. */
enum fathom_call_file {
	FATHOM_CALL_FILE_PATHS = 1 << 0,   /* also of the current folder */
	FATHOM_CALL_FILE_SOCKETS = 1 << 1, /* their protocol and addresses */
	FATHOM_CALL_FILE_DEVICES = 1 << 2, /* numbers behind their paths */
	FATHOM_CALL_FILE_PIDFDS = 1 << 3   /* the number of the process */
};

struct fathom_call_files {
	uint32_t wanted; /* enum fathom_call_file */
	struct fathom_socket_names *sockets;
};

/*
 * Copies what descriptor @fd of thread @tid is open for, or its current folder, if @fd is -1, as
 * /proc has it; returns how many bytes, 0 if there is no such descriptor.
 */
size_t fathom_call_file_link(int32_t tid, int32_t fd, char to[PATH_MAX]);

/*
 * Adds what the descriptors in the text of @record, as it is with @options, are open for in thread
 * @tid.
 */
void fathom_call_files_add(const struct fathom_call_files *files,
			   struct fathom_syscall_record *record,
			   const struct fathom_syscall_options *options, int32_t tid);

/* struct fathom_syscall_options.name_fd, with the struct fathom_syscall_record as data. */
bool fathom_call_files_name(void *record, int32_t fd, bool after, struct fathom_fd_name *ret);

#endif
