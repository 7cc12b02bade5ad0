/* SPDX-License-Identifier: MIT */
/*
 * Finds the protocol and addresses of sockets by inode (sock_diag(7)), of those in the network
 * namespace of the calling process.
 */
#ifndef FATHOM_SYSCALLS_SOCKET_NAMES_H
#define FATHOM_SYSCALLS_SOCKET_NAMES_H

#include "safe/base/text.h"

struct fathom_socket_names;

/* Returns NULL without memory. */
struct fathom_socket_names *fathom_socket_names_create(void);
void fathom_socket_names_destroy(struct fathom_socket_names *s);

/*
 * Appends what the socket is that @path, a link of /proc, leads to, and whose inode is @inode:
 * "TCP:[127.0.0.1:80]". The name of a UNIX socket stands at the end, after a NUL, without what
 * closes the bracket. Returns false if its protocol is not known, or where strace(1) has no name
 * for it before it has an address.
 */
bool fathom_socket_name(struct fathom_socket_names *s, const char *path, uint32_t inode,
			struct fathom_text *out);

#endif
