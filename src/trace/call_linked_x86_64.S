/* SPDX-License-Identifier: MIT */
/*
 * The hook of system calls where nobody traces the program (call_linked.h). The stub of an instruction,
 * behind those that were moved into it:
 *
 *	lea -128(%rsp), %rsp		the red zone
 *	call fathom_trace_call_before	through the beginning of the pool
 *	lea 128(%rsp), %rsp
 *	syscall
 *	lea -128(%rsp), %rsp
 *	call fathom_trace_call_behind	likewise
 *	lea 128(%rsp), %rsp
 *	jmp behind the program's own syscall
 *
 * %rcx and %r11 are what the kernel changes anyway; the C functions touch no vector.
 */
	.set RED_ZONE, 128
	.set BEHIND, 20			/* from behind the first call of the hook to behind the second */
	.set SAVED, 80			/* bytes that are pushed, and a word for alignment */

	.text

/* 1: before the call; 0: behind it */
.macro HOOK name function is_before
	.balign 16
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	pushfq
	.cfi_adjust_cfa_offset 8
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushq %rax
	pushq %r9
	pushq %r8
	pushq %r10
	pushq %rdx
	pushq %rsi
	pushq %rdi
	.cfi_adjust_cfa_offset 56
	cld
.if \is_before
	movq %rax, %rsi
	leaq SAVED + RED_ZONE(%rsp), %rdx
	movq SAVED - 8(%rsp), %rcx
	movq %rbp, %r8
	xorl %r9d, %r9d
.else
	pushq (%rsp)			/* the program has its first argument there again */
	.cfi_adjust_cfa_offset 8
	movq %rax, 8(%rsp)
	leaq SAVED + 8 + RED_ZONE(%rsp), %rsi
	movq SAVED(%rsp), %rdx
	subq $BEHIND, %rdx
	leaq 8(%rsp), %rdi
.endif
.if \is_before
	movq %rsp, %rdi
.endif
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	andq $-16, %rsp
	call \function
	movq %rbp, %rsp
	.cfi_def_cfa_register %rsp
.if !\is_before
	movq %rax, %rcx			/* as the kernel leaves it */
	popq %rdi
	.cfi_adjust_cfa_offset -8
	movq %rdi, (%rsp)
.endif
	popq %rdi
	popq %rsi
	popq %rdx
	popq %r10
	popq %r8
	popq %r9
	popq %rax
	popq %rbp
	.cfi_adjust_cfa_offset -64
	.cfi_restore %rbp
.if !\is_before
	movq (%rsp), %r11		/* likewise */
.endif
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size \name, . - \name
.endm

	HOOK fathom_trace_call_before fathom_trace_linked_before 1
	HOOK fathom_trace_call_behind fathom_trace_linked_behind 0

	.section .note.GNU-stack, "", @progbits
