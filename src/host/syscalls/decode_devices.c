/* SPDX-License-Identifier: MIT */
/* Requests of devices, terminals, and the calls of System V for memory, semaphores and messages. */
#include <elf.h>

#include "host/syscalls/call_functions.h"
#include "host/syscalls/decoder.h"

/* Parts of a request (asm-generic/ioctl.h): direction, size, type, number. */
static void put_made_request(struct fathom_decoder *d, uint32_t request)
{
	static const char *const ways[] = { "_IOC_NONE", "_IOC_WRITE", "_IOC_READ",
					    "_IOC_READ|_IOC_WRITE" };

	fathom_put(d, "_IOC(");
	fathom_put(d, ways[request >> 30]);
	fathom_put(d, ", ");
	fathom_put_hex(d, request >> 8 & 0xff);
	fathom_put(d, ", ");
	fathom_put_hex(d, request & 0xff);
	fathom_put(d, ", ");
	fathom_put_hex(d, request >> 16 & 0x3fff);
	fathom_put_char(d, ')');
}

void fathom_decode_ioctl_request(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t request = (uint32_t)o->value;
	const char *name;

	if (!d->out)
		return;
	name = fathom_constant_find(FATHOM_CONSTANTS_IOCTL, d->arch, request);
	if (d->options->constants == FATHOM_SYSCALL_RAW)
		fathom_put_hex(d, request);
	else if (name)
		fathom_put(d, name);
	else
		put_made_request(d, request);
}

/* struct termios of the kernel: four words of flags, the line discipline, 19 characters. */
#define TERMIOS    36
#define CHARACTERS 19
#define C_CC       17

static void put_bits(struct fathom_decoder *d, const char *name, enum fathom_constant_table table,
		     uint32_t value)
{
	fathom_put(d, name);
	fathom_put_flags(d, table, value);
}

/* Names of c_cc; those of VMIN and VTIME are 6 and 5. */
static void put_characters(struct fathom_decoder *d, const uint8_t *bytes)
{
	static const char *const names[] = { "VINTR",  "VQUIT", "VERASE",   "VKILL",    "VEOF",
					     "VTIME",  "VMIN",  "VSWTC",    "VSTART",   "VSTOP",
					     "VSUSP",  "VEOL",  "VREPRINT", "VDISCARD", "VWERASE",
					     "VLNEXT", "VEOL2", "17",       "18" };

	fathom_put(d, ", c_cc=[");
	for (unsigned i = 0; i < CHARACTERS; i++) {
		fathom_put(d, i ? ", [" : "[");
		fathom_put(d, names[i]);
		fathom_put(d, "]=");
		fathom_put_hex(d, bytes[C_CC + i]);
	}
	fathom_put_char(d, ']');
}

#define CBAUD UINT32_C(0x100f)
#define CSIZE UINT32_C(0x30)

static void put_c_cflag(struct fathom_decoder *d, uint32_t value)
{
	fathom_put(d, ", c_cflag=");
	fathom_put_enum(d, FATHOM_CONSTANTS_TERMIOS_BAUD, value & CBAUD);
	fathom_put_char(d, '|');
	fathom_put_enum(d, FATHOM_CONSTANTS_TERMIOS_CSIZE, value & CSIZE);
	if (value & ~(CBAUD | CSIZE))
		fathom_put_more_flags(d, FATHOM_CONSTANTS_TERMIOS_CFLAG, value & ~(CBAUD | CSIZE),
				      false);
}

void fathom_decode_termios(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[TERMIOS];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	put_bits(d, "{c_iflag=", FATHOM_CONSTANTS_TERMIOS_IFLAG, load_u32(bytes, false));
	put_bits(d, ", c_oflag=", FATHOM_CONSTANTS_TERMIOS_OFLAG, load_u32(bytes + 4, false));
	put_c_cflag(d, load_u32(bytes + 8, false));
	put_bits(d, ", c_lflag=", FATHOM_CONSTANTS_TERMIOS_LFLAG, load_u32(bytes + 12, false));
	if (!d->options->is_verbose) {
		fathom_put(d, ", ...}");
		return;
	}
	fathom_put(d, ", c_line=");
	fathom_put_unsigned(d, bytes[16]);
	put_characters(d, bytes);
	fathom_put_char(d, '}');
}

void fathom_decode_ipc_key(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if ((uint32_t)o->value)
		fathom_put_hex(d, (uint32_t)o->value);
	else
		fathom_put_enum(d, FATHOM_CONSTANTS_IPC_PRIVATE, 0);
}

/* Flags, then permissions in the lowest nine bits. */
static void put_get_flags(struct fathom_decoder *d, enum fathom_constant_table table,
			  uint32_t value)
{
	if (value & ~UINT32_C(0777)) {
		fathom_put_more_flags(d, table, value & ~UINT32_C(0777), true);
		fathom_put_char(d, '|');
	}
	fathom_put_octal(d, value & 0777, 3);
}

void fathom_decode_ipc_get(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_get_flags(d, FATHOM_CONSTANTS_IPC_GET, (uint32_t)o->value);
}

void fathom_decode_shm_get(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_get_flags(d, FATHOM_CONSTANTS_SHM_GET, (uint32_t)o->value);
}

/* IPC_64, which only i386's callers set. */
#define IPC_64 UINT32_C(0x100)

static void put_command(struct fathom_decoder *d, enum fathom_constant_table table, uint32_t value)
{
	if (value & IPC_64)
		fathom_put(d, "IPC_64|");
	fathom_put_enum(d, table, value & ~IPC_64);
}

void fathom_decode_shm_command(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_command(d, FATHOM_CONSTANTS_SHM_COMMANDS, (uint32_t)o->value);
}

void fathom_decode_sem_command(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_command(d, FATHOM_CONSTANTS_SEM_COMMANDS, (uint32_t)o->value);
}

void fathom_decode_msg_command(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_command(d, FATHOM_CONSTANTS_MSG_COMMANDS, (uint32_t)o->value);
}

static bool put_sembuf(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return fathom_put_at(d, FATHOM_TYPE_SEMBUF, avma);
}

void fathom_decode_sembufs(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_array(d, o->value, (uint32_t)fathom_decode_count(d, o->n), 6, put_sembuf);
}

void fathom_decode_msgbuf(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t type;

	if (!o->value || fathom_decode_has_failed(d) ||
	    !fathom_decode_get_uint(d, o->value, FATHOM_WIDTH_WORD, &type)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{mtype=");
	fathom_put_signed(d, d->word == 4 ? (int32_t)type : (int64_t)type);
	fathom_put(d, ", mtext=");
	fathom_put_data(d, o->value + d->word, fathom_decode_count(d, o->n));
	fathom_put_char(d, '}');
}
