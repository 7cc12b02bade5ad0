/* SPDX-License-Identifier: MIT */
#include "safe/unwind/ends.h"

#include <elf.h>

#include "safe/base/nops.h"

/* Bytes of code that are looked at. */
#define CODE_SIZE 36

/* Code that is the same everywhere but for some bytes. */
struct pattern {
	uint8_t size;
	uint8_t bytes[32];
	uint32_t any; /* bit i: byte i is any */
};

/*
 * mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je 1f; call __setcontext; mov %rax,%rdi;
 * 1: call exit; hlt
 */
static const struct pattern context_x86_64 = {
	26,
	{ 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74, 0x08, 0xe8,
	  0,    0,    0,    0,    0x48, 0x89, 0xc7, 0xe8, 0,    0,    0,    0,    0xf4 },
	UINT32_C(0xf) << 13 | UINT32_C(0xf) << 21
};

/*
 * lea (%esp,%ebx,4),%esp; cmpl $0,(%esp); je 1f; call __setcontext; jmp 2f; 1: xor %eax,%eax;
 * 2: and $-16,%esp; sub $12,%esp; push %eax; call exit; hlt
 */
static const struct pattern context_i386 = {
	31,
	{ 0x8d, 0x24, 0x9c, 0x83, 0x3c, 0x24, 0x00, 0x74, 0x07, 0xe8, 0, 0, 0, 0, 0xeb, 0x02,
	  0x31, 0xc0, 0x83, 0xe4, 0xf0, 0x83, 0xec, 0x0c, 0x50, 0xe8, 0, 0, 0, 0, 0xf4 },
	UINT32_C(0xf) << 10 | UINT32_C(0xf) << 26
};

static bool fits(const struct pattern *p, const uint8_t *code)
{
	for (uint8_t i = 0; i < p->size; i++)
		if (!(p->any >> i & 1) && code[i] != p->bytes[i])
			return false;
	return true;
}

/* Reads 32 bits of code, which are little-endian in every byte order of data. */
static uint32_t little(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Returns instruction @i of aarch64. */
static uint32_t instruction(const uint8_t *code, size_t i)
{
	return little(code + 4 * i);
}

/* bti or nop, or none; mov x0,x19; cbnz x0,__setcontext; b exit */
static bool is_context_aarch64(const uint8_t *code, size_t size)
{
	const size_t i = size >= 16 && (instruction(code, 0) & 0xfffff01f) == 0xd503201f;

	return size >= 16 && instruction(code, i) == 0xaa1303e0 &&
	       (instruction(code, i + 1) & 0xff00001f) == 0xb5000000 &&
	       (instruction(code, i + 2) & 0xfc000000) == 0x14000000;
}

bool fathom_is_context_end(const struct fathom_unwind_arch *arch, const struct fathom_reader *code,
			   uint64_t pc)
{
	uint8_t bytes[CODE_SIZE];
	const size_t size = code->read(code->data, pc, bytes, sizeof bytes);

	const struct pattern *p = arch->machine == EM_X86_64 ? &context_x86_64 : &context_i386;
	size_t mark;

	if (arch->machine == EM_AARCH64)
		return is_context_aarch64(bytes, size);
	/* A C library that was built with -fcf-protection has endbr64 or endbr32 there. */
	mark = fathom_landing_size(false, (struct fathom_bytes){ bytes, size });
	return size - mark >= p->size && fits(p, bytes + mark);
}

/* Numbers of exit and exit_group (arch/x86/entry/syscalls, include/uapi/asm-generic/unistd.h). */
static bool is_exit(uint32_t machine, uint64_t number)
{
	switch (machine) {
	case EM_X86_64:
		return number == 60 || number == 231;
	case EM_386:
		return number == 1 || number == 252;
	default:
		return number == 93 || number == 94;
	}
}

/* Knowledge of eax while code of x86 is followed. */
struct accumulator {
	uint64_t value;
	bool known;
	bool has_pushed; /* a constant is on top of the stack */
	uint64_t pushed;
};

static void set(struct accumulator *a, uint64_t value)
{
	a->value = value;
	a->known = true;
}

/*
 * Follows one instruction of x86 that can stand between a call and the system call that ends the
 * thread; @rex is its prefix, or 0. Returns its size; 0: another instruction.
 */
static size_t follow_x86(struct accumulator *a, const struct fathom_bytes c, uint8_t rex)
{
	const uint8_t op = c.data[0];
	const uint8_t mod = c.data[1];
	const int reg = (mod >> 3 & 7) | (rex & 4) << 1;
	const int rm = (mod & 7) | (rex & 1) << 3;
	const int to = op == 0x8b || op == 0x33 ? reg : rm;

	switch (op) {
	case 0x89: /* mov reg,rm */
	case 0x8b:
		a->known &= to != 0;
		return mod >= 0xc0 ? 2 : 0;
	case 0x31: /* xor reg,rm */
	case 0x33:
		if (!to && reg == rm)
			set(a, 0);
		a->known &= to != 0 || reg == rm;
		return mod >= 0xc0 ? 2 : 0;
	case 0xc7: /* mov constant,rm */
		if (mod == 0xc0 && !(rex & 1))
			set(a, little(c.data + 2));
		return (mod & 0xf8) == 0xc0 ? 6 : 0;
	case 0x6a: /* push constant */
		a->pushed = mod;
		a->has_pushed = true;
		return 2;
	case 0x58: /* pop %rax */
		if (!a->has_pushed || rex & 1)
			return 0;
		set(a, a->pushed);
		a->has_pushed = false;
		return 1;
	case 0xb0: /* mov constant,%al */
		a->value = (a->value & ~UINT64_C(0xff)) | mod;
		return rex ? 0 : 2;
	default:
		break;
	}
	if (op >= 0xb8 && op <= 0xbf && !(rex & 8)) { /* mov constant,reg */
		if (op == 0xb8 && !(rex & 1))
			set(a, little(c.data + 1));
		return 5;
	}
	return 0;
}

/* The longest of those instructions, with a prefix. */
#define LONGEST 8

static bool exits_x86(uint32_t machine, struct fathom_bytes code)
{
	const bool is_64 = machine == EM_X86_64;
	struct accumulator a = { .known = false };

	while (code.size >= LONGEST) {
		const uint8_t *c = code.data;
		const uint8_t rex = is_64 && (*c & 0xf0) == 0x40 ? *c : 0;
		size_t size = fathom_nop_size(false, code);

		size = size ? size : fathom_landing_size(false, code);
		if (is_64 ? c[0] == 0x0f && c[1] == 0x05 : c[0] == 0xcd && c[1] == 0x80)
			return a.known && is_exit(machine, a.value);
		if (!size && !is_64 && *c == 0x40) { /* inc %eax */
			a.value++;
			size = 1;
		} else if (!size) {
			size = follow_x86(&a, bytes_slice(code, rex != 0, code.size - (rex != 0)),
					  rex);
			size += size && rex;
		}
		if (!size)
			return false;
		code = bytes_slice(code, size, code.size - size);
	}
	return false;
}

static bool exits_aarch64(const uint8_t *code, size_t size)
{
	uint64_t number = 0;

	for (size_t i = 0; i < size / 4; i++) {
		const uint32_t c = instruction(code, i);

		if (c == 0xd4000001) /* svc #0 */
			return is_exit(EM_AARCH64, number);
		if ((c & 0x7fe0001f) == 0x52800008) /* mov w8 or x8,constant */
			number = c >> 5 & 0xffff;
		else if ((c & 0x7fe0ffe0) == 0x2a0003e0) /* mov between registers */
			number = (c & 31) == 8 ? 0 : number;
		else if ((c & 0x7fe00000) != 0x52800000 && (c & 0xfffff01f) != 0xd503201f)
			return false;
	}
	return false;
}

bool fathom_is_thread_end(const struct fathom_unwind_arch *arch, const struct fathom_reader *code,
			  uint64_t pc)
{
	uint8_t bytes[CODE_SIZE + LONGEST];
	size_t size;

	/* Less than all can be read at the end of a mapping. */
	memset(bytes, 0xff, sizeof bytes);
	size = code->read(code->data, pc, bytes, CODE_SIZE);
	if (arch->machine == EM_AARCH64)
		return exits_aarch64(bytes, size);
	return exits_x86(arch->machine, (struct fathom_bytes){ bytes, size ? sizeof bytes : 0 });
}

/* Bytes before a call in which the frame pointer is cleared. */
#define BEFORE_CALL 12

bool fathom_clears_frame_pointer(const struct fathom_unwind_arch *arch,
				 const struct fathom_reader *code, uint64_t pc)
{
	uint8_t bytes[BEFORE_CALL];
	const bool is_aarch64 = arch->machine == EM_AARCH64;

	if (!fathom_reader_read(code, pc - sizeof bytes, bytes, sizeof bytes))
		return false;
	for (size_t i = 0; i + 2 <= sizeof bytes; i++)
		/* mov x29,#0; xor %ebp,%ebp in its two forms */
		if (is_aarch64
			    ? i % 4 == 0 && (instruction(bytes, i / 4) & 0x7fffffff) == 0x5280001d
			    : (bytes[i] == 0x31 && bytes[i + 1] == 0xed) ||
				      (bytes[i] == 0x33 && bytes[i + 1] == 0xed))
			return true;
	return false;
}
