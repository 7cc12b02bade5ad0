/* SPDX-License-Identifier: MIT */
#include "host/syscalls/socket_names.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/netlink_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "host/syscalls/constant_names.h"

/* Sockets whose addresses are kept, each where the low bits of its inode say. */
#define KNOWN 1024
/* Bytes that are received at a time. */
#define ROOM 32768
/* Seconds after which the kernel is not waited for any more. */
#define PATIENCE 1

/* A socket that was seen. */
struct known {
	uint32_t inode; /* 0: none */
	uint32_t peer;  /* inode, of a UNIX socket; 0: none */
	struct inet_diag_sockid id;
};

struct fathom_socket_names {
	int fd; /* netlink socket; -1: not open yet */
	uint32_t sequence;
	struct known known[KNOWN];
	_Alignas(struct nlmsghdr) uint8_t answer[ROOM];
};

/* Protocols; number 0: without addresses. */
static const struct protocol {
	const char *attribute; /* of the socket's file */
	const char *name;      /* NULL: the same */
	uint8_t family;
	uint8_t number;
} protocols[] = {
	{ "TCP", NULL, AF_INET, IPPROTO_TCP },
	{ "TCPv6", NULL, AF_INET6, IPPROTO_TCP },
	{ "MPTCP", "TCP", AF_INET, IPPROTO_TCP },
	{ "MPTCPv6", "TCPv6", AF_INET6, IPPROTO_TCP },
	{ "UDP", NULL, AF_INET, IPPROTO_UDP },
	{ "UDPv6", NULL, AF_INET6, IPPROTO_UDP },
	{ "UDP-Lite", "UDPLITE", AF_INET, IPPROTO_UDPLITE },
	{ "UDPLITEv6", NULL, AF_INET6, IPPROTO_UDPLITE },
	{ "DCCP", NULL, AF_INET, IPPROTO_DCCP },
	{ "DCCPv6", NULL, AF_INET6, IPPROTO_DCCP },
	{ "SCTP", NULL, AF_INET, IPPROTO_SCTP },
	{ "SCTPv6", NULL, AF_INET6, IPPROTO_SCTP },
	{ "PING", NULL, AF_INET, 0 },
	{ "PINGv6", NULL, AF_INET6, 0 },
	{ "RAW", NULL, AF_INET, 0 },
	{ "RAWv6", NULL, AF_INET6, 0 },
	{ "L2TP/IP", NULL, AF_INET, 0 },
	{ "L2TP/IPv6", NULL, AF_INET6, 0 },
	{ "UNIX", NULL, AF_UNIX, 0 },
	{ "UNIX-STREAM", NULL, AF_UNIX, 0 },
	{ "NETLINK", NULL, AF_NETLINK, 0 },
};

/* Takes one message of an answer; returns whether it is the one that is looked for. */
typedef bool take_fn(void *data, const struct nlmsghdr *message);

struct fathom_socket_names *fathom_socket_names_create(void)
{
	struct fathom_socket_names *s = calloc(1, sizeof *s);

	if (s)
		s->fd = -1;
	return s;
}

void fathom_socket_names_destroy(struct fathom_socket_names *s)
{
	if (s && s->fd >= 0)
		(void)close(s->fd);
	free(s);
}

static bool open_socket(struct fathom_socket_names *s)
{
	const struct timeval patience = { .tv_sec = PATIENCE };

	if (s->fd >= 0)
		return true;
	s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (s->fd >= 0)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	return s->fd >= 0;
}

/* Sends a request; returns whether it was sent. */
static bool send_request(struct fathom_socket_names *s, const void *request, size_t n, bool for_all)
{
	struct nlmsghdr head = { .nlmsg_len = (uint32_t)(NLMSG_HDRLEN + n),
				 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
				 .nlmsg_flags = NLM_F_REQUEST,
				 .nlmsg_seq = ++s->sequence };
	uint8_t bytes[NLMSG_SPACE(sizeof(struct inet_diag_req_v2))] = { 0 };

	if (for_all)
		head.nlmsg_flags |= NLM_F_DUMP;
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + NLMSG_HDRLEN, request, n);
	return send(s->fd, bytes, head.nlmsg_len, 0) == (ssize_t)head.nlmsg_len;
}

/* Returns what stands @size bytes after @at, and takes them from *@left, which they may exceed. */
static const void *behind(const void *at, size_t size, size_t *left)
{
	const size_t n = size < *left ? size : *left;

	*left -= n;
	return (const char *)at + n;
}

/*
 * Asks the kernel; returns whether @take has found what it looks for. An answer is read to its end
 * even then, or the next request would be refused.
 */
static bool ask(struct fathom_socket_names *s, const void *request, size_t size, bool for_all,
		take_fn *take, void *data)
{
	bool is_found = false;

	if (!open_socket(s) || !send_request(s, request, size, for_all))
		return false;
	for (;;) {
		const ssize_t got = recv(s->fd, s->answer, sizeof s->answer, 0);
		size_t left = got > 0 ? (size_t)got : 0;
		bool is_over = !left;

		for (const struct nlmsghdr *m = (const void *)s->answer; NLMSG_OK(m, left);
		     m = behind(m, NLMSG_ALIGN(m->nlmsg_len), &left)) {
			if (m->nlmsg_seq != s->sequence)
				continue;
			is_over |= !for_all || m->nlmsg_type == NLMSG_DONE ||
				   m->nlmsg_type == NLMSG_ERROR;
			if (m->nlmsg_type == SOCK_DIAG_BY_FAMILY && !is_found)
				is_found = take(data, m);
		}
		if (is_over)
			return is_found;
	}
}

/* Takes an internet socket: @data is a struct known with the inode. */
static bool take_inet(void *data, const struct nlmsghdr *m)
{
	const struct inet_diag_msg *message = NLMSG_DATA(m);
	struct known *k = data;

	if (m->nlmsg_len < NLMSG_LENGTH(sizeof *message) || message->idiag_inode != k->inode)
		return false;
	k->id = message->id;
	return true;
}

/*
 * Looks up the addresses of a socket. The kernel finds one of which they are known at once, and
 * walks over all sockets otherwise. A connection that is over is told of as it was.
 */
static bool find_inet(struct fathom_socket_names *s, const struct protocol *p, struct known *ret)
{
	struct known *k = &s->known[ret->inode % KNOWN];
	const bool is_known = k->inode == ret->inode;
	struct inet_diag_req_v2 request = { .sdiag_family = p->family,
					    .sdiag_protocol = p->number,
					    .idiag_states = UINT32_MAX };

	if (is_known) {
		request.id = k->id;
		if (ask(s, &request, sizeof request, false, take_inet, ret))
			return true;
		request.id = (struct inet_diag_sockid){ .idiag_sport = 0 };
	}
	if (ask(s, &request, sizeof request, true, take_inet, ret)) {
		*k = *ret;
		return true;
	}
	if (is_known)
		*ret = *k;
	return is_known && p->number == IPPROTO_TCP && k->id.idiag_dport;
}

static void put_end(struct fathom_text *out, uint8_t family, const void *address, uint16_t port)
{
	char text[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(family, address, text, sizeof text);
	fathom_text_cstr(out, family == AF_INET6 ? "[" : "");
	fathom_text_cstr(out, text);
	fathom_text_cstr(out, family == AF_INET6 ? "]:" : ":");
	fathom_text_dec(out, ntohs(port));
}

static bool put_inet(struct fathom_socket_names *s, const struct protocol *p, uint32_t inode,
		     struct fathom_text *out)
{
	struct known k = { .inode = inode };

	if (!p->number || !find_inet(s, p, &k))
		return false;
	put_end(out, p->family, k.id.idiag_src, k.id.idiag_sport);
	if (k.id.idiag_dport) {
		fathom_text_cstr(out, "->");
		put_end(out, p->family, k.id.idiag_dst, k.id.idiag_dport);
	}
	return true;
}

/* The kernel's record of a UNIX socket. */
struct unix_socket {
	uint32_t inode;
	uint32_t peer; /* 0: none */
	uint32_t name_size;
	bool is_connection; /* it has the same peer for ever */
	char name[108];     /* as in struct sockaddr_un */
};

static bool take_unix(void *data, const struct nlmsghdr *m)
{
	const struct unix_diag_msg *message = NLMSG_DATA(m);
	struct unix_socket *u = data;
	size_t left;

	if (m->nlmsg_len < NLMSG_LENGTH(sizeof *message) || message->udiag_ino != u->inode)
		return false;
	u->is_connection = message->udiag_type != SOCK_DGRAM;
	left = m->nlmsg_len - NLMSG_LENGTH(sizeof *message);
	for (const struct rtattr *a = (const void *)(message + 1); RTA_OK(a, left);
	     a = behind(a, RTA_ALIGN(a->rta_len), &left)) {
		const size_t n = RTA_PAYLOAD(a);

		if (a->rta_type == UNIX_DIAG_PEER && n == sizeof u->peer)
			memcpy(&u->peer, RTA_DATA(a), n);
		if (a->rta_type == UNIX_DIAG_NAME && n <= sizeof u->name) {
			memcpy(u->name, RTA_DATA(a), n);
			u->name_size = (uint32_t)n;
		}
	}
	return true;
}

/* Returns whether the socket has a name, which stands after a NUL then. */
static bool put_unix(struct fathom_socket_names *s, uint32_t inode, struct fathom_text *out)
{
	const struct unix_diag_req request = { .sdiag_family = AF_UNIX,
					       .udiag_states = UINT32_MAX,
					       .udiag_ino = inode,
					       .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
					       .udiag_cookie = { UINT32_MAX, UINT32_MAX } };
	struct known *k = &s->known[inode % KNOWN];
	struct unix_socket u = { .inode = inode };

	fathom_text_dec(out, inode);
	if (!ask(s, &request, sizeof request, false, take_unix, &u))
		return false;
	/* The kernel does not tell of a peer that is closed. */
	if (!u.peer && u.is_connection && k->inode == inode)
		u.peer = k->peer;
	if (u.peer) {
		*k = (struct known){ .inode = inode, .peer = u.peer };
		fathom_text_cstr(out, "->");
		fathom_text_dec(out, u.peer);
	}
	/* A path may end with its NUL. */
	if (u.name_size && u.name[0])
		u.name_size = (uint32_t)strnlen(u.name, u.name_size);
	if (!u.name_size)
		return false;
	fathom_text_char(out, ',');
	fathom_text_char(out, '\0');
	for (uint32_t i = 0; i < u.name_size; i++)
		fathom_text_char(out, u.name[i]);
	return true;
}

/* The kernel's record of a netlink socket. */
struct netlink_socket {
	uint32_t inode;
	uint32_t port;
	uint8_t protocol;
};

static bool take_netlink(void *data, const struct nlmsghdr *m)
{
	const struct netlink_diag_msg *message = NLMSG_DATA(m);
	struct netlink_socket *n = data;

	if (m->nlmsg_len < NLMSG_LENGTH(sizeof *message) || message->ndiag_ino != n->inode)
		return false;
	n->port = message->ndiag_portid;
	n->protocol = message->ndiag_protocol;
	return true;
}

static bool put_netlink(struct fathom_socket_names *s, uint32_t inode, struct fathom_text *out)
{
	const struct netlink_diag_req request = { .sdiag_family = AF_NETLINK,
						  .sdiag_protocol = NDIAG_PROTO_ALL };
	struct netlink_socket n = { .inode = inode };
	const char *name;

	if (!ask(s, &request, sizeof request, true, take_netlink, &n))
		return false;
	/* They are the same on all machines. */
	name = fathom_constant_name(FATHOM_CONSTANTS_NETLINK_PROTOCOLS, UINT8_MAX, n.protocol);
	if (name)
		fathom_text_cstr(out, name + sizeof "NETLINK_" - 1);
	else
		fathom_text_dec(out, n.protocol);
	fathom_text_char(out, ':');
	fathom_text_dec(out, n.port);
	return true;
}

/* Returns the protocol of the socket at @path; NULL: it is not known. */
static const struct protocol *protocol_of(const char *path)
{
	char name[32];
	const ssize_t n = getxattr(path, "system.sockprotoname", name, sizeof name - 1);

	name[n > 0 ? n : 0] = '\0';
	for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
		if (!strcmp(name, protocols[i].attribute))
			return &protocols[i];
	return NULL;
}

bool fathom_socket_name(struct fathom_socket_names *s, const char *path, uint32_t inode,
			struct fathom_text *out)
{
	const struct protocol *p = protocol_of(path);
	const size_t begin = out->len;
	bool is_found;

	if (!p)
		return false;
	fathom_text_cstr(out, p->name ? p->name : p->attribute);
	fathom_text_cstr(out, ":[");
	if (p->family == AF_UNIX) {
		if (put_unix(s, inode, out))
			return true;
		is_found = true;
	} else {
		is_found = p->family == AF_NETLINK ? put_netlink(s, inode, out)
						   : put_inet(s, p, inode, out);
	}
	if (!is_found && p->name) {
		out->len = begin;
		return false;
	}
	if (!is_found)
		fathom_text_dec(out, inode);
	fathom_text_char(out, ']');
	return true;
}
