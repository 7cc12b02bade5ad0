/* SPDX-License-Identifier: MIT */
/*
 * The sockets of a network namespace as /proc/net/{tcp,tcp6,udp,udp6,unix} list them, found by
 * their inodes. Formats: the functions get_tcp4_sock(), udp4_format_sock() and unix_seq_show() of
 * Linux. Other families are not read.
 */
#ifndef FATHOM_STACK_SOCKETS_H
#define FATHOM_STACK_SOCKETS_H

#include "host/base/array.h"
#include "safe/base/text.h"

#define FATHOM_SOCKET_TABLES 5

struct fathom_sockets {
	bool known; /* the tables were read */
	char *texts[FATHOM_SOCKET_TABLES];
	struct fathom_keyed_array rows; /* by inode: the table << 32 | the offset of the row */
};

/* Which way data goes. */
enum fathom_direction { FATHOM_BOTH_WAYS, FATHOM_INWARDS, FATHOM_OUTWARDS };

/* Reads the tables below @folder, once. A table that cannot be read is empty. */
void fathom_sockets_read(struct fathom_sockets *s, const char *folder);

/*
 * Appends protocol, address and peer of the socket @inode: "tcp 10.0.0.1:80 <- 10.0.0.2:4711",
 * "unix /run/x". Returns false if it is not listed, or twice: names of Unix sockets can contain
 * anything, even lines like those of the table.
 */
bool fathom_sockets_describe(const struct fathom_sockets *s, uint64_t inode,
			     enum fathom_direction way, struct fathom_text *text);

void fathom_sockets_deinit(struct fathom_sockets *s);

#endif
