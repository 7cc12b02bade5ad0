/* SPDX-License-Identifier: MIT */
#include "safe/unwind/arch/x86_ends.h"

#include "safe/base/nops.h"

/* Code is little-endian. */
#define SWAP (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)

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

/* A C library that was built with -fcf-protection has endbr64 or endbr32 there. */
static bool fits(const struct pattern *p, struct fathom_bytes code)
{
	code = bytes_from(code, fathom_landing_size(false, code));
	if (code.size < p->size)
		return false;
	for (uint8_t i = 0; i < p->size; i++)
		if (!(p->any >> i & 1) && code.data[i] != p->bytes[i])
			return false;
	return true;
}

bool fathom_x86_64_is_context_end(struct fathom_bytes code)
{
	return fits(&context_x86_64, code);
}

bool fathom_i386_is_context_end(struct fathom_bytes code)
{
	return fits(&context_i386, code);
}

/* Numbers of exit and exit_group (arch/x86/entry/syscalls). */
static bool is_exit(bool is_64, uint64_t number)
{
	return is_64 ? number == 60 || number == 231 : number == 1 || number == 252;
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
			set(a, load_u32(c.data + 2, SWAP));
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
			set(a, load_u32(c.data + 1, SWAP));
		return 5;
	}
	return 0;
}

/* The longest of those instructions, with a prefix. */
#define LONGEST 8

/* Follows @code to a system call; returns whether that is exit or exit_group. */
static bool is_thread_end(bool is_64, struct fathom_bytes code)
{
	struct accumulator a = { .known = false };

	while (code.size >= LONGEST) {
		const uint8_t *c = code.data;
		const uint8_t rex = is_64 && (*c & 0xf0) == 0x40 ? *c : 0;
		size_t size = fathom_nop_size(false, code);

		size = size ? size : fathom_landing_size(false, code);
		if (is_64 ? c[0] == 0x0f && c[1] == 0x05 : c[0] == 0xcd && c[1] == 0x80)
			return a.known && is_exit(is_64, a.value);
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

bool fathom_x86_64_is_thread_end(struct fathom_bytes code)
{
	return is_thread_end(true, code);
}

bool fathom_i386_is_thread_end(struct fathom_bytes code)
{
	return is_thread_end(false, code);
}

/* xor %ebp,%ebp in its two forms */
bool fathom_x86_clears_fp(struct fathom_bytes code)
{
	for (uint64_t i = 0; i + 2 <= code.size; i++)
		if ((code.data[i] == 0x31 || code.data[i] == 0x33) && code.data[i + 1] == 0xed)
			return true;
	return false;
}
