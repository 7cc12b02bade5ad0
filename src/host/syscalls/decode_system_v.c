/* SPDX-License-Identifier: MIT */
/* The calls of System V for memory, semaphores and messages. */
#include <elf.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

void fathom_decode_ipc_key(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if ((uint32_t)o->value)
		fathom_put_hex(d, (uint32_t)o->value);
	else
		fathom_put_enum(d, FATHOM_CONSTANTS_IPC_PRIVATE, 0);
}

/* Flags, then permissions in the lowest nine bits. After a number alone strace has no '|'. */
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

/* Permissions, struct ipc64_perm: the same offsets in both layouts, but not its size. */
static void put_ipc_permissions(struct fathom_decoder *d, const char *name, const uint8_t *bytes,
				bool is_set)
{
	static const struct {
		const char *name;
		unsigned off;
	} members[] = {
		{ "uid=", 4 },   { ", gid=", 8 },   { ", mode=", 20 },
		{ ", key=", 0 }, { ", cuid=", 12 }, { ", cgid=", 16 },
	};
	const size_t n = is_set ? 3 : sizeof members / sizeof *members;

	fathom_put(d, name);
	for (size_t i = 0; i < n; i++) {
		const uint32_t value = load_u32(bytes + members[i].off, false);

		fathom_put(d, members[i].name);
		/* The mode has two bytes on i386. */
		if (members[i].off == 20)
			fathom_put_octal(d, d->layout ? (uint16_t)value : value, 3);
		else
			fathom_put_unsigned(d, value);
	}
	fathom_put_char(d, '}');
}

/* A member after the permissions: where it is in LP64 and on i386. */
struct member {
	const char *name;
	uint8_t off[2];
	uint8_t width;
};

#define STATUS 120

static void put_ipc_status(struct fathom_decoder *d, const struct fathom_operand *o,
			   const char *name, const struct member *members, size_t n, bool is_set)
{
	uint8_t bytes[STATUS];
	/* Bytes after the last member are not read. */
	const size_t size = d->layout ? 88 : sizeof bytes;
	const size_t read = fathom_decode_read(d, o->value, bytes, size);
	const size_t last = n ? members[n - 1].off[d->layout] + 8u : 48;

	if (!o->value || fathom_decode_has_failed(d) || read < last) {
		fathom_put_address(d, o->value);
		return;
	}
	put_ipc_permissions(d, name, bytes, is_set);
	for (size_t i = 0; i < n; i++) {
		fathom_put(d, members[i].name);
		fathom_put_unsigned(d, fathom_decode_load(d, bytes + members[i].off[d->layout],
							  members[i].width));
	}
	fathom_put_char(d, '}');
}

#define WORD FATHOM_WIDTH_WORD

static const struct member shm_members[] = {
	{ ", shm_segsz=", { 48, 36 }, WORD }, { ", shm_cpid=", { 80, 64 }, 4 },
	{ ", shm_lpid=", { 84, 68 }, 4 },     { ", shm_nattch=", { 88, 72 }, WORD },
	{ ", shm_atime=", { 56, 40 }, WORD }, { ", shm_dtime=", { 64, 48 }, WORD },
	{ ", shm_ctime=", { 72, 56 }, WORD },
};

static const struct member msg_members[] = {
	{ ", msg_stime=", { 48, 36 }, WORD },  { ", msg_rtime=", { 56, 44 }, WORD },
	{ ", msg_ctime=", { 64, 52 }, WORD },  { ", msg_qnum=", { 80, 64 }, WORD },
	{ ", msg_qbytes=", { 88, 68 }, WORD }, { ", msg_lspid=", { 96, 72 }, 4 },
	{ ", msg_lrpid=", { 100, 76 }, 4 },
};

/* On x86-64 there is a word after each of the times. */
static const struct member sem_members[] = {
	{ ", sem_otime=", { 48, 36 }, WORD },
	{ ", sem_ctime=", { 64, 44 }, WORD },
	{ ", sem_nsems=", { 80, 52 }, WORD },
};

static const struct member sem_members_general[] = {
	{ ", sem_otime=", { 48, 36 }, WORD },
	{ ", sem_ctime=", { 56, 44 }, WORD },
	{ ", sem_nsems=", { 64, 52 }, WORD },
};

void fathom_decode_shm_status(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_ipc_status(d, o, "{shm_perm={", shm_members, sizeof shm_members / sizeof *shm_members,
		       false);
}

void fathom_decode_msg_status(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_ipc_status(d, o, "{msg_perm={", msg_members, sizeof msg_members / sizeof *msg_members,
		       false);
}

void fathom_decode_sem_status(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_ipc_status(d, o, "{sem_perm={",
		       d->call.machine == EM_AARCH64 ? sem_members_general : sem_members,
		       sizeof sem_members / sizeof *sem_members, false);
}

/* Print what is changed: the owner, and how many bytes a queue may have. */
void fathom_decode_shm_set(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_ipc_status(d, o, "{shm_perm={", NULL, 0, true);
}

void fathom_decode_msg_set(struct fathom_decoder *d, const struct fathom_operand *o)
{
	static const struct member bytes[] = { { ", msg_qbytes=", { 88, 68 }, WORD } };

	put_ipc_status(d, o, "{msg_perm={", bytes, 1, true);
}

void fathom_decode_sem_set(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_ipc_status(d, o, "{sem_perm={", NULL, 0, true);
}

/* ipc() of i386 has the address of what semctl() has itself. */
void fathom_decode_sem_value(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put(d, d->is_indirect ? "[" : "");
	fathom_put_address(d, o->value);
	fathom_put(d, d->is_indirect ? "]" : "");
}
