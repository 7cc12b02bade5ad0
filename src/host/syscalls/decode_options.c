/* SPDX-License-Identifier: MIT */
/* Options of sockets, and the control messages that options ask for. */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decode_network.h"

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

static bool is_one_of(const struct fathom_decoder *d, enum fathom_constant_table table)
{
	return fathom_constant_name(table, d->arch, (uint32_t)d->call.args[2]) != NULL;
}

/* struct group_req: an interface, aligned to a long, and a struct sockaddr_storage. */
#define SOCKADDR 128

static void put_group(struct fathom_decoder *d, uint64_t avma)
{
	uint8_t bytes[8 + SOCKADDR];

	if (!fathom_decode_get(d, avma, bytes, d->word + SOCKADDR)) {
		fathom_put_address(d, avma);
		return;
	}
	fathom_put(d, "{gr_interface=");
	fathom_put_interface(d, load_u32(bytes, false));
	fathom_put(d, ", gr_group=");
	fathom_put_sockaddr(d, bytes + d->word, SOCKADDR);
	fathom_put_char(d, '}');
}

#define IP6_MEMBERSHIP 20

static void put_ip6_membership(struct fathom_decoder *d, uint64_t avma)
{
	uint8_t bytes[IP6_MEMBERSHIP];

	if (!fathom_decode_get(d, avma, bytes, sizeof bytes)) {
		fathom_put_address(d, avma);
		return;
	}
	fathom_put_char(d, '{');
	fathom_put_in6(d, bytes, "ipv6mr_multiaddr");
	fathom_put(d, ", ipv6mr_interface=");
	fathom_put_interface(d, load_u32(bytes + 16, false));
	fathom_put_char(d, '}');
}

#define PACKET_MEMBERSHIP 16

static void put_packet_membership(struct fathom_decoder *d, uint64_t avma)
{
	uint8_t bytes[PACKET_MEMBERSHIP];
	uint16_t length;

	if (!fathom_decode_get(d, avma, bytes, sizeof bytes)) {
		fathom_put_address(d, avma);
		return;
	}
	length = load_u16(bytes + 6, false);
	fathom_put(d, "{mr_ifindex=");
	fathom_put_interface(d, load_u32(bytes, false));
	fathom_put(d, ", mr_type=");
	fathom_put_enum(d, FATHOM_CONSTANTS_PACKET_MEMBERS, load_u16(bytes + 4, false));
	fathom_put(d, ", mr_alen=");
	fathom_put_unsigned(d, length);
	fathom_put(d, ", mr_address=");
	fathom_put_link_address(d, bytes + 8, length < 8 ? length : 8);
	fathom_put_char(d, '}');
}

static void put_ip4_membership(struct fathom_decoder *d, uint64_t avma)
{
	if (!fathom_put_at(d, FATHOM_TYPE_IP_MREQ, avma))
		fathom_put_address(d, avma);
}

/* Options that are set to a group, and an interface; an address if they are too short. */
static bool put_membership(struct fathom_decoder *d, uint64_t avma, int32_t length)
{
	const struct {
		uint32_t level;
		enum fathom_constant_table table;
		void (*put)(struct fathom_decoder *d, uint64_t avma);
		int32_t size;
	} kinds[] = {
		{ 0, FATHOM_CONSTANTS_IP_MEMBERSHIPS, put_ip4_membership, 8 },
		{ 0, FATHOM_CONSTANTS_IP_GROUPS, put_group, d->word + SOCKADDR },
		{ 41, FATHOM_CONSTANTS_IP6_MEMBERSHIPS, put_ip6_membership, IP6_MEMBERSHIP },
		{ 263, FATHOM_CONSTANTS_PACKET_MEMBERSHIPS, put_packet_membership,
		  PACKET_MEMBERSHIP },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (d->call.args[1] != kinds[i].level || !is_one_of(d, kinds[i].table))
			continue;
		if (length < kinds[i].size)
			fathom_put_address(d, avma);
		else
			kinds[i].put(d, avma);
		return true;
	}
	return false;
}

static bool put_known_option(struct fathom_decoder *d, uint64_t avma, int32_t length)
{
	static const char *const linger[] = { "l_onoff=", "l_linger=" };
	static const char *const peer[] = { "pid=", "uid=", "gid=" };

	if (d->call.args[1] != 1)
		return put_membership(d, avma, length);
	if (length < 4)
		return false;
	if (is_one_of(d, FATHOM_CONSTANTS_FILTER_OPTIONS)) {
		if (length == 2 * d->word)
			fathom_put_packet_filter(d, avma);
		else
			fathom_put_address(d, avma);
		return true;
	}
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

	if (!avma || length < 0 || d->call.format & FATHOM_SYSCALL_BY_ADDRESS) {
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
	else if (fathom_decode_has_failed(d) ||
		 !fathom_decode_lengths(d, d->call.args[4], &room, &length))
		fathom_put_address(d, o->value);
	else
		put_option_value(d, o->value, length);
}

/* Numbers of a control message: of 4 bytes, or, as @is_bytes says, bytes in hexadecimal. */
static void put_control_numbers(struct fathom_decoder *d, const uint8_t *bytes, size_t n,
				bool is_bytes)
{
	const size_t size = is_bytes ? 1 : 4;
	const size_t limit = d->is_verbose ? n : d->options->string_limit;
	size_t i;

	for (i = 0; i + size <= n && i < limit * size; i += size) {
		fathom_put(d, i ? ", " : ", cmsg_data=[");
		if (is_bytes)
			fathom_put_hex(d, bytes[i]);
		else
			fathom_put_unsigned(d, load_u32(bytes + i, false));
	}
	if (n >= size)
		fathom_put(d, i + size <= n ? (i ? ", ...]" : ", cmsg_data=[...]") : "]");
}

/* struct in_pktinfo. */
static void put_packet_info(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	(void)n;
	fathom_put(d, ", cmsg_data={ipi_ifindex=");
	fathom_put_interface(d, load_u32(bytes, false));
	fathom_put(d, ", ipi_spec_dst=");
	fathom_put_inet_addr(d, bytes + 4);
	fathom_put(d, ", ipi_addr=");
	fathom_put_inet_addr(d, bytes + 8);
	fathom_put_char(d, '}');
}

/* struct sock_extended_err, after which is the address of who caused the error. */
static void put_socket_error(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	(void)n;
	fathom_put(d, ", cmsg_data={ee_errno=");
	fathom_put_unsigned(d, load_u32(bytes, false));
	fathom_put(d, ", ee_origin=");
	fathom_put_unsigned(d, bytes[4]);
	fathom_put(d, ", ee_type=");
	fathom_put_unsigned(d, bytes[5]);
	fathom_put(d, ", ee_code=");
	fathom_put_unsigned(d, bytes[6]);
	fathom_put(d, ", ee_info=");
	fathom_put_unsigned(d, load_u32(bytes + 8, false));
	fathom_put(d, ", ee_data=");
	fathom_put_unsigned(d, load_u32(bytes + 12, false));
	fathom_put(d, ", offender=");
	fathom_put_sockaddr(d, bytes + 16, 16);
	fathom_put_char(d, '}');
}

static void put_control_address(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	fathom_put(d, ", cmsg_data=");
	fathom_put_sockaddr(d, bytes, n);
}

static void put_control_text(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	fathom_put(d, ", cmsg_data=");
	fathom_put_quoted(d, bytes, n, false);
}

static void put_control_words(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	put_control_numbers(d, bytes, n, false);
}

static void put_control_bytes(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	put_control_numbers(d, bytes, n, true);
}

bool fathom_put_ip_control(struct fathom_decoder *d, const uint8_t *bytes, size_t n, uint32_t type)
{
	static const struct {
		enum fathom_constant_table table;
		size_t least; /* bytes */
		void (*put)(struct fathom_decoder *d, const uint8_t *bytes, size_t n);
	} kinds[] = {
		{ FATHOM_CONSTANTS_IP_CONTROL_NUMBERS, 4, put_control_words },
		{ FATHOM_CONSTANTS_IP_CONTROL_BYTES, 1, put_control_bytes },
		{ FATHOM_CONSTANTS_IP_CONTROL_INFO, 12, put_packet_info },
		{ FATHOM_CONSTANTS_IP_CONTROL_ERRORS, 32, put_socket_error },
		{ FATHOM_CONSTANTS_IP_CONTROL_ADDRESSES, 16, put_control_address },
		{ FATHOM_CONSTANTS_IP_CONTROL_TEXTS, 1, put_control_text },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (n >= kinds[i].least && fathom_constant_name(kinds[i].table, d->arch, type)) {
			kinds[i].put(d, bytes, n);
			return true;
		}
	return false;
}
