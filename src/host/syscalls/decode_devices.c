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
	uint32_t from = 0;

	if (!d->out)
		return;
	if (!fathom_put_number_of_flags(d, request))
		return;
	name = fathom_constant_find(FATHOM_CONSTANTS_IOCTL, d->arch, request, &from);
	if (!name)
		put_made_request(d, request);
	/* Drivers use the same numbers. */
	while (name) {
		fathom_put(d, name);
		name = fathom_constant_find(FATHOM_CONSTANTS_IOCTL, d->arch, request, &from);
		fathom_put(d, name ? " or " : "");
	}
	fathom_put_end_of_flags(d);
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

/* Delays of terminals that print: each has bits of its own, of which 0 has a name, too. */
static void put_c_oflag(struct fathom_decoder *d, uint32_t value)
{
	static const struct {
		enum fathom_constant_table table;
		uint32_t mask;
	} delays[] = {
		{ FATHOM_CONSTANTS_TERMIOS_NL, 0x100 },   { FATHOM_CONSTANTS_TERMIOS_CR, 0x600 },
		{ FATHOM_CONSTANTS_TERMIOS_TAB, 0x1800 }, { FATHOM_CONSTANTS_TERMIOS_BS, 0x2000 },
		{ FATHOM_CONSTANTS_TERMIOS_VT, 0x4000 },  { FATHOM_CONSTANTS_TERMIOS_FF, 0x8000 },
	};
	uint32_t rest = value;

	fathom_put(d, ", c_oflag=");
	for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
		if (i)
			fathom_put_char(d, '|');
		fathom_put_enum(d, delays[i].table, value & delays[i].mask);
		rest &= ~delays[i].mask;
	}
	if (rest)
		fathom_put_more_flags(d, FATHOM_CONSTANTS_TERMIOS_OFLAG, rest, false);
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
	put_c_oflag(d, load_u32(bytes + 4, false));
	put_c_cflag(d, load_u32(bytes + 8, false));
	put_bits(d, ", c_lflag=", FATHOM_CONSTANTS_TERMIOS_LFLAG, load_u32(bytes + 12, false));
	if (!d->is_verbose) {
		fathom_put(d, ", ...}");
		return;
	}
	fathom_put(d, ", c_line=");
	fathom_put_enum(d, FATHOM_CONSTANTS_LINE_DISCIPLINES, bytes[16]);
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

/* Flags, then permissions in the lowest nine bits. Behind a number alone strace has no '|'. */
void fathom_decode_ipc_get(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t value = (uint32_t)o->value & ~UINT64_C(0777);
	uint64_t rest = value;
	uint32_t from = 0;
	const bool has_name = fathom_constant_take(FATHOM_CONSTANTS_IPC_GET, d->arch, &rest, &from);

	if (value && has_name)
		fathom_put_more_flags(d, FATHOM_CONSTANTS_IPC_GET, value, true);
	else if (value)
		fathom_put_hex(d, value);
	if (value && (has_name || d->options->dialect != FATHOM_SYSCALL_STRACE))
		fathom_put_char(d, '|');
	fathom_put_octal(d, (uint32_t)o->value & 0777, 3);
}

/* The logarithm of the size of huge pages stands above the flags. */
void fathom_decode_shm_get(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t value = (uint32_t)o->value;
	const uint32_t size = value >> 26; /* SHM_HUGE_SHIFT */
	const uint32_t flags = value & ~(UINT32_C(63) << 26) & ~UINT32_C(0777);

	if (flags) {
		fathom_put_more_flags(d, FATHOM_CONSTANTS_SHM_GET, flags, true);
		fathom_put_char(d, '|');
	}
	if (size) {
		fathom_put_unsigned(d, size);
		fathom_put(d, "<<SHM_HUGE_SHIFT|");
	}
	fathom_put_octal(d, value & 0777, 3);
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

/* struct ipc64_perm of LP64; that of i386 is not read. */
static void put_ipc_permissions(struct fathom_decoder *d, const char *name, const uint8_t *bytes)
{
	static const struct {
		const char *name;
		unsigned off;
	} members[] = {
		{ "uid=", 4 },   { ", gid=", 8 },   { ", mode=", 20 },
		{ ", key=", 0 }, { ", cuid=", 12 }, { ", cgid=", 16 },
	};

	fathom_put(d, name);
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		const uint32_t value = load_u32(bytes + members[i].off, false);

		fathom_put(d, members[i].name);
		if (members[i].off == 20)
			fathom_put_octal(d, value, 3);
		else
			fathom_put_unsigned(d, value);
	}
	fathom_put_char(d, '}');
}

/* A member behind the permissions. */
struct member {
	const char *name;
	uint8_t off;
	uint8_t width;
};

static void put_ipc_status(struct fathom_decoder *d, const struct fathom_operand *o,
			   const char *name, const struct member *members, size_t n)
{
	uint8_t bytes[120];

	if (!o->value || d->word == 4 || fathom_decode_has_failed(d) ||
	    !fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	put_ipc_permissions(d, name, bytes);
	for (size_t i = 0; i < n; i++) {
		fathom_put(d, members[i].name);
		fathom_put_unsigned(
			d, fathom_decode_load(d, bytes + members[i].off, members[i].width));
	}
	fathom_put_char(d, '}');
}

void fathom_decode_shm_status(struct fathom_decoder *d, const struct fathom_operand *o)
{
	static const struct member members[] = {
		{ ", shm_segsz=", 48, 8 },  { ", shm_cpid=", 80, 4 },  { ", shm_lpid=", 84, 4 },
		{ ", shm_nattch=", 88, 8 }, { ", shm_atime=", 56, 8 }, { ", shm_dtime=", 64, 8 },
		{ ", shm_ctime=", 72, 8 },
	};

	put_ipc_status(d, o, "{shm_perm={", members, sizeof members / sizeof *members);
}

void fathom_decode_msg_status(struct fathom_decoder *d, const struct fathom_operand *o)
{
	static const struct member members[] = {
		{ ", msg_stime=", 48, 8 },  { ", msg_rtime=", 56, 8 },  { ", msg_ctime=", 64, 8 },
		{ ", msg_qnum=", 80, 8 },   { ", msg_qbytes=", 88, 8 }, { ", msg_lspid=", 96, 4 },
		{ ", msg_lrpid=", 100, 4 },
	};

	put_ipc_status(d, o, "{msg_perm={", members, sizeof members / sizeof *members);
}
