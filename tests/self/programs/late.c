/* SPDX-License-Identifier: MIT */
/* A library that is loaded after the tables were prepared; its functions call what they are given. */
#include <alloca.h>
#include <string.h>

#define CALLS __attribute__((visibility("default"), noinline))

CALLS int late_plain(int (*fn)(void))
{
	return fn() + 1;
}

CALLS int late_alloca(int (*fn)(void), unsigned n)
{
	volatile char *p = alloca(n);

	p[0] = 1;
	return late_plain(fn) + p[0];
}

/* The compiler aligns the stack: the CFA is an expression. */
CALLS int late_aligned(int (*fn)(void), unsigned n)
{
	_Alignas(64) volatile char room[256];

	room[n % sizeof room] = 1;
	return late_alloca(fn, n) + room[n % sizeof room];
}

/*
 * A CFA that counts from rbx, as that of the loader's resolver does; then one whose FDE is too long
 * to be read: the first call stands before, the second behind the part that is.
 */
__asm__(".text\n"
	".globl late_by_rbx\n"
	".type late_by_rbx,@function\n"
	"late_by_rbx:\n"
	".cfi_startproc\n"
	"push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_offset rbx,-16\n"
	"mov %rsp,%rbx\n"
	".cfi_def_cfa_register rbx\n"
	"and $-64,%rsp\n"
	"sub $128,%rsp\n"
	"call *%rdi\n"
	"mov %rbx,%rsp\n"
	"pop %rbx\n"
	".cfi_def_cfa rsp,8\n"
	".cfi_restore rbx\n"
	"ret\n"
	".cfi_endproc\n"
	".size late_by_rbx,.-late_by_rbx\n"
	".globl late_long\n"
	".type late_long,@function\n"
	"late_long:\n"
	".cfi_startproc\n"
	"push %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"call *%rdi\n"
	"pop %rdi\n"
	".cfi_adjust_cfa_offset -8\n"
	".rept 1000\n"
	"push %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"pop %rdi\n"
	".cfi_adjust_cfa_offset -8\n"
	".endr\n"
	"push %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"call *%rdi\n"
	"pop %rdi\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size late_long,.-late_long\n");
