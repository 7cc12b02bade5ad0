/* SPDX-License-Identifier: MIT */
/* Addresses of networks, for the decoders of sockets' calls, options and requests. */
#ifndef FATHOM_SYSCALLS_DECODE_NETWORK_H
#define FATHOM_SYSCALLS_DECODE_NETWORK_H

#include "host/syscalls/decoder.h"

/*
 * For what has a text that is no constant's name: prints the bytes if they are wanted; returns
 * whether the text is, which fathom_put_end_of_flags() ends.
 */
bool fathom_put_number_of_bytes(struct fathom_decoder *d, const uint8_t *bytes, size_t n);
/* Prints the struct sockaddr of @n bytes, at least 2. */
void fathom_put_sockaddr(struct fathom_decoder *d, const uint8_t *bytes, size_t n);
/* Prints an address of IPv4, `inet_addr("127.0.0.1")`. */
void fathom_put_inet_addr(struct fathom_decoder *d, const uint8_t *at);
/* Prints a member @name that is an address of IPv6, `inet_pton(AF_INET6, "::1", &NAME)`. */
void fathom_put_in6(struct fathom_decoder *d, const uint8_t *at, const char *name);
/* Prints the address of a network device, `00:00:5e:00:53:01`. */
void fathom_put_link_address(struct fathom_decoder *d, const uint8_t *bytes, size_t n);
/*
 * Prints the number of a network interface, `if_nametoindex("lo")` if there is one. While a call is
 * captured, the name is looked up in the tracer's network namespace, and stored.
 */
void fathom_put_interface(struct fathom_decoder *d, uint32_t index);

/*
 * Prints the @n bytes after the head of a control message of SOL_IP. Prints nothing and returns
 * false if the type is unknown, or if the bytes are too few for it.
 */
bool fathom_put_ip_control(struct fathom_decoder *d, const uint8_t *bytes, size_t n, uint32_t type);

/*
 * Reads the room at @avma that the caller has left for a value, and the length that the kernel has
 * stored there.
 */
bool fathom_decode_lengths(struct fathom_decoder *d, uint64_t avma, int32_t *ret_room,
			   int32_t *ret_length);

#endif
