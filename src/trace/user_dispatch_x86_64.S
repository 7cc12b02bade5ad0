/* SPDX-License-Identifier: MIT */
/* What makes system calls in programs that are dispatched (user_dispatch.h), and what must not be C. */
	.set SIGSYS, 31
	.set MASK_SIZE, 8
	.set SIG_UNBLOCK, 1
	.set SIG_SETMASK, 2
	.set SYS_rt_sigaction, 13
	.set SYS_rt_sigprocmask, 14
	.set SYS_rt_sigreturn, 15
	.set SYS_sigaltstack, 131
	.set SYS_prctl, 157
	.set PR_SET_SYSCALL_USER_DISPATCH, 59
	.set PR_SYS_DISPATCH_ON, 1

	/* struct registers (user_dispatch_x86_64.c), which ends at the new thread's stack pointer */
	.set TASK, -128
	.set RBX, -120
	.set RBP, -112
	.set RDI, -104
	.set RSI, -96
	.set RDX, -88
	.set R8, -80
	.set R9, -72
	.set R10, -64
	.set R12, -56
	.set R13, -48
	.set R14, -40
	.set R15, -32
	.set RIP, -24
	.set RFLAGS, -16
	.set MASK, -8
	.set CLEARED, 1			/* enum flag */
	.set UNARMED, 2

	/* struct fathom_dispatch_task (dispatch_task.h) */
	.set ARGS, 32
	.set BEHIND, 80

	/*
	 * Call frame information of instructions at which the stack pointer is at the context of a
	 * signal's frame (struct ucontext of the kernel): register @number is @off above it.
	 */
	.macro cfi_kept number, off
	.cfi_escape 0x10, \number, 3, 0x77, 0x80 | (\off & 0x7f), \off >> 7
	.endm

	.macro cfi_context
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06	/* the CFA is the word at 160, %rsp */
	cfi_kept 8, 40
	cfi_kept 9, 48
	cfi_kept 10, 56
	cfi_kept 11, 64
	cfi_kept 12, 72
	cfi_kept 13, 80
	cfi_kept 14, 88
	cfi_kept 15, 96
	cfi_kept 5, 104
	cfi_kept 4, 112
	cfi_kept 6, 120
	cfi_kept 3, 128
	cfi_kept 1, 136
	cfi_kept 0, 144
	cfi_kept 2, 152
	cfi_kept 16, 168
	.endm

	.section fathom_tracer_syscalls, "ax", @progbits

	/* %rdi: number; %rsi: six arguments. The kernel may have it make the call again. */
	.macro make_call
	movq %rsi, %rcx
	movq %rdi, %rax
	movq (%rcx), %rdi
	movq 8(%rcx), %rsi
	movq 16(%rcx), %rdx
	movq 24(%rcx), %r10
	movq 32(%rcx), %r8
	movq 40(%rcx), %r9
	syscall
	.endm

	/* Dispatches the calling thread. */
	.macro arm
	movl $PR_SET_SYSCALL_USER_DISPATCH, %edi
	movl $PR_SYS_DISPATCH_ON, %esi
	leaq __start_fathom_tracer_syscalls(%rip), %rdx
	leaq __stop_fathom_tracer_syscalls(%rip), %r10
	subq %rdx, %r10
	movq fathom_trace_self_selector(%rip), %r8
	movl $SYS_prctl, %eax
	syscall
	.endm

	/* Sets the kernel's action for SIGSYS to ours. */
	.macro take_sigsys
	movl $SIGSYS, %edi
	leaq fathom_trace_self_actions(%rip), %rsi
	xorl %edx, %edx
	movl $MASK_SIZE, %r10d
	movl $SYS_rt_sigaction, %eax
	syscall
	.endm

	.balign 16
	.globl fathom_trace_make_call
	.hidden fathom_trace_make_call
	.type fathom_trace_make_call, @function
fathom_trace_make_call:
	.cfi_startproc
	make_call
	ret
	.cfi_endproc
	.size fathom_trace_make_call, . - fathom_trace_make_call

	/* The same, of a call that gives the new thread a stack, below which its registers are. */
	.globl fathom_user_dispatch_clone
	.hidden fathom_user_dispatch_clone
	.type fathom_user_dispatch_clone, @function
fathom_user_dispatch_clone:
	.cfi_startproc
	make_call
	testq %rax, %rax
	jz 1f
	ret
1:	.cfi_undefined %rip
	movq TASK(%rsp), %rdi
	andq $-4096, %rdi
	jz 2f
	xorl %esi, %esi
	movl $SYS_sigaltstack, %eax
	syscall
2:	testb $UNARMED, TASK(%rsp)
	jnz 3f
	arm
3:	testb $CLEARED, TASK(%rsp)
	jz 4f
	take_sigsys
4:	movl $SIG_SETMASK, %edi
	leaq MASK(%rsp), %rsi
	xorl %edx, %edx
	movl $MASK_SIZE, %r10d
	movl $SYS_rt_sigprocmask, %eax
	syscall
	movq RBX(%rsp), %rbx
	movq RBP(%rsp), %rbp
	movq RDI(%rsp), %rdi
	movq RSI(%rsp), %rsi
	movq RDX(%rsp), %rdx
	movq R8(%rsp), %r8
	movq R9(%rsp), %r9
	movq R10(%rsp), %r10
	movq R12(%rsp), %r12
	movq R13(%rsp), %r13
	movq R14(%rsp), %r14
	movq R15(%rsp), %r15
	movq RIP(%rsp), %rcx
	movq RFLAGS(%rsp), %r11
	pushq %r11
	popfq
	movl $0, %eax
	jmp *%rcx
	.cfi_endproc
	.size fathom_user_dispatch_clone, . - fathom_user_dispatch_clone

	/*
	 * The handler has the thread go on here, with the program's registers and stack: the kernel makes
	 * the call, and takes signals, as it would without us. The result goes to %r9, as the program's
	 * is kept (dispatch_task.h), and the trap has the thread come back to the handler.
	 */
	.macro STUB name
	.balign 16
	.globl \name, \name\()_made, \name\()_end
	.hidden \name, \name\()_made, \name\()_end
	.type \name, @function
\name:
	.cfi_startproc
	.cfi_undefined %rip
	.endm

	.macro MADE name
\name\()_made:
	movq %rax, %r9
	.endm

	.macro END name
	movq $-1, %rax			/* no call, should the trap not be dispatched */
	jmp fathom_user_dispatch_trap
\name\()_end:
	.cfi_endproc
	.size \name, . - \name
	.endm

	STUB fathom_user_dispatch_inline
	syscall
	MADE fathom_user_dispatch_inline
	END fathom_user_dispatch_inline

	/* Where the call goes on lies below the red zone. */
	STUB fathom_user_dispatch_inline_unwound
	.cfi_def_cfa %rsp, 0
	.cfi_offset %rip, -136		/* UNWOUND_OFF (user_dispatch_x86_64.c) */
	syscall
	MADE fathom_user_dispatch_inline_unwound
	END fathom_user_dispatch_inline_unwound

	STUB fathom_user_dispatch_inline_int80
	int $0x80
	MADE fathom_user_dispatch_inline_int80
	END fathom_user_dispatch_inline_int80

	/* vfork(): all signals are blocked here; the child has to be dispatched before the trap. */
	STUB fathom_user_dispatch_inline_vfork
	syscall
	MADE fathom_user_dispatch_inline_vfork
	testq %rax, %rax
	jnz 1f
	cmpb $0, fathom_trace_self_is_unarmed(%rip)
	jne fathom_user_dispatch_go_on
	arm
1:	END fathom_user_dispatch_inline_vfork

	/* execve() that has failed: the kernel had the program's SIGSYS. */
	STUB fathom_user_dispatch_inline_exec
	syscall
	MADE fathom_user_dispatch_inline_exec
	take_sigsys
	movl $SIG_UNBLOCK, %edi
	leaq sigsys(%rip), %rsi
	xorl %edx, %edx
	movl $MASK_SIZE, %r10d
	movl $SYS_rt_sigprocmask, %eax
	syscall
	END fathom_user_dispatch_inline_exec

	/* Outside of the range. */
	.text
	STUB fathom_user_dispatch_trap
	movq fathom_trace_self_selector(%rip), %rcx
	cmpb $0, (%rcx)
	je fathom_user_dispatch_go_on
	syscall
	.globl fathom_user_dispatch_trap_made
	.hidden fathom_user_dispatch_trap_made
fathom_user_dispatch_trap_made:
fathom_user_dispatch_go_on:
	/* It is dispatched no more. */
	movq fathom_trace_self_task@gottpoff(%rip), %rcx
	movq %fs:(%rcx), %rcx
	movq %r9, %rax
	movq ARGS(%rcx), %rdi
	movq ARGS + 8(%rcx), %rsi
	movq ARGS + 16(%rcx), %rdx
	movq ARGS + 24(%rcx), %r10
	movq ARGS + 32(%rcx), %r8
	movq ARGS + 40(%rcx), %r9
	jmp *BEHIND(%rcx)
fathom_user_dispatch_trap_end:
	.cfi_endproc
	.size fathom_user_dispatch_trap, . - fathom_user_dispatch_trap

	.section .rodata
	.balign 8
sigsys:	.quad 1 << (SIGSYS - 1)

	.section fathom_tracer_syscalls, "ax", @progbits

	/* %rdi: what the signal stack is to be; %rsi: a stack pointer that is on none */
	.balign 16
	.globl fathom_user_dispatch_set_stack
	.hidden fathom_user_dispatch_set_stack
	.type fathom_user_dispatch_set_stack, @function
fathom_user_dispatch_set_stack:
	.cfi_startproc
	movq %rsp, %rdx
	.cfi_def_cfa_register %rdx
	movq %rsi, %rsp
	xorl %esi, %esi
	movl $SYS_sigaltstack, %eax
	syscall
	movq %rdx, %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	.size fathom_user_dispatch_set_stack, . - fathom_user_dispatch_set_stack

	/* %rdi: the stack pointer with which the program has called rt_sigreturn() */
	.globl fathom_user_dispatch_return
	.hidden fathom_user_dispatch_return
	.type fathom_user_dispatch_return, @function
fathom_user_dispatch_return:
	.cfi_startproc
	movq %rdi, %rsp
	.cfi_endproc
	cfi_context
	movl $SYS_rt_sigreturn, %eax
	syscall
	hlt
	.cfi_endproc
	.size fathom_user_dispatch_return, . - fathom_user_dispatch_return

	/* %rdi: number; %rsi: six arguments of a call of i386 */
	.globl fathom_user_dispatch_int80
	.hidden fathom_user_dispatch_int80
	.type fathom_user_dispatch_int80, @function
fathom_user_dispatch_int80:
	.cfi_startproc
	pushq %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	movq %rdi, %rax
	movq (%rsi), %rbx
	movq 8(%rsi), %rcx
	movq 16(%rsi), %rdx
	movq 32(%rsi), %rdi
	movq 40(%rsi), %rbp
	movq 24(%rsi), %rsi
	int $0x80
	popq %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	popq %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size fathom_user_dispatch_int80, . - fathom_user_dispatch_int80

	/*
	 * What unwinders know a handler's frame by: these bytes, and no call frame information, also not of
	 * the byte before. A signal may come before the second instruction, where they do not look for that.
	 */
	nop
	.globl fathom_user_dispatch_restorer
	.hidden fathom_user_dispatch_restorer
	.type fathom_user_dispatch_restorer, @function
fathom_user_dispatch_restorer:
	movq $SYS_rt_sigreturn, %rax
	cfi_context
	syscall
	hlt				/* the range ends after what comes after the call */
	.cfi_endproc
	.size fathom_user_dispatch_restorer, . - fathom_user_dispatch_restorer

	.hidden __start_fathom_tracer_syscalls, __stop_fathom_tracer_syscalls, fathom_trace_self_selector
	.hidden fathom_trace_self_actions, fathom_trace_self_task, fathom_trace_self_is_unarmed
	.section .note.GNU-stack, "", @progbits
