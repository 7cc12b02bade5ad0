/* SPDX-License-Identifier: MIT */
/*
 * The hook: what a site's stub calls at the entry of a function, or before its return.
 *
 *	(%rsp)	 the return address into the stub, which names the site
 *	8(%rsp)	 the function's return address; where it lies is the event's stack pointer
 *
 * It keeps every register and flag, vectors by touching none. Memory below the stack pointer is
 * free at the entry of a function. Offsets are those of struct fathom_trace_thread.
 *
 * A record is reserved by one instruction, before it is filled: a handler of a signal that comes
 * between writes behind it. The limit is looked at before, so handlers may pass it, each by one.
 */
	.set FS, 0
	.set CURSOR, 8
	.set LIMIT, 16
	.set RECORDS, 24
	.set RECORDS_LOG2, 16
	.set EVERY, 64

	.text

/* clock: 0 never, 1 each time, 2 one in EVERY */
.macro HOOK name clock
	.balign 16
	.quad 0				/* struct fathom_trace_process */
	.quad 0				/* fathom_trace_slow_entry() */
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	pushq %rax
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rax, 0
	lahf
	seto %al
	pushq %rcx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rcx, 0
	pushq %rdx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rdx, 0
	pushq %rax			/* flags */
	.cfi_adjust_cfa_offset 8
1:	rdfsbase %rcx
	cmpq %gs:FS, %rcx
	jne 8f
	movq %gs:CURSOR, %rcx
	cmpq %gs:LIMIT, %rcx
	jae 8f
	movl $1, %ecx
	xaddq %rcx, %gs:CURSOR
.if \clock == 2
	xorl %eax, %eax
	testl $(EVERY - 1), %ecx
	jnz 2f
.endif
.if \clock
	rdtsc
	shlq $32, %rdx
	orq %rdx, %rax
.else
	xorl %eax, %eax
.endif
2:
	movq %rcx, %rdx			/* the lap: inverted bit RECORDS_LOG2 of the number */
	notq %rdx
	shrq $RECORDS_LOG2, %rdx
	shlq $63, %rdx
	orq %rdx, %rax
	movzwl %cx, %ecx
	shlq $4, %rcx
	addq %gs:RECORDS, %rcx
	leaq 40(%rsp), %rdx		/* where the function's return address lies */
	shrq $3, %rdx
	movl %edx, 12(%rcx)
	movl 32(%rsp), %edx		/* the site */
	movl %edx, 8(%rcx)
	movq %rax, (%rcx)
9:	popq %rax
	.cfi_adjust_cfa_offset -8
	popq %rdx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rdx
	popq %rcx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rcx
	addb $0x7f, %al			/* overflows if it was 1 */
	sahf
	popq %rax
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rax
	ret
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset %rax, 24
	.cfi_rel_offset %rcx, 16
	.cfi_rel_offset %rdx, 8
8:	movq \name-16(%rip), %rdx
	callq *\name-8(%rip)		/* leaves in %rax whether to go on */
	testl %eax, %eax
	jnz 1b
	jmp 9b
	.cfi_endproc
	.size \name, . - \name
.endm

	HOOK fathom_trace_hook_full 1
	HOOK fathom_trace_hook_sparse 2
	HOOK fathom_trace_hook_none 0
	.balign 16
	.globl fathom_trace_hooks_end
	.hidden fathom_trace_hooks_end
fathom_trace_hooks_end:

/* Keeps all that the hook has not saved: the C code uses general registers only. */
	.globl fathom_trace_slow_entry
	.hidden fathom_trace_slow_entry
	.type fathom_trace_slow_entry, @function
fathom_trace_slow_entry:
	.cfi_startproc
	pushfq				/* DF */
	.cfi_adjust_cfa_offset 8
	cld
.irp reg, rsi, rdi, r8, r9, r10, r11, rbp
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
.endr
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	rdgsbase %rdi
	rdfsbase %rsi
	andq $-16, %rsp
	call fathom_trace_slow
	movq %rbp, %rsp
	.cfi_def_cfa_register %rsp
.irp reg, rbp, r11, r10, r9, r8, rdi, rsi
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
.endr
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size fathom_trace_slow_entry, . - fathom_trace_slow_entry

	.section .note.GNU-stack, "", @progbits
