/* SPDX-License-Identifier: MIT */
/* Data of requests of ptrace(2): registers of x86-64, and the information about a system call. */
#include <elf.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

/*
 * Registers of struct user (asm/user.h): names of their places, as strace has them for
 * PTRACE_PEEKUSER up to SS, and of the members.
 */
static const struct {
	const char *place;
	const char *name;
} registers[] = {
	{ "R15", "r15" }, { "R14", "r14" },    { "R13", "r13" },    { "R12", "r12" },
	{ "RBP", "rbp" }, { "RBX", "rbx" },    { "R11", "r11" },    { "R10", "r10" },
	{ "R9", "r9" },   { "R8", "r8" },      { "RAX", "rax" },    { "RCX", "rcx" },
	{ "RDX", "rdx" }, { "RSI", "rsi" },    { "RDI", "rdi" },    { "ORIG_RAX", "orig_rax" },
	{ "RIP", "rip" }, { "CS", "cs" },      { "EFL", "eflags" }, { "RSP", "rsp" },
	{ "SS", "ss" },   { NULL, "fs_base" }, { NULL, "gs_base" }, { NULL, "ds" },
	{ NULL, "es" },   { NULL, "fs" },      { NULL, "gs" },
};

#define REGISTERS  (sizeof registers / sizeof *registers)
#define LAST_PLACE 20

/* Members of struct user after the registers; the last one is its size. */
static const struct {
	const char *name;
	uint16_t off;
} members[] = {
	{ "u_fpvalid", 216 }, { "i387", 224 },       { "u_tsize", 736 },     { "u_dsize", 744 },
	{ "u_ssize", 752 },   { "start_code", 760 }, { "start_stack", 768 }, { "signal", 776 },
	{ "reserved", 784 },  { "u_ar0", 792 },      { "u_fpstate", 800 },   { "magic", 808 },
	{ "u_comm", 816 },    { "u_debugreg", 848 },
};

#define USER 912

/* A place in struct user: a register, a member, or so many bytes after one. */
void fathom_decode_user_place(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t off = o->value;
	uint64_t rest = 0;
	size_t i = sizeof members / sizeof *members - 1;

	if (off > USER) {
		fathom_put_hex(d, off);
	} else if (off == USER) {
		fathom_put(d, "sizeof(struct user)");
	} else if (off < members[0].off) {
		const size_t number = off / 8 < LAST_PLACE ? (size_t)off / 8 : LAST_PLACE;

		rest = off - 8 * number;
		fathom_put(d, "8*");
		fathom_put(d, registers[number].place);
	} else {
		while (members[i].off > off)
			i--;
		rest = off - members[i].off;
		fathom_put(d, "offsetof(struct user, ");
		fathom_put(d, members[i].name);
		fathom_put_char(d, ')');
	}
	if (off < USER && rest) {
		fathom_put_char(d, '+');
		fathom_put_unsigned(d, rest);
	}
}

/* Prints the registers of which all bytes are in @size bytes. */
static void put_registers(struct fathom_decoder *d, uint64_t avma, uint64_t size)
{
	uint8_t bytes[8 * REGISTERS];
	const size_t n = size < sizeof bytes ? (size_t)size : sizeof bytes;

	if (!avma || n < 8 || n % 8 || !fathom_decode_get(d, avma, bytes, n)) {
		fathom_put_address(d, avma);
		return;
	}
	for (size_t i = 0; i < n / 8; i++) {
		fathom_put(d, i ? ", " : "{");
		fathom_put(d, registers[i].name);
		fathom_put_char(d, '=');
		fathom_put_hex(d, load_u64(bytes + 8 * i, false));
	}
	fathom_put(d, size > sizeof bytes ? ", ...}" : "}");
}

static bool put_word(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint64_t value;

	(void)i;
	if (!fathom_decode_get_uint(d, avma, 4, &value))
		return false;
	fathom_put_hex(d, value);
	return true;
}

/* struct user_fpregs_struct, as FXSAVE stores it. */
#define FP_REGISTERS 512

static void put_fp_registers(struct fathom_decoder *d, uint64_t avma, uint64_t size)
{
	static const struct {
		const char *name;
		uint16_t off;
		uint8_t width;
		uint8_t n; /* words of an array */
	} parts[] = {
		{ "{cwd=", 0, 2, 0 },         { ", swd=", 2, 2, 0 },
		{ ", ftw=", 4, 2, 0 },        { ", fop=", 6, 2, 0 },
		{ ", rip=", 8, 8, 0 },        { ", rdp=", 16, 8, 0 },
		{ ", mxcsr=", 24, 4, 0 },     { ", mxcr_mask=", 28, 4, 0 },
		{ ", st_space=", 32, 4, 32 }, { ", xmm_space=", 160, 4, 64 },
		{ ", padding=", 416, 4, 24 },
	};
	uint8_t byte;

	size = size < FP_REGISTERS ? size : FP_REGISTERS;
	if (!avma || !size || size % 8 || !fathom_decode_get(d, avma, &byte, 1)) {
		fathom_put_address(d, avma);
		return;
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts && parts[i].off < size; i++) {
		const uint64_t words = (size - parts[i].off) / 4;
		uint64_t value = 0;

		fathom_put(d, parts[i].name);
		if (parts[i].n) {
			fathom_put_array(d, avma + parts[i].off,
					 words < parts[i].n ? words : parts[i].n, 4, put_word);
			continue;
		}
		(void)fathom_decode_get_uint(d, avma + parts[i].off, parts[i].width, &value);
		fathom_put_hex(d, value);
	}
	fathom_put_char(d, '}');
}

void fathom_decode_registers(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_registers(d, o->value, 8 * REGISTERS);
}

void fathom_decode_fp_registers(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_fp_registers(d, o->value, FP_REGISTERS);
}

/* Prints the registers in a struct iovec, of the kind that the argument before it states. */
static void put_register_set(struct fathom_decoder *d, uint64_t avma, uint64_t size)
{
	const uint32_t kind = (uint32_t)d->call.args[2];

	if (d->call.machine == EM_X86_64 && kind == NT_PRSTATUS)
		put_registers(d, avma, size);
	else if (d->call.machine == EM_X86_64 && kind == NT_FPREGSET)
		put_fp_registers(d, avma, size);
	else
		fathom_put_address(d, avma);
}

static void put_iovec(struct fathom_decoder *d, uint64_t avma, bool has_registers, uint64_t before,
		      bool has_before)
{
	uint64_t base;
	uint64_t size;

	if (!avma || !fathom_decode_get_uint(d, avma, FATHOM_WIDTH_WORD, &base) ||
	    !fathom_decode_get_uint(d, avma + d->word, FATHOM_WIDTH_WORD, &size)) {
		fathom_put_address(d, avma);
		return;
	}
	fathom_put(d, "{iov_base=");
	if (has_registers)
		put_register_set(d, base, size);
	else
		fathom_put_address(d, base);
	fathom_put(d, ", iov_len=");
	if (has_before && before != size) {
		fathom_put_unsigned(d, before);
		fathom_put(d, " => ");
	}
	fathom_put_unsigned(d, size);
	fathom_put_char(d, '}');
}

void fathom_decode_register_set(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_iovec(d, o->value, true, 0, false);
}

/* The kernel stores how many bytes it has stored. */
void fathom_decode_register_set_result(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const bool has_failed = fathom_decode_has_failed(d);
	uint8_t before[8];
	const bool has_before =
		d->at_exit && fathom_decode_get_before(d, o->value + d->word, before, d->word);

	put_iovec(d, o->value, d->at_exit && !has_failed,
		  has_before ? fathom_decode_load(d, before, FATHOM_WIDTH_WORD) : 0, has_before);
}

/* struct ptrace_syscall_info: a head, then what depends on its first member. */
#define CALL_INFO  88
#define CALL_HEAD  24
#define CALL_ENTRY 80
#define CALL_EXIT  33

enum call_info { NONE, ENTRY, EXIT, SECCOMP };

static void put_call(struct fathom_decoder *d, const uint8_t *bytes, const char *name, size_t size)
{
	const struct fathom_syscall *s =
		fathom_syscall_find(d->call.machine, load_u64(bytes + CALL_HEAD, false));

	if (size < CALL_ENTRY)
		return;
	fathom_put(d, name);
	if (s) {
		fathom_put(d, "__NR_");
		fathom_put(d, fathom_syscall_names + s->name);
	} else {
		fathom_put_unsigned(d, load_u64(bytes + CALL_HEAD, false));
	}
	fathom_put(d, ", args=[");
	for (size_t i = 0; i < 6; i++) {
		fathom_put(d, i ? ", " : "");
		fathom_put_hex(d, load_u64(bytes + CALL_HEAD + 8 + 8 * i, false));
	}
	fathom_put_char(d, ']');
}

static void put_exit(struct fathom_decoder *d, const uint8_t *bytes, size_t size)
{
	const int64_t value = (int64_t)load_u64(bytes + CALL_HEAD, false);

	if (size < CALL_EXIT)
		return;
	fathom_put(d, ", exit={rval=");
	if (bytes[CALL_EXIT - 1] && value < 0 && value >= -4095) {
		fathom_put_char(d, '-');
		fathom_put_errno(d, (uint32_t)-value);
	} else {
		fathom_put_signed(d, value);
	}
	fathom_put(d, ", is_error=");
	fathom_put_unsigned(d, bytes[CALL_EXIT - 1]);
	fathom_put_char(d, '}');
}

static void put_call_info(struct fathom_decoder *d, const uint8_t *bytes, size_t size)
{
	fathom_put(d, "{op=");
	fathom_put_enum(d, FATHOM_CONSTANTS_PTRACE_CALL_INFO, bytes[0]);
	if (size >= 8) {
		fathom_put(d, ", arch=");
		fathom_put_enum(d, FATHOM_CONSTANTS_AUDIT_ARCHES, load_u32(bytes + 4, false));
	}
	if (size >= 16) {
		fathom_put(d, ", instruction_pointer=");
		fathom_put_hex(d, load_u64(bytes + 8, false));
	}
	if (size >= CALL_HEAD) {
		fathom_put(d, ", stack_pointer=");
		fathom_put_hex(d, load_u64(bytes + 16, false));
	}
	switch (bytes[0]) {
	case ENTRY:
		put_call(d, bytes, ", entry={nr=", size);
		fathom_put(d, size < CALL_ENTRY ? "" : "}");
		break;
	case EXIT:
		put_exit(d, bytes, size);
		break;
	case SECCOMP:
		put_call(d, bytes, ", seccomp={nr=", size);
		if (size >= CALL_ENTRY + 4) {
			fathom_put(d, ", ret_data=");
			fathom_put_unsigned(d, load_u32(bytes + CALL_ENTRY, false));
		}
		fathom_put(d, size < CALL_ENTRY ? "" : "}");
		break;
	default:
		break;
	}
	fathom_put_char(d, '}');
}

/* The result is the size of all that there is, of which there may be room for less. */
void fathom_decode_call_info(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[CALL_INFO] = { 0 };
	uint64_t size = fathom_decode_count(d, FATHOM_COUNT_RESULT);

	size = size < d->call.args[2] ? size : d->call.args[2];
	size = size < CALL_INFO ? size : CALL_INFO;
	if (!o->value || !size || !fathom_decode_get(d, o->value, bytes, (size_t)size))
		fathom_put_address(d, o->value);
	else
		put_call_info(d, bytes, (size_t)size);
}
