/* SPDX-License-Identifier: MIT */
/*
 * Programs of the classic Berkeley packet filter (linux/filter.h), for packets and for system
 * calls. A struct sock_fprog is a length and an address. An instruction has 8 bytes: a code, two
 * distances to jump, a constant. Extended programs, of bpf(2), are not printed.
 */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

#define INSTRUCTION 8

/* Parts of a code. Which part the bits above the class are depends on the class. */
#define CLASS     0x07u
#define SIZE      0x18u
#define MODE      0xe0u
#define SOURCE    0x08u
#define OPERATION 0xf0u
#define VALUE     0x18u
#define LOW_BYTE  0xffu
#define ACTION    0xffff0000u /* SECCOMP_RET_ACTION_FULL */

enum { LOAD, LOAD_X, STORE, STORE_X, ALU, JUMP, RETURN, MISC };

static void put_part(struct fathom_decoder *d, enum fathom_constant_table table, uint32_t part)
{
	fathom_put_char(d, '|');
	fathom_put_enum(d, table, part);
}

/* Bits that mean nothing, if there are some. */
static void put_rest(struct fathom_decoder *d, uint32_t rest)
{
	if (!rest)
		return;
	fathom_put_char(d, '|');
	fathom_put_hex(d, rest);
	fathom_put_comment(d, fathom_constant_unknown(FATHOM_CONSTANTS_BPF_CLASSES));
}

static void put_code(struct fathom_decoder *d, uint32_t code)
{
	fathom_put_enum(d, FATHOM_CONSTANTS_BPF_CLASSES, code & CLASS);
	switch (code & CLASS) {
	case LOAD:
	case LOAD_X:
		put_part(d, FATHOM_CONSTANTS_BPF_SIZES, code & SIZE);
		put_part(d, FATHOM_CONSTANTS_BPF_MODES, code & MODE);
		break;
	case STORE:
	case STORE_X:
		put_rest(d, code & ~CLASS);
		break;
	case ALU:
		put_part(d, FATHOM_CONSTANTS_BPF_SOURCES, code & SOURCE);
		put_part(d, FATHOM_CONSTANTS_BPF_OPERATIONS, code & OPERATION);
		break;
	case JUMP:
		put_part(d, FATHOM_CONSTANTS_BPF_SOURCES, code & SOURCE);
		put_part(d, FATHOM_CONSTANTS_BPF_JUMPS, code & OPERATION);
		break;
	case RETURN:
		put_part(d, FATHOM_CONSTANTS_BPF_VALUES, code & VALUE);
		put_rest(d, code & ~(CLASS | VALUE));
		break;
	default:
		put_part(d, FATHOM_CONSTANTS_BPF_MOVES, code & LOW_BYTE & ~CLASS);
		put_rest(d, code & ~LOW_BYTE);
	}
}

/* Prints the result of a filter of system calls: an action, and data for it. */
static void put_action(struct fathom_decoder *d, uint32_t value)
{
	fathom_put_enum(d, FATHOM_CONSTANTS_SECCOMP_ACTIONS, value & ACTION);
	if (!(value & ~ACTION))
		return;
	fathom_put_char(d, '|');
	fathom_put_hex(d, value & ~ACTION);
}

static bool put_instruction(struct fathom_decoder *d, uint64_t avma, bool has_actions)
{
	uint8_t bytes[INSTRUCTION];
	uint32_t code;
	bool is_jump;

	if (!fathom_decode_get(d, avma, bytes, sizeof bytes))
		return false;
	code = load_u16(bytes, false);
	is_jump = bytes[2] || bytes[3];
	fathom_put(d, is_jump ? "BPF_JUMP(" : "BPF_STMT(");
	put_code(d, code);
	fathom_put(d, ", ");
	if (has_actions && !is_jump && (code & CLASS) == RETURN)
		put_action(d, load_u32(bytes + 4, false));
	else
		fathom_put_hex(d, load_u32(bytes + 4, false));
	if (is_jump) {
		fathom_put(d, ", ");
		fathom_put_hex(d, bytes[2]);
		fathom_put(d, ", ");
		fathom_put_hex(d, bytes[3]);
	}
	fathom_put_char(d, ')');
	return true;
}

static bool put_for_calls(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return put_instruction(d, avma, true);
}

static bool put_for_packets(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return put_instruction(d, avma, false);
}

static void put_program(struct fathom_decoder *d, uint64_t avma, fathom_put_element_fn *put)
{
	uint8_t length[2];
	uint64_t filter;

	if (!avma || !fathom_decode_get(d, avma, length, sizeof length) ||
	    !fathom_decode_get_uint(d, avma + d->word, FATHOM_WIDTH_WORD, &filter)) {
		fathom_put_address(d, avma);
		return;
	}
	fathom_put(d, "{len=");
	fathom_put_unsigned(d, load_u16(length, false));
	fathom_put(d, ", filter=");
	if (d->is_verbose)
		fathom_put_array(d, filter, load_u16(length, false), INSTRUCTION, put);
	else
		fathom_put_address(d, filter);
	fathom_put_char(d, '}');
}

void fathom_decode_seccomp_filter(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_program(d, o->value, put_for_calls);
}

void fathom_put_packet_filter(struct fathom_decoder *d, uint64_t avma)
{
	put_program(d, avma, put_for_packets);
}
