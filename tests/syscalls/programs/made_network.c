/* SPDX-License-Identifier: MIT */
#include "made.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static void unix_addresses(void)
{
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un named = { AF_UNIX, "no-such-socket" },
			   abstract = { AF_UNIX, "\0abstract" }, full = { AF_UNIX, "" };
	connect(s, (void *)&named, sizeof named);
	bind(s, (void *)&abstract, 2);
	listen(s, 5);
	connect(s, (void *)&abstract, 2 + 9);
	connect(s, (void *)&abstract, 2);
	connect(s, (void *)&abstract, 1);
	connect(s, BAD, 16);
	connect(s, 0, 16);
	memset(full.sun_path, 'f', sizeof full.sun_path);
	connect(s, (void *)&full, sizeof full);
}

static void ip6_address(int s, const char *text, socklen_t size)
{
	struct sockaddr_in6 a = { AF_INET6, htons(80), htonl(5), IN6ADDR_LOOPBACK_INIT, 7 };
	inet_pton(AF_INET6, text, &a.sin6_addr);
	connect(s, (void *)&a, size);
}

static void other_addresses(void)
{
	static const char *const texts[] = {
		"::1",    "2001:db8::1:0:0:1", "::ffff:1.2.3.4", "::1.2.3.4",
		"::",     "1:2:3:4:5:6:7:8",   "1:0:0:2::",      "::2:3",
		"fe80::1"
	};
	int s = socket(AF_INET6, SOCK_DGRAM, 0);
	int n = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct sockaddr_nl nl = { AF_NETLINK, 0, 5, 0x10 };
	struct sockaddr_ll ll = { AF_PACKET, htons(0x800), 0, 1, 0, 6, { 1, 2, 3, 4, 5, 6 } };
	struct sockaddr_vm vm = { AF_VSOCK, 0, 5, 6 };
	struct {
		short family;
		char data[14];
	} raw = { 77, "abcdefghijklm" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		ip6_address(s, texts[i], 28);
	ip6_address(s, "::1", 24);
	ip6_address(s, "::1", 27);
	ip6_address(s, "::1", 10);
	connect(n, (void *)&nl, 12);
	nl.nl_groups = 0;
	connect(n, (void *)&nl, 12);
	connect(s, (void *)&ll, 20);
	connect(s, (void *)&vm, 16);
	connect(s, (void *)&raw, 16);
	socket(AF_UNIX, 99, 0);
	socket(99, 1, 0);
	socket(AF_INET, SOCK_DGRAM, 99);
	socket(AF_NETLINK, SOCK_RAW, 99);
	socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

void addresses(void)
{
	struct sockaddr_in in = { AF_INET, 0, { htonl(0x7f000001) } };
	socklen_t size = sizeof in;
	int t = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	int c = socket(AF_INET, SOCK_STREAM, 0);
	unix_addresses();
	other_addresses();
	bind(t, (void *)&in, sizeof in);
	listen(t, 128);
	getsockname(t, (void *)&in, &size);
	size = 2;
	getsockname(t, (void *)big, &size);
	size = 100;
	getsockname(t, (void *)big, &size);
	getpeername(t, (void *)big, &size);
	connect(c, (void *)&in, 16);
	size = sizeof in;
	int a = CALL(accept4, t, &in, &size, SOCK_CLOEXEC);
	accept(-1, 0, 0);
	sendto(c, "hello", 5, MSG_NOSIGNAL, 0, 0);
	CALL(recvfrom, a, big, 100, MSG_PEEK | MSG_DONTWAIT, 0, 0);
	CALL(recvfrom, a, big, 100, 0, &in, &size);
	CALL(recvfrom, a, big, 100, MSG_DONTWAIT, 0, 0);
	shutdown(c, SHUT_WR);
	shutdown(c, 77);
	int u = socket(AF_INET, SOCK_DGRAM, 0);
	size = 16;
	getsockname(t, (void *)&in, &size);
	sendto(u, "abc", 3, 0, (void *)&in, 16);
	CALL(recvfrom, a, BAD, 3, 0, BAD, BAD);
}

void options(void)
{
	int t = socket(AF_INET, SOCK_STREAM, 0);
	int one = 1;
	socklen_t size = 4;
	struct ifreq r = { .ifr_name = "lo" };
	int ends[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &one, 4);
	setsockopt(t, SOL_TCP, TCP_NODELAY, &one, 4);
	setsockopt(t, SOL_IP, IP_TOS, &one, 4);
	setsockopt(t, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 2 }, 8);
	setsockopt(t, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 1, 2 }, 16);
	setsockopt(t, 99, 99, &one, 4);
	setsockopt(t, SOL_SOCKET, 999, &one, 4);
	setsockopt(t, SOL_SOCKET, SO_SNDBUF, BAD, 4);
	setsockopt(t, SOL_IPV6, 26, &one, 4);
	setsockopt(t, SOL_SOCKET, SO_SNDBUF, &one, -1);
	getsockopt(t, SOL_SOCKET, SO_ERROR, &one, &size);
	getsockopt(t, SOL_SOCKET, SO_TYPE, &one, &size);
	size = 8;
	getsockopt(t, SOL_SOCKET, SO_SNDBUF, big, &size);
	getsockopt(t, SOL_SOCKET, SO_LINGER, big, &size);
	size = 12;
	getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, big, &size);
	getsockopt(t, SOL_SOCKET, SO_SNDBUF, 0, 0);
	getsockopt(t, SOL_SOCKET, SO_SNDBUF, BAD, &size);
	ioctl(t, SIOCGIFFLAGS, &r);
	ioctl(t, SIOCGIFINDEX, &r);
	ioctl(t, SIOCGIFMTU, &r);
	ioctl(t, SIOCGIFADDR, &r);
	ioctl(t, SIOCGIFHWADDR, &r);
	CALL(socketpair, AF_UNIX, 77, 5, BAD);
}

void messages(void)
{
	int ends[2];
	char control[CMSG_SPACE(8)] = { 0 };
	char room[100];
	struct iovec v[2] = { { "abc", 3 }, { "defghi", 6 } };
	struct iovec in = { big, 100 };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 }, r = {
		.msg_iov = &in, .msg_iovlen = 1, .msg_name = big + 200, .msg_namelen = 50
	};
	socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
	sendmsg(ends[0], &m, 0);
	m.msg_control = control;
	m.msg_controllen = sizeof control;
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(8);
	((int *)CMSG_DATA(h))[0] = 1;
	((int *)CMSG_DATA(h))[1] = 2;
	sendmsg(ends[0], &m, MSG_NOSIGNAL);
	recvmsg(ends[1], &r, 0);
	r.msg_control = room;
	r.msg_controllen = 100;
	r.msg_namelen = 50;
	recvmsg(ends[1], &r, MSG_CMSG_CLOEXEC);
	recvmsg(ends[1], &r, MSG_DONTWAIT);
	CALL(recvmsg, ends[1], BAD, 0);
	CALL(sendmsg, ends[0], 0, 0);
	struct mmsghdr out[2] = { { m, 0 }, { m, 0 } }, back[2] = { { r, 0 }, { r, 0 } };
	sendmmsg(ends[0], out, 2, 0);
	CALL(recvmmsg, ends[1], back, 2, MSG_DONTWAIT, 0);
	CALL(recvmmsg, ends[1], back, 2, MSG_DONTWAIT, 0);
	v[0].iov_base = BAD;
	sendmsg(ends[0], &m, 0);
	CALL(sendmmsg, ends[0], BAD, 2, 0);
}

static void scoped(const char *text, uint32_t scope)
{
	struct sockaddr_in6 a = { AF_INET6, htons(80), 0, IN6ADDR_ANY_INIT, scope };

	inet_pton(AF_INET6, text, &a.sin6_addr);
	connect(-1, (void *)&a, sizeof a);
}

static void memberships(void)
{
	struct ip_mreqn group = { { htonl(0xe0000001) }, { 0 }, 1 };
	struct ipv6_mreq group6 = { .ipv6mr_interface = 1 };
	struct packet_mreq packets = { 1, PACKET_MR_MULTICAST, 6, "\1\2\3\4\5\6" };
	struct group_req named = { 1 };

	inet_pton(AF_INET6, "ff02::5", &group6.ipv6mr_multiaddr);
	memcpy(&named.gr_group, &(struct sockaddr_in){ AF_INET, 0, { htonl(0xe0000001) } },
	       sizeof(struct sockaddr_in));
	for (int i = 0; i < 3; i++) {
		setsockopt(-1, SOL_IP, IP_ADD_MEMBERSHIP, &group, 8);
		setsockopt(-1, SOL_IP, IP_DROP_MEMBERSHIP, &group, sizeof group);
		setsockopt(-1, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &group6, sizeof group6);
		setsockopt(-1, SOL_IPV6, IPV6_LEAVE_ANYCAST, &group6, sizeof group6);
		setsockopt(-1, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &packets, sizeof packets);
		setsockopt(-1, SOL_IP, MCAST_JOIN_GROUP, &named, sizeof named);
		group6.ipv6mr_interface = packets.mr_ifindex = named.gr_interface = i ? 999 : 0;
		packets.mr_alen = i ? 99 : 3;
	}
	setsockopt(-1, SOL_IP, IP_ADD_MEMBERSHIP, &group, 4);
	setsockopt(-1, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &group6, 19);
	setsockopt(-1, SOL_IPV6, IPV6_ADD_MEMBERSHIP, BAD, 20);
	setsockopt(-1, SOL_PACKET, PACKET_DROP_MEMBERSHIP, &packets, 8);
	setsockopt(-1, SOL_IP, MCAST_LEAVE_GROUP, &named, 20);
	setsockopt(-1, SOL_IP, MCAST_LEAVE_GROUP, BAD, sizeof named);
	setsockopt(-1, SOL_IP, IP_ADD_MEMBERSHIP, 0, 8);
}

static void controlled(int level, int type, int n)
{
	_Alignas(8) char control[200];
	struct iovec data = { "x", 1 };
	struct msghdr m = { .msg_iov = &data,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = CMSG_SPACE(n) };
	struct cmsghdr *c = (void *)control;

	memset(control, 0, sizeof control);
	*c = (struct cmsghdr){ CMSG_LEN(n), level, type };
	for (int i = 0; i < n; i++)
		CMSG_DATA(c)[i] = i % 4 ? 0 : i / 4 + 1;
	CALL(sendmsg, -1, &m, 0);
}

void interfaces(void)
{
	static const char *const texts[] = { "fe80::1", "febf::1", "fec0::1",    "ff02::1",
					     "ff12::1", "ff05::1", "2001:db8::1" };
	struct sockaddr_ll ll = { AF_PACKET, htons(3), 1, 1, 0, 6, { 1, 0, 3 } };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		scoped(texts[i], 1);
		scoped(texts[i], 0);
		scoped(texts[i], 999);
	}
	bind(-1, (void *)&ll, 20);
	ll.sll_ifindex = 999;
	bind(-1, (void *)&ll, 20);
	memberships();
	for (int type = 0; type < 30; type++)
		for (int n = 0; n < 40; n += 4)
			controlled(SOL_IP, type, n);
	controlled(SOL_IPV6, IPV6_PKTINFO, 20);
	controlled(77, 1, 8);
}
