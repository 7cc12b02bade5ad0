/* SPDX-License-Identifier: MIT */
/* Sockets: addresses, messages and options. Numbers of families and levels: constants.txt. */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decode_network.h"

/* struct sockaddr_storage. */
#define SOCKADDR 128
/* Bytes of the path of struct sockaddr_un. */
#define SUN_PATH 108

enum family {
	UNSPEC = 0,
	UNIX = 1,
	INET = 2,
	IPX = 4,
	INET6 = 10,
	NETLINK = 16,
	PACKET = 17,
	BLUETOOTH = 31,
	VSOCK = 40,
};

static uint16_t big_u16(const uint8_t *at)
{
	return load_u16(at, true);
}

static void put_ip4(struct fathom_decoder *d, const uint8_t *at)
{
	for (unsigned i = 0; i < 4; i++) {
		if (i)
			fathom_put_char(d, '.');
		fathom_put_unsigned(d, at[i]);
	}
}

/* The text of an address is a string, which -xx shows in hexadecimal. */
static void put_address_text(struct fathom_decoder *d, const uint8_t *at,
			     void (*put)(struct fathom_decoder *d, const uint8_t *at))
{
	struct fathom_text *out = d->out;
	char buf[48];
	struct fathom_text text = text_init(buf, sizeof buf);

	if (!out)
		return;
	d->out = &text;
	put(d, at);
	d->out = out;
	fathom_put_quoted(d, (const uint8_t *)buf, text.len < sizeof buf ? text.len : 0, false);
}

bool fathom_put_number_of_bytes(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	if (d->options->constants == FATHOM_SYSCALL_NAMES)
		return true;
	fathom_put_quoted_hex(d, bytes, n, false);
	return fathom_put_both(d);
}

void fathom_put_inet_addr(struct fathom_decoder *d, const uint8_t *at)
{
	if (!fathom_put_number_of_bytes(d, at, 4))
		return;
	fathom_put(d, "inet_addr(");
	put_address_text(d, at, put_ip4);
	fathom_put_char(d, ')');
	fathom_put_end_of_flags(d);
}

/* A member of @n bytes in the order of networks, for which C has the function @function. */
static void put_network_number(struct fathom_decoder *d, const char *name, const char *function,
			       const uint8_t *at, size_t n)
{
	fathom_put(d, name);
	if (!fathom_put_number_of_bytes(d, at, n))
		return;
	fathom_put(d, function);
	fathom_put_unsigned(d, n == 2 ? big_u16(at) : load_u32(at, true));
	fathom_put_char(d, ')');
	fathom_put_end_of_flags(d);
}

static void put_port(struct fathom_decoder *d, const char *name, const uint8_t *at)
{
	put_network_number(d, name, "htons(", at, 2);
}

static void put_protocol(struct fathom_decoder *d, const uint8_t *at)
{
	const enum fathom_constant_table table = FATHOM_CONSTANTS_ETHER_PROTOCOLS;
	const char *name = fathom_constant_name(table, d->arch, big_u16(at));

	if (!fathom_put_number_of_bytes(d, at, 2))
		return;
	fathom_put(d, "htons(");
	if (name)
		fathom_put(d, name);
	else
		fathom_put_enum(d, table, big_u16(at));
	fathom_put_char(d, ')');
	fathom_put_end_of_flags(d);
}

void fathom_decode_in_addr(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (o->bytes)
		fathom_put_inet_addr(d, o->bytes);
}

/* Finds the longest run of at least two groups that are 0; returns its length. */
static unsigned longest_zeros(const uint8_t *at, unsigned *ret_first)
{
	unsigned best = 0;

	for (unsigned i = 0; i < 8; i++) {
		unsigned n = 0;

		while (i + n < 8 && !big_u16(at + 2 * (i + n)))
			n++;
		if (n > best) {
			best = n;
			*ret_first = i;
		}
		i += n;
	}
	return best >= 2 ? best : 0;
}

static void put_hex_group(struct fathom_decoder *d, uint16_t group)
{
	bool has_begun = false;

	for (int shift = 12; shift >= 0; shift -= 4) {
		const unsigned digit = group >> shift & 15;

		has_begun = has_begun || digit || !shift;
		if (has_begun)
			fathom_put_char(d, "0123456789abcdef"[digit]);
	}
}

/* As RFC 5952 recommends, with addresses of IPv4 as inet_ntop(3) writes them. */
static void put_ip6(struct fathom_decoder *d, const uint8_t *at)
{
	unsigned first = 8;
	const unsigned zeros = longest_zeros(at, &first);
	const bool is_ip4 = zeros && !first &&
			    (zeros == 6 || (zeros == 7 && big_u16(at + 14) != 1) ||
			     (zeros == 5 && big_u16(at + 10) == 0xffff));

	for (unsigned i = 0; i < 8; i++) {
		if (zeros && i >= first && i < first + zeros) {
			if (i == first)
				fathom_put_char(d, ':');
			continue;
		}
		if (i)
			fathom_put_char(d, ':');
		if (i == 6 && is_ip4) {
			put_ip4(d, at + 12);
			return;
		}
		put_hex_group(d, big_u16(at + 2 * i));
	}
	if (zeros && first + zeros == 8)
		fathom_put_char(d, ':');
}

static void put_unix(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const uint8_t *path = bytes + 2;
	const size_t size = n - 2 < SUN_PATH ? n - 2 : SUN_PATH;
	const uint8_t *end = size ? memchr(path, 0, size) : NULL;

	if (!size)
		return;
	fathom_put(d, ", sun_path=");
	if (!*path) { /* abstract */
		fathom_put_char(d, '@');
		fathom_put_quoted(d, path + 1, size - 1, false);
	} else {
		fathom_put_quoted(d, path, end ? (size_t)(end - path) : size, false);
	}
}

void fathom_put_in6(struct fathom_decoder *d, const uint8_t *at, const char *name)
{
	const bool is_named = d->options->constants == FATHOM_SYSCALL_NAMES;

	if (!is_named) {
		fathom_put(d, name);
		fathom_put_char(d, '=');
	}
	if (!fathom_put_number_of_bytes(d, at, 16))
		return;
	fathom_put(d, "inet_pton(AF_INET6, ");
	put_address_text(d, at, put_ip6);
	fathom_put(d, is_named ? ", &" : "");
	fathom_put(d, is_named ? name : "");
	fathom_put_char(d, ')');
	fathom_put_end_of_flags(d);
}

/* fe80::/10, or ff?2::/16: the scope of such an address is an interface. */
static bool is_link_local(const uint8_t *at)
{
	return (at[0] == 0xfe && (at[1] & 0xc0) == 0x80) || (at[0] == 0xff && (at[1] & 0xf) == 2);
}

/* The scope came later: addresses without it are valid. */
static void put_inet6(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const uint32_t scope = load_u32(bytes + 24, false);

	put_port(d, ", sin6_port=", bytes + 2);
	put_network_number(d, ", sin6_flowinfo=", "htonl(", bytes + 4, 4);
	fathom_put(d, ", ");
	fathom_put_in6(d, bytes + 8, "sin6_addr");
	if (n <= 24)
		return;
	fathom_put(d, ", sin6_scope_id=");
	if (is_link_local(bytes + 8))
		fathom_put_interface(d, scope);
	else
		fathom_put_unsigned(d, scope);
}

static void put_netlink(struct fathom_decoder *d, const uint8_t *bytes)
{
	fathom_put(d, ", nl_pid=");
	fathom_put_signed(d, (int32_t)load_u32(bytes + 4, false));
	fathom_put(d, ", nl_groups=");
	/* Eight characters, or more. */
	if (load_u32(bytes + 8, false)) {
		fathom_put(d, "0x");
		for (int shift = load_u32(bytes + 8, false) >> 24 ? 28 : 20; shift >= 0; shift -= 4)
			fathom_put_char(
				d, "0123456789abcdef"[load_u32(bytes + 8, false) >> shift & 15]);
	} else {
		fathom_put(d, "00000000");
	}
}

static void put_packet(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const size_t length = bytes[11] < n - 12 ? bytes[11] : n - 12;

	fathom_put(d, ", sll_protocol=");
	put_protocol(d, bytes + 2);
	fathom_put(d, ", sll_ifindex=");
	fathom_put_interface(d, load_u32(bytes + 4, false));
	fathom_put(d, ", sll_hatype=");
	fathom_put_enum(d, FATHOM_CONSTANTS_ARP_TYPES, load_u16(bytes + 8, false));
	fathom_put(d, ", sll_pkttype=");
	fathom_put_enum(d, FATHOM_CONSTANTS_PACKET_TYPES, bytes[10]);
	fathom_put(d, ", sll_halen=");
	fathom_put_unsigned(d, bytes[11]);
	if (!bytes[11])
		return;
	fathom_put(d, ", sll_addr=[");
	for (size_t i = 0; i < length; i++) {
		if (i)
			fathom_put(d, ", ");
		if (bytes[12 + i])
			fathom_put_hex(d, bytes[12 + i]);
		else
			fathom_put(d, "00");
	}
	fathom_put_char(d, ']');
}

static void put_vsock(struct fathom_decoder *d, const uint8_t *bytes)
{
	fathom_put(d, ", svm_cid=");
	fathom_put_hex(d, load_u32(bytes + 8, false));
	fathom_put(d, ", svm_port=");
	fathom_put_hex(d, load_u32(bytes + 4, false));
	fathom_put(d, ", svm_flags=");
	fathom_put_hex(d, bytes[12]);
}

/* Prints an address of @n bytes. */
void fathom_put_sockaddr(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const uint16_t family = load_u16(bytes, false);

	fathom_put(d, "{sa_family=");
	fathom_put_enum(d, FATHOM_CONSTANTS_SOCKET_FAMILIES, family);
	if (family == UNIX && n > 2) {
		put_unix(d, bytes, n);
	} else if (family == INET && n >= 16) {
		put_port(d, ", sin_port=", bytes + 2);
		fathom_put(d, ", sin_addr=");
		fathom_put_inet_addr(d, bytes + 4);
	} else if (family == INET6 && n >= 24) {
		put_inet6(d, bytes, n);
	} else if (family == NETLINK && n >= 12) {
		put_netlink(d, bytes);
	} else if (family == PACKET && n >= 12) {
		put_packet(d, bytes, n);
	} else if (family == VSOCK && n >= 16) {
		put_vsock(d, bytes);
	} else if (n > 2) {
		fathom_put(d, ", sa_data=");
		fathom_put_quoted(d, bytes + 2, n - 2, false);
	}
	fathom_put_char(d, '}');
}

static void put_sockaddr_at(struct fathom_decoder *d, uint64_t avma, int64_t length)
{
	uint8_t bytes[SOCKADDR] = { 0 };

	if (!avma || length < 2) {
		fathom_put_address(d, avma);
		return;
	}
	length = length < SOCKADDR ? length : SOCKADDR;
	if (!fathom_decode_get(d, avma, bytes, (size_t)length))
		fathom_put_address(d, avma);
	else
		fathom_put_sockaddr(d, bytes, (size_t)length);
}

void fathom_decode_sockaddr(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_sockaddr_at(d, o->value, fathom_decode_int(d, o->n));
}

/*
 * An address that the kernel stores, and where the caller has left the size of the buffer, in which
 * the kernel stores that of the address. The walk before the call reads the size.
 */
bool fathom_decode_lengths(struct fathom_decoder *d, uint64_t avma, int32_t *ret_room,
			   int32_t *ret_length)
{
	uint8_t bytes[4];
	uint64_t after;

	if (!avma || !fathom_decode_get_before(d, avma, bytes, sizeof bytes) ||
	    !fathom_decode_get_uint(d, avma, 4, &after))
		return false;
	*ret_room = (int32_t)load_u32(bytes, false);
	*ret_length = (int32_t)after;
	return true;
}

/* Returns the argument in which the length is, after the one of @o. */
static uint64_t length_behind(const struct fathom_decoder *d, const struct fathom_operand *o)
{
	for (unsigned i = 0; i + 1 < d->n; i++)
		if (d->types[i] == o->type)
			return d->call.args[i + 1];
	return 0;
}

void fathom_decode_sockaddr_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	int32_t room;
	int32_t length;

	if (!o->value || fathom_decode_has_failed(d) ||
	    !fathom_decode_lengths(d, length_behind(d, o), &room, &length) || room < 0)
		fathom_put_address(d, o->value);
	else
		put_sockaddr_at(d, o->value, length < room ? length : room);
}

void fathom_decode_length_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	int32_t room;
	int32_t length;
	uint8_t bytes[4];

	if (!d->at_exit) {
		(void)(o->value && fathom_decode_get(d, o->value, bytes, sizeof bytes));
		return;
	}
	if (!o->value || !fathom_decode_get_before(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put_char(d, '[');
	fathom_put_signed(d, (int32_t)load_u32(bytes, false));
	if (!fathom_decode_has_failed(d) && fathom_decode_lengths(d, o->value, &room, &length) &&
	    room != length) {
		fathom_put(d, " => ");
		fathom_put_signed(d, length);
	}
	fathom_put_char(d, ']');
}

static void put_socket_flags(struct fathom_decoder *d, uint32_t flags, bool is_first)
{
	if (flags)
		fathom_put_more_flags(d, FATHOM_CONSTANTS_SOCKET_FLAGS, flags, is_first);
	else if (is_first)
		fathom_put_char(d, '0');
}

void fathom_decode_socket_flags(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (d->options->constants == FATHOM_SYSCALL_NAMES)
		put_socket_flags(d, (uint32_t)o->value, true);
	else
		fathom_put_flags(d, FATHOM_CONSTANTS_SOCKET_FLAGS, (uint32_t)o->value);
}

void fathom_decode_socket_type(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t flags = (uint32_t)o->value & ~UINT32_C(15); /* SOCK_TYPE_MASK */

	if (!fathom_constant_name(FATHOM_CONSTANTS_SOCKET_TYPES, d->arch, o->value & 15)) {
		fathom_put_flags(d, FATHOM_CONSTANTS_SOCKET_FLAGS, (uint32_t)o->value);
		return;
	}
	fathom_put_enum(d, FATHOM_CONSTANTS_SOCKET_TYPES, o->value & 15);
	if (!flags)
		return;
	if (d->options->constants == FATHOM_SYSCALL_NAMES) {
		put_socket_flags(d, flags, false);
	} else {
		fathom_put_char(d, '|');
		fathom_put_flags(d, FATHOM_CONSTANTS_SOCKET_FLAGS, flags);
	}
}

void fathom_decode_socket_protocol(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (d->n == 4) { /* socketpair() */
		fathom_put_unsigned(d, o->value);
		return;
	}
	switch (d->call.args[0]) {
	case INET:
	case INET6:
		fathom_put_enum(d, FATHOM_CONSTANTS_IP_PROTOCOLS, (uint32_t)o->value);
		break;
	case NETLINK:
		fathom_put_enum(d, FATHOM_CONSTANTS_NETLINK_PROTOCOLS, (uint32_t)o->value);
		break;
	case PACKET:
		fathom_put(d, "htons(");
		fathom_put_enum(d, FATHOM_CONSTANTS_ETHER_PROTOCOLS,
				__builtin_bswap16((uint16_t)o->value));
		fathom_put_char(d, ')');
		break;
	default:
		fathom_put_unsigned(d, o->value);
	}
}

static void put_level(struct fathom_decoder *d, uint32_t level)
{
	if (fathom_constant_name(FATHOM_CONSTANTS_SOL_SOCKET, d->arch, level))
		fathom_put_enum(d, FATHOM_CONSTANTS_SOL_SOCKET, level);
	else
		fathom_put_enum(d, FATHOM_CONSTANTS_SOCKET_LEVELS, level);
}

/* Members of struct msghdr. */
struct message {
	uint64_t name, iov, n_iov, control, control_size;
	uint32_t name_size;
	uint32_t flags;
};

static uint8_t message_size(const struct fathom_decoder *d)
{
	return d->word == 8 ? 56 : 28;
}

static bool read_message(struct fathom_decoder *d, uint64_t avma, struct message *ret)
{
	const uint8_t w = d->word;
	uint8_t bytes[56];

	if (!fathom_decode_get(d, avma, bytes, message_size(d)))
		return false;
	*ret = (struct message){ .name = fathom_decode_load(d, bytes, w),
				 .name_size = load_u32(bytes + w, false),
				 .iov = fathom_decode_load(d, bytes + 2 * w, w),
				 .n_iov = fathom_decode_load(d, bytes + 3 * w, w),
				 .control = fathom_decode_load(d, bytes + 4 * w, w),
				 .control_size = fathom_decode_load(d, bytes + 5 * w, w),
				 .flags = load_u32(bytes + 6 * w, false) };
	return true;
}

/* Descriptors, or credentials, of a control message. */
static void put_control_data(struct fathom_decoder *d, const uint8_t *bytes, size_t n,
			     uint32_t level, uint32_t type)
{
	if (level == 1 && type == 1 && n >= 4) { /* SOL_SOCKET, SCM_RIGHTS */
		for (size_t i = 0; i + 4 <= n; i += 4) {
			fathom_put(d, i ? ", " : ", cmsg_data=[");
			fathom_put_fd(d, (int32_t)load_u32(bytes + i, false));
		}
		fathom_put_char(d, ']');
	} else if (level == 1 && type == 2 && n >= 12) { /* SCM_CREDENTIALS */
		fathom_put(d, ", cmsg_data={pid=");
		fathom_put_signed(d, (int32_t)load_u32(bytes, false));
		fathom_put(d, ", uid=");
		fathom_put_uid(d, load_u32(bytes + 4, false));
		fathom_put(d, ", gid=");
		fathom_put_uid(d, load_u32(bytes + 8, false));
		fathom_put_char(d, '}');
	} else if (n && (level || !fathom_put_ip_control(d, bytes, n, type))) {
		fathom_put(d, ", cmsg_data=");
		fathom_put_quoted_hex(d, bytes, n, false);
	}
}

/* strace has three question marks here, and two in options. */
static void put_control_level(struct fathom_decoder *d, uint32_t level)
{
	const bool has_name =
		fathom_constant_name(FATHOM_CONSTANTS_SOCKET_LEVELS, d->arch, level) ||
		fathom_constant_name(FATHOM_CONSTANTS_SOL_SOCKET, d->arch, level);

	if (has_name || d->options->constants == FATHOM_SYSCALL_RAW) {
		put_level(d, level);
		return;
	}
	fathom_put_hex(d, level);
	fathom_put_comment(d, "SOL_???");
}

/* Bytes of control messages that are read. */
#define CONTROL 1024

static uint64_t aligned(const struct fathom_decoder *d, uint64_t size)
{
	return (size + d->word - 1) & ~(uint64_t)(d->word - 1);
}

static void put_control(struct fathom_decoder *d, uint64_t avma, uint64_t size)
{
	const unsigned head = d->word + 8u;
	uint8_t bytes[CONTROL];
	uint64_t off = 0;
	bool is_first = true;

	size = size < sizeof bytes ? size : sizeof bytes;
	if (!avma || size < head || !fathom_decode_get(d, avma, bytes, (size_t)size)) {
		fathom_put_address(d, avma);
		return;
	}
	while (size - off >= head && fathom_decode_step(d)) {
		const uint8_t *at = bytes + off;
		const uint64_t length = fathom_decode_load(d, at, FATHOM_WIDTH_WORD);
		const uint32_t level = load_u32(at + d->word, false);
		const uint32_t type = load_u32(at + d->word + 4, false);
		const uint64_t inside = length < size - off ? length : size - off;

		fathom_put(d, is_first ? "[{cmsg_len=" : ", {cmsg_len=");
		is_first = false;
		fathom_put_unsigned(d, length);
		fathom_put(d, ", cmsg_level=");
		put_control_level(d, level);
		fathom_put(d, ", cmsg_type=");
		if (level <= 1)
			fathom_put_enum(
				d, level ? FATHOM_CONSTANTS_SCM_TYPES : FATHOM_CONSTANTS_IP_CONTROL,
				type);
		else
			fathom_put_hex(d, type);
		if (inside > head)
			put_control_data(d, at + head, (size_t)inside - head, level, type);
		fathom_put_char(d, '}');
		if (length < head || aligned(d, length) >= size - off)
			break;
		off += aligned(d, length);
	}
	fathom_put_char(d, ']');
}

/*
 * Prints a message. @limit bounds the bytes of its buffers; @room is the size that its name had
 * before the call, or -1.
 */
static void put_message(struct fathom_decoder *d, const struct message *m, uint64_t limit,
			int64_t room)
{
	fathom_put(d, "{msg_name=");
	put_sockaddr_at(d, m->name, room >= 0 && room < m->name_size ? room : m->name_size);
	fathom_put(d, ", msg_namelen=");
	if (room >= 0 && room != m->name_size) {
		fathom_put_signed(d, room);
		fathom_put(d, " => ");
	}
	fathom_put_signed(d, (int32_t)m->name_size);
	fathom_put(d, ", msg_iov=");
	fathom_put_iovecs(d, m->iov, m->n_iov, limit, false);
	fathom_put(d, ", msg_iovlen=");
	fathom_put_unsigned(d, m->n_iov);
	if (m->control_size) {
		fathom_put(d, ", msg_control=");
		put_control(d, m->control, m->control_size);
	}
	fathom_put(d, ", msg_controllen=");
	fathom_put_unsigned(d, m->control_size);
	fathom_put(d, ", msg_flags=");
	fathom_put_flags(d, FATHOM_CONSTANTS_MSG_FLAGS, m->flags);
	fathom_put_char(d, '}');
}

/* Returns the size of the room for the name, as it was before the call; -1 if it is not known. */
static int64_t room_before(struct fathom_decoder *d, uint64_t avma)
{
	uint8_t bytes[4];

	if (!d->at_exit || !fathom_decode_get_before(d, avma + d->word, bytes, sizeof bytes))
		return -1;
	return (int32_t)load_u32(bytes, false);
}

void fathom_decode_msghdr(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t limit =
		d->at_exit ? fathom_decode_count(d, FATHOM_COUNT_RESULT) : UINT64_MAX;
	struct message m;

	if (!o->value || !read_message(d, o->value, &m)) {
		fathom_put_address(d, o->value);
	} else if (fathom_decode_has_failed(d)) {
		fathom_put(d, "{msg_namelen=");
		fathom_put_signed(d, (int32_t)m.name_size);
		fathom_put_char(d, '}');
	} else if (fathom_types[o->type].kind == FATHOM_KIND_FUNCTION || d->at_exit) {
		put_message(d, &m, limit, room_before(d, o->value));
	}
}

static bool put_one_of_many(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	struct message m;
	uint64_t length;

	(void)i;
	if (!read_message(d, avma, &m) ||
	    !fathom_decode_get_uint(d, avma + message_size(d), 4, &length))
		return false;
	fathom_put(d, "{msg_hdr=");
	put_message(d, &m, d->at_exit ? length : UINT64_MAX, room_before(d, avma));
	if (d->at_exit) {
		fathom_put(d, ", msg_len=");
		fathom_put_unsigned(d, length);
	}
	fathom_put_char(d, '}');
	return true;
}

/* Reads a message before the call. */
static bool note_one_of_many(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	struct message m;

	(void)i;
	return read_message(d, avma, &m);
}

void fathom_decode_mmsghdrs(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_types[o->type].kind == FATHOM_KIND_FUNCTION_BOTH && !d->at_exit)
		fathom_put_array(d, o->value, (uint32_t)d->call.args[2],
				 message_size(d) + (d->word == 8 ? 8u : 4u), note_one_of_many);
	else if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_array(d, o->value, fathom_decode_count(d, o->n),
				 message_size(d) + (d->word == 8 ? 8u : 4u), put_one_of_many);
}

void fathom_decode_recvmmsg_left(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_signed(d, (int64_t)o->value);
	if (!o->value && d->call.args[4])
		fathom_put(d, " (Timeout)");
}

void fathom_decode_socket_level(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_level(d, (uint32_t)o->value);
}
