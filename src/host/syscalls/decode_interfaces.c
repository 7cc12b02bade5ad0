/* SPDX-License-Identifier: MIT */
/* Network interfaces: their names, and the addresses of devices. */
#include <net/if.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decode_network.h"

/* Where the name of interface 0 would be in a record: above what syscall_files.c uses. */
#define NAMES UINT64_C(0xc000000000000000)

void fathom_put_interface(struct fathom_decoder *d, uint32_t index)
{
	const uint64_t avma = NAMES + (uint64_t)index * (2 * IF_NAMESIZE);
	char name[IF_NAMESIZE] = "";
	bool has_name;

	if (d->memory && index && if_indextoname(index, name))
		fathom_syscall_record_add(d->record, avma, d->at_exit, name, sizeof name);
	if (!d->out)
		return;
	has_name = fathom_syscall_record_read(d->record, avma, d->at_exit, name, sizeof name);
	if (!has_name || d->options->constants != FATHOM_SYSCALL_NAMES)
		fathom_put_unsigned(d, index);
	if (!has_name || d->options->constants == FATHOM_SYSCALL_RAW)
		return;
	(void)fathom_put_both(d);
	fathom_put(d, "if_nametoindex(");
	fathom_put_quoted(d, (const uint8_t *)name, strnlen(name, sizeof name), false);
	fathom_put_char(d, ')');
	fathom_put_end_of_flags(d);
}

void fathom_put_link_address(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	if (!fathom_put_number_of_bytes(d, bytes, n))
		return;
	for (size_t i = 0; i < n; i++) {
		if (i)
			fathom_put_char(d, ':');
		fathom_put_char(d, "0123456789abcdef"[bytes[i] >> 4]);
		fathom_put_char(d, "0123456789abcdef"[bytes[i] & 15]);
	}
	fathom_put_end_of_flags(d);
}

/* Lengths of hardware addresses, by the tables of the types that have it. */
static size_t link_address_length(const struct fathom_decoder *d, uint16_t type, size_t most)
{
	static const struct {
		enum fathom_constant_table table;
		uint8_t length;
	} kinds[] = {
		{ FATHOM_CONSTANTS_ARP_OF_1, 1 }, { FATHOM_CONSTANTS_ARP_OF_2, 2 },
		{ FATHOM_CONSTANTS_ARP_OF_4, 4 }, { FATHOM_CONSTANTS_ARP_OF_5, 5 },
		{ FATHOM_CONSTANTS_ARP_OF_6, 6 }, { FATHOM_CONSTANTS_ARP_OF_7, 7 },
		{ FATHOM_CONSTANTS_ARP_OF_8, 8 },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (fathom_constant_name(kinds[i].table, d->arch, type))
			return kinds[i].length;
	return most;
}

/* A struct sockaddr whose family is the type of a network device. */
void fathom_decode_hardware_address(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint16_t type = load_u16(o->bytes, false);

	fathom_put(d, "{sa_family=");
	fathom_put_enum(d, FATHOM_CONSTANTS_ARP_TYPES, type);
	fathom_put(d, ", sa_data=");
	fathom_put_link_address(d, o->bytes + 2, link_address_length(d, type, o->n - 2));
	fathom_put_char(d, '}');
}

void fathom_decode_socket_address(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_sockaddr(d, o->bytes, o->n);
}
