/* SPDX-License-Identifier: MIT */
/* The chain's code for this machine, and the function that makes the frame of reserving code. */
#ifndef CODE_OF_MACHINE_H
#define CODE_OF_MACHINE_H

#include <fathom/jit.h>

#if defined(__aarch64__)
/*
 * stp x29,x30,[sp,#-16]!; mov x29,sp; mov x8,x0; mov x0,x1; blr x8; add x0,x0,#1; ldp
 * x29,x30,[sp],#16; ret
 */
static const uint32_t framed[] = { 0xa9bf7bfd, 0x910003fd, 0xaa0003e8, 0xaa0103e0,
				   0xd63f0100, 0x91000400, 0xa8c17bfd, 0xd65f03c0 };
enum { FRAMED_FROM = 8, FRAMED_UNTIL = 28, FRAMED_FRAME = 16 };

/*
 * str x19,[sp,#-32]!; str x30,[sp,#8]; mov x8,x0; mov x0,x1; mov x19,#7; blr x8; add x0,x0,#1; ldr
 * x30,[sp,#8]; ldr x19,[sp],#32; ret
 */
static const uint32_t pushing[] = { 0xf81e0ff3, 0xf90007fe, 0xaa0003e8, 0xaa0103e0, 0xd28000f3,
				    0xd63f0100, 0x91000400, 0xf94007fe, 0xf84207f3, 0xd65f03c0 };
static const struct fathom_jit_event push_events[] = {
	{ 4, 32, 0, FATHOM_JIT_SUB, 0 },      { 4, 0, 19, FATHOM_JIT_SAVE, 0 },
	{ 8, 8, 30, FATHOM_JIT_SAVE, 0 },     { 32, 0, 30, FATHOM_JIT_RESTORE, 0 },
	{ 36, 0, 19, FATHOM_JIT_RESTORE, 0 }, { 36, 32, 0, FATHOM_JIT_ADD, 0 },
};

/* str x30,[sp,#-16]!; mov x8,x0; mov x0,x1; blr x8; add x0,x0,#1; ldr x30,[sp],#16; ret */
static const uint32_t reserving[] = { 0xf81f0ffe, 0xaa0003e8, 0xaa0103e0, 0xd63f0100,
				      0x91000400, 0xf84107fe, 0xd65f03c0 };

/* The frame of the code that it calls: 16 bytes, the frame record at x29. */
extern "C" long shim(made_fn *code, callback_fn *next, long argument);
__asm__(".pushsection .text\n"
	".globl shim\n"
	".type shim, %function\n"
	"shim:\n"
	"\t.cfi_startproc\n"
	"\tstp x29, x30, [sp, #-16]!\n"
	"\t.cfi_def_cfa_offset 16\n"
	"\t.cfi_offset 29, -16\n"
	"\t.cfi_offset 30, -8\n"
	"\tmov x29, sp\n"
	"\t.cfi_def_cfa_register 29\n"
	"\tmov x8, x0\n"
	"\tmov x0, x1\n"
	"\tmov x1, x2\n"
	"\tblr x8\n"
	"\t.cfi_def_cfa 31, 16\n"
	"\tldp x29, x30, [sp], #16\n"
	"\t.cfi_def_cfa_offset 0\n"
	"\tret\n"
	"\t.cfi_endproc\n"
	"\t.size shim, . - shim\n"
	".popsection\n");
#else
/*
 * push %rbp; mov %rsp,%rbp; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; inc %rax; pop %rbp; ret
 */
static const unsigned char framed[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x48, 0x89,
					0xf7, 0xff, 0xd0, 0x48, 0xff, 0xc0, 0x5d, 0xc3 };
/*
 * push %rbx; sub $16,%rsp; mov %rdi,%rax; mov %rsi,%rdi; mov $7,%ebx; call *%rax; inc %rax; add
 * $16,%rsp; pop %rbx; ret
 */
static const unsigned char pushing[] = { 0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0xf8, 0x48,
					 0x89, 0xf7, 0xbb, 7,    0,    0,    0,    0xff, 0xd0,
					 0x48, 0xff, 0xc0, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3 };
/* push %rbx; mov %rdi,%rax; mov %rsi,%rdi; call *%rax; inc %rax; pop %rbx; ret */
static const unsigned char reserving[] = { 0x53, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7,
					   0xff, 0xd0, 0x48, 0xff, 0xc0, 0x5b, 0xc3 };

enum { FRAMED_FROM = 4, FRAMED_UNTIL = sizeof framed - 1, FRAMED_FRAME = 0 };
static const struct fathom_jit_event push_events[] = {
	{ 1, 0, 3, FATHOM_JIT_PUSH, 0 },
	{ 5, 16, 0, FATHOM_JIT_SUB, 0 },
	{ 25, 16, 0, FATHOM_JIT_ADD, 0 },
	{ 26, 0, 3, FATHOM_JIT_POP, 0 },
};

/* Makes a frame by its frame pointer, as the code that it calls relies on. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) long shim(made_fn *code,
								       callback_fn *next,
								       long argument)
{
	const long value = code(next, argument);

	__asm__ volatile("" ::: "memory");
	return value;
}
#endif

#endif
