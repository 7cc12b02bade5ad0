/* SPDX-License-Identifier: MIT */
/*
 * socketcall() and ipc() of i386, whose first argument selects a call: such a call is told as what
 * it stands for. Arguments of socketcall() are words in memory; those of ipc() are in another
 * order.
 */
#include <elf.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

#define WORD 4

/* Reads what was at @avma before the call: the second half of a capture has it in its record. */
static bool get_words(struct fathom_decoder *d, uint64_t avma, uint64_t *to, size_t n)
{
	uint8_t bytes[WORD * FATHOM_DECODE_ARGUMENTS];

	if (!fathom_decode_get_before(d, avma, bytes, WORD * n) &&
	    (d->call.end != FATHOM_SYSCALL_NOT_YET || !fathom_decode_get(d, avma, bytes, WORD * n)))
		return false;
	for (size_t i = 0; i < n; i++)
		to[i] = load_u32(bytes + WORD * i, false);
	return true;
}

static void replace(struct fathom_decoder *d, const struct fathom_syscall *call,
		    const uint64_t *args)
{
	d->syscall = call;
	memcpy(d->call.args, args, sizeof d->call.args);
}

static void enter_socket_call(struct fathom_decoder *d)
{
	const uint64_t number = d->call.args[0];
	const struct fathom_syscall *call;
	uint64_t args[FATHOM_DECODE_ARGUMENTS] = { 0 };

	if (number >= fathom_socketcall_rows_n || !fathom_socketcall_rows[number])
		return;
	call = &fathom_syscall_rows[fathom_socketcall_rows[number]];
	if (d->call.args[1] && get_words(d, d->call.args[1], args, call->n_arguments))
		replace(d, call, args);
}

/* Numbers of ipc() whose arguments are not (first, second, third). */
enum ipc_call {
	SEMOP = 1,
	SEMCTL = 3,
	SEMTIMEDOP = 4,
	MSGSND = 11,
	MSGRCV = 12,
	MSGCTL = 14,
	SHMAT = 21,
	SHMDT = 22,
	SHMCTL = 24
};

/* The address of a segment is stored, not returned. */
static void take_address(struct fathom_decoder *d, uint64_t avma)
{
	uint64_t address;

	if (d->call.end != FATHOM_SYSCALL_RETURNED || d->call.result < 0)
		return;
	d->at_exit = true;
	if (fathom_decode_get_uint(d, avma, WORD, &address))
		d->call.result = (int64_t)address;
	d->at_exit = false;
}

/* Sets the arguments as the call that is meant has them; @a are those of ipc() after the first. */
static void order_arguments(struct fathom_decoder *d, uint32_t number, bool is_new,
			    const uint64_t *a, uint64_t *to)
{
	uint64_t letter[2]; /* struct ipc_kludge: a buffer, and a type */

	memcpy(to, a, 3 * sizeof *to);
	switch (number) {
	case SEMOP:
	case SEMTIMEDOP:
	case MSGSND:
		to[1] = a[3];
		to[2] = a[1];
		to[3] = number == MSGSND ? a[2] : a[4];
		break;
	case MSGRCV:
		to[1] = a[3];
		to[2] = a[1];
		to[3] = a[4];
		to[4] = a[2];
		if (!is_new && get_words(d, a[3], letter, 2)) {
			to[1] = letter[0];
			to[3] = letter[1];
		}
		break;
	case MSGCTL:
	case SHMCTL:
		to[2] = a[3];
		break;
	case SHMAT:
		to[1] = a[3];
		to[2] = a[1];
		take_address(d, a[2]);
		break;
	case SHMDT:
		to[0] = a[3];
		break;
	case SEMCTL:
		to[3] = a[3];
		d->is_indirect = a[3] && get_words(d, a[3], to + 3, 1);
		break;
	default:
		break;
	}
}

static void enter_ipc_call(struct fathom_decoder *d)
{
	const uint32_t number = d->call.args[0] & 0xffff;
	uint64_t args[FATHOM_DECODE_ARGUMENTS] = { 0 };

	if (number >= fathom_ipc_rows_n || !fathom_ipc_rows[number])
		return;
	order_arguments(d, number, d->call.args[0] >> 16, d->call.args + 1, args);
	replace(d, &fathom_syscall_rows[fathom_ipc_rows[number]], args);
}

void fathom_decode_enter_subcall(struct fathom_decoder *d)
{
	const char *name = fathom_syscall_names + d->syscall->name;

	if (d->call.machine != EM_386)
		return;
	if (!strcmp(name, "socketcall"))
		enter_socket_call(d);
	else if (!strcmp(name, "ipc"))
		enter_ipc_call(d);
}

/* Numbers that are none have no name. */
void fathom_decode_socketcall_number(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_constant_name(FATHOM_CONSTANTS_SOCKETCALLS, d->arch, o->value))
		fathom_put_enum(d, FATHOM_CONSTANTS_SOCKETCALLS, o->value);
	else
		fathom_put_unsigned(d, o->value);
}

/* A version above the number. */
void fathom_decode_ipc_number(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t number = (uint32_t)o->value;

	if (number >> 16) {
		fathom_put_unsigned(d, number >> 16);
		fathom_put(d, "<<16|");
	}
	fathom_put_unsigned(d, number & 0xffff);
}
