/* SPDX-License-Identifier: MIT */
/* Sockets: addresses, messages and options. Numbers of families and levels: constants.txt. */
#include "host/syscalls/call_functions.h"
#include "host/syscalls/decoder.h"

/* struct sockaddr_storage. */
#define SOCKADDR 128

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

static void put_inet_addr(struct fathom_decoder *d, const uint8_t *at)
{
	fathom_put(d, "inet_addr(");
	put_address_text(d, at, put_ip4);
	fathom_put_char(d, ')');
}

static void put_port(struct fathom_decoder *d, const char *name, uint16_t port)
{
	fathom_put(d, name);
	fathom_put(d, "=htons(");
	fathom_put_unsigned(d, port);
	fathom_put_char(d, ')');
}

void fathom_decode_in_addr(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (o->bytes)
		put_inet_addr(d, o->bytes);
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
	const size_t size = n - 2;
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

/* The scope came later: addresses without it are valid. */
static void put_inet6(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const uint32_t scope = load_u32(bytes + 24, false);

	put_port(d, ", sin6_port", big_u16(bytes + 2));
	fathom_put(d, ", sin6_flowinfo=htonl(");
	fathom_put_unsigned(d, load_u32(bytes + 4, true));
	fathom_put(d, "), inet_pton(AF_INET6, ");
	put_address_text(d, bytes + 8, put_ip6);
	fathom_put(d, ", &sin6_addr)");
	if (n <= 24)
		return;
	fathom_put(d, ", sin6_scope_id=");
	fathom_put_unsigned(d, scope);
}

static void put_netlink(struct fathom_decoder *d, const uint8_t *bytes)
{
	fathom_put(d, ", nl_pid=");
	fathom_put_signed(d, (int32_t)load_u32(bytes + 4, false));
	fathom_put(d, ", nl_groups=");
	/* Eight digits, but for 0. */
	if (load_u32(bytes + 8, false)) {
		fathom_put(d, "0x");
		for (int shift = 28; shift >= 0; shift -= 4)
			fathom_put_char(
				d, "0123456789abcdef"[load_u32(bytes + 8, false) >> shift & 15]);
	} else {
		fathom_put(d, "00000000");
	}
}

static void put_packet(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const size_t length = bytes[11] < n - 12 ? bytes[11] : n - 12;

	fathom_put(d, ", sll_protocol=htons(");
	fathom_put_enum(d, FATHOM_CONSTANTS_ETHER_PROTOCOLS, big_u16(bytes + 2));
	fathom_put(d, "), sll_ifindex=");
	fathom_put_unsigned(d, load_u32(bytes + 4, false));
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
		fathom_put_hex(d, bytes[12 + i]);
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
static void put_sockaddr(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const uint16_t family = load_u16(bytes, false);

	fathom_put(d, "{sa_family=");
	fathom_put_enum(d, FATHOM_CONSTANTS_SOCKET_FAMILIES, family);
	if (family == UNIX && n > 2) {
		put_unix(d, bytes, n);
	} else if (family == INET && n >= 16) {
		put_port(d, ", sin_port", big_u16(bytes + 2));
		fathom_put(d, ", sin_addr=");
		put_inet_addr(d, bytes + 4);
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
		put_sockaddr(d, bytes, (size_t)length);
}

void fathom_decode_sockaddr(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_sockaddr_at(d, o->value, fathom_decode_int(d, o->n));
}

/*
 * An address that the kernel stores, and where the caller has left the size of the buffer, in which
 * the kernel stores that of the address. The walk before the call reads the size.
 */
static bool get_lengths(struct fathom_decoder *d, uint64_t avma, int32_t *ret_room,
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

/* Returns the argument in which the length is, behind the one of @o. */
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
	    !get_lengths(d, length_behind(d, o), &room, &length) || room < 0)
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
	if (!fathom_decode_has_failed(d) && get_lengths(d, o->value, &room, &length) &&
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
	put_socket_flags(d, (uint32_t)o->value, true);
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
	} else if (n) {
		fathom_put(d, ", cmsg_data=");
		fathom_put_quoted_hex(d, bytes, n, false);
	}
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
		put_level(d, level);
		fathom_put(d, ", cmsg_type=");
		if (level == 1)
			fathom_put_enum(d, FATHOM_CONSTANTS_SCM_TYPES, type);
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

/* Levels: SOL_IP, SOL_SOCKET, SOL_TCP, SOL_UDP, SOL_IPV6, SOL_PACKET, SOL_NETLINK. */
static void put_option(struct fathom_decoder *d, uint32_t level, uint32_t option)
{
	static const struct {
		uint32_t level;
		enum fathom_constant_table table;
	} tables[] = {
		{ 0, FATHOM_CONSTANTS_IP_OPTIONS },       { 6, FATHOM_CONSTANTS_TCP_OPTIONS },
		{ 17, FATHOM_CONSTANTS_UDP_OPTIONS },     { 41, FATHOM_CONSTANTS_IP6_OPTIONS },
		{ 263, FATHOM_CONSTANTS_PACKET_OPTIONS }, { 270, FATHOM_CONSTANTS_NETLINK_OPTIONS },
	};

	if (level == 1) {
		const enum fathom_constant_table times = FATHOM_CONSTANTS_SOCKET_TIME_OPTIONS;

		fathom_put_enum(d,
				fathom_constant_name(times, d->arch, option)
					? times
					: FATHOM_CONSTANTS_SOCKET_OPTIONS,
				option);
		return;
	}
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		if (tables[i].level == level) {
			fathom_put_enum(d, tables[i].table, option);
			return;
		}
	fathom_put_unsigned(d, option);
}

void fathom_decode_socket_option(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_option(d, (uint32_t)d->call.args[1], (uint32_t)o->value);
}

/* Options of SOL_SOCKET whose values are not plain numbers. */
enum option { ERROR_NUMBER = 4, LINGER = 13, PEER_CREDENTIALS = 17, BIND_TO_DEVICE = 25 };

static void put_option_number(struct fathom_decoder *d, uint32_t value)
{
	fathom_put_char(d, '[');
	if (d->call.args[1] == 1 && d->call.args[2] == ERROR_NUMBER)
		fathom_put_errno(d, value);
	else
		fathom_put_signed(d, (int32_t)value);
	fathom_put_char(d, ']');
}

/* Prints as many members of a struct of numbers of 4 bytes as there are. */
static void put_members(struct fathom_decoder *d, uint64_t avma, int32_t length,
			const char *const *names, size_t n)
{
	uint64_t value;

	for (size_t i = 0; i < n && (int64_t)(4 * i + 4) <= length; i++) {
		if (!fathom_decode_get_uint(d, avma + 4 * i, 4, &value)) {
			if (i)
				break;
			fathom_put_address(d, avma);
			return;
		}
		fathom_put(d, i ? ", " : "{");
		fathom_put(d, names[i]);
		fathom_put_signed(d, (int32_t)value);
	}
	fathom_put_char(d, '}');
}

static bool put_known_option(struct fathom_decoder *d, uint64_t avma, int32_t length)
{
	static const char *const linger[] = { "l_onoff=", "l_linger=" };
	static const char *const peer[] = { "pid=", "uid=", "gid=" };

	if (d->call.args[1] != 1 || length < 4)
		return false;
	switch (d->call.args[2]) {
	case LINGER:
		put_members(d, avma, length, linger, 2);
		return true;
	case PEER_CREDENTIALS:
		put_members(d, avma, length, peer, 3);
		return true;
	case BIND_TO_DEVICE:
		fathom_put_data(d, avma, (uint32_t)length);
		return true;
	default:
		return false;
	}
}

static void put_option_value(struct fathom_decoder *d, uint64_t avma, int32_t length)
{
	uint64_t value;

	if (!avma || length < 0 || d->call.manner & FATHOM_SYSCALL_BY_ADDRESS) {
		fathom_put_address(d, avma);
	} else if (!put_known_option(d, avma, length)) {
		if (length == 4 && fathom_decode_get_uint(d, avma, 4, &value))
			put_option_number(d, (uint32_t)value);
		else
			fathom_put_data(d, avma, (uint32_t)length);
	}
}

void fathom_decode_option_value(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const bool is_out = fathom_types[o->type].kind == FATHOM_KIND_FUNCTION_OUT;
	int32_t room;
	int32_t length;

	if (!is_out)
		put_option_value(d, o->value, fathom_decode_int(d, 4));
	else if (fathom_decode_has_failed(d) || !get_lengths(d, d->call.args[4], &room, &length))
		fathom_put_address(d, o->value);
	else
		put_option_value(d, o->value, length);
}

static void put_link_address(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			fathom_put_char(d, ':');
		fathom_put_char(d, "0123456789abcdef"[bytes[i] >> 4]);
		fathom_put_char(d, "0123456789abcdef"[bytes[i] & 15]);
	}
}

/* struct ifreq: a name, and what the request has stored. */
void fathom_decode_ifreq(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[40];
	const uint8_t *end;
	const uint32_t request = (uint32_t)d->call.args[1];

	if (!o->value || fathom_decode_has_failed(d) ||
	    !fathom_decode_get(d, o->value, bytes, d->word == 8 ? 40 : 32)) {
		fathom_put_address(d, o->value);
		return;
	}
	end = memchr(bytes, 0, 16);
	fathom_put(d, "{ifr_name=");
	fathom_put_quoted(d, bytes, end ? (size_t)(end - bytes) : 16, false);
	fathom_put(d, ", ");
	switch (request) {
	case 0x8913: /* SIOCGIFFLAGS */
		fathom_put(d, "ifr_flags=");
		fathom_put_flags(d, FATHOM_CONSTANTS_INTERFACE_FLAGS, load_u16(bytes + 16, false));
		break;
	case 0x8933: /* SIOCGIFINDEX */
		fathom_put(d, "ifr_ifindex=");
		fathom_put_signed(d, (int32_t)load_u32(bytes + 16, false));
		break;
	case 0x8927: /* SIOCGIFHWADDR */
		fathom_put(d, "ifr_hwaddr={sa_family=");
		fathom_put_enum(d, FATHOM_CONSTANTS_ARP_TYPES, load_u16(bytes + 16, false));
		fathom_put(d, ", sa_data=");
		put_link_address(d, bytes + 18, 6);
		fathom_put_char(d, '}');
		break;
	case 0x8921: /* SIOCGIFMTU */
		fathom_put(d, "ifr_mtu=");
		fathom_put_signed(d, (int32_t)load_u32(bytes + 16, false));
		break;
	default:
		fathom_put(d, "ifr_addr=");
		put_sockaddr(d, bytes + 16, 16);
	}
	fathom_put_char(d, '}');
}
