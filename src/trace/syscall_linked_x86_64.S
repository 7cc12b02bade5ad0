/* SPDX-License-Identifier: MIT */
/*
 * The hook of system calls where nobody traces the program (syscall_linked.h). The stub of an instruction,
 * after those that were moved into it:
 *
 *	lea -128(%rsp), %rsp		the red zone
 *	call fathom_trace_syscall_before	through the beginning of the pool
 *	lea 128(%rsp), %rsp
 *	syscall
 *	lea -128(%rsp), %rsp
 *	call fathom_trace_syscall_behind	likewise
 *	lea 128(%rsp), %rsp
 *	jmp after the program's own syscall
 *
 * %rcx and %r11 are what the kernel changes anyway; the C functions touch no vector. They run on the
 * program's stack where that is known to have room (hook_stack.h), else on one of ours, with all
 * signals blocked: no handler may run there. The program's then has to have some 100 bytes
 * after the red zone.
 */
	.set RED_ZONE, 128
	.set BEHIND, 20			/* from after the first call of the hook to after the second */
	.set SAVED, 80			/* bytes that are pushed, and a word for alignment */
	.set SIG_SETMASK, 2
	.set MASK_SIZE, 8
	.set SYS_rt_sigprocmask, 14
	.set STACK, 65536		/* bytes of a stack of ours (hook_stack.c) */
	.set TRIES, 1000000
	.set IS_FILTERED, 132		/* struct fathom_trace_process (recorder.h) */
	.set FILTERED, 1		/* FATHOM_TRACE_FILTERED (likewise) */

/* rt_sigprocmask(SIG_SETMASK, %rsi, %rdx, MASK_SIZE) */
.macro SET_MASK
	movl $SIG_SETMASK, %edi
	movl $MASK_SIZE, %r10d
	movl $SYS_rt_sigprocmask, %eax
	syscall
.endm

	/* Calls that are made here are the runtime's (text_calls_x86_64.c). */
	.section fathom_tracer_syscalls, "ax", @progbits

/* The arguments of the function, of what was saved at %rbp; before the call, its number is in %rax. */
.macro get_args is_before
.if \is_before
	movq %rax, %rsi
	movq %rbp, %rdi
	leaq SAVED + RED_ZONE(%rbp), %rdx
	movq SAVED - 8(%rbp), %rcx
	movq 56(%rbp), %r8
	xorl %r9d, %r9d
.else
	leaq 8(%rbp), %rdi
	leaq SAVED + 8 + RED_ZONE(%rbp), %rsi
	movq SAVED(%rbp), %rdx
	subq $BEHIND, %rdx
.endif
.endm

/* Calls @function on the thread's stack of ours, or, where that is in use, on the program's. */
.macro call_elsewhere function is_before
	movq fathom_hook_own_stack@gottpoff(%rip), %r10
	movq %fs:(%r10), %r10
	leaq fathom_hook_first_stack(%rip), %r11
	testq %r10, %r10
	cmovz %r11, %r10
	movl $TRIES, %ecx
3:	movl $1, %edx
	xchgl %edx, (%r10)
	testl %edx, %edx
	jz 4f
	pause
	subl $1, %ecx
	jnz 3b
	xorl %r10d, %r10d
	jmp 5f
4:	leaq STACK(%r10), %rsp
5:	andq $-16, %rsp
	pushq %r10
	pushq %r10
	movq -8(%rbp), %rax
	get_args \is_before
	call \function
	popq %r10
	testq %r10, %r10
	jz 6f
	movl $0, (%r10)
6:
.endm

/* 1: before the call; 0: after it */
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
.if !\is_before
	pushq (%rsp)			/* the program has its first argument there again */
	.cfi_adjust_cfa_offset 8
	movq %rax, 8(%rsp)
.endif
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq fathom_hook_own_room@gottpoff(%rip), %r9
	movq %rsp, %r10
	subq %fs:(%r9), %r10
	cmpq %fs:8(%r9), %r10
	jb 1f
	cmpl $FILTERED, fathom_trace_self_process + IS_FILTERED(%rip)
	je 1f
	pushq %rax			/* what the program calls; then what the function returns */
	pushq $0			/* the program's mask */
	leaq fathom_hook_all(%rip), %rsi
	movq %rsp, %rdx
	SET_MASK
	call_elsewhere \function \is_before
	movq %rax, -8(%rbp)
	leaq -16(%rbp), %rsi
	xorl %edx, %edx
	SET_MASK
	movq -8(%rbp), %rax
	jmp 2f
1:	andq $-16, %rsp
	get_args \is_before
	call \function
2:	movq %rbp, %rsp
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

	HOOK fathom_trace_syscall_before fathom_trace_linked_before 1
	HOOK fathom_trace_syscall_behind fathom_trace_linked_behind 0

	.section .rodata
	.balign 8
fathom_hook_all:
	.quad -1

	.hidden fathom_trace_self_process, fathom_hook_own_room, fathom_hook_own_stack, fathom_hook_first_stack
	.section .note.GNU-stack, "", @progbits
