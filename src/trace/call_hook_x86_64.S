/* SPDX-License-Identifier: MIT */
/* The hook of system calls (call_hook.h). Offsets are those of struct fathom_trace_call_frame. */
	.set BEHIND, 16
	.set ARGS, 24
	.set RAX, 72
	.set STUB, 80
	.set FLAGS, 88
	.set STUB_JUMP, 3		/* FATHOM_TRACE_STUB_JUMP, FATHOM_TRACE_STUB_END */
	.set STUB_END, 7
	.set STACK, 56			/* of struct fathom_trace_thread */

	/* Loads what the program has in its registers, but for %rcx, %r11, the flags and the stack. */
	.macro load_program_registers
	movq ARGS(%rsp), %rdi
	movq ARGS+8(%rsp), %rsi
	movq ARGS+16(%rsp), %rdx
	movq ARGS+24(%rsp), %r10
	movq ARGS+32(%rsp), %r8
	movq ARGS+40(%rsp), %r9
	movq RAX(%rsp), %rax
	movq (%rsp), %rbp
	.endm

	.text
	.balign 16
	.globl fathom_trace_call_entry
	.hidden fathom_trace_call_entry
	.type fathom_trace_call_entry, @function
fathom_trace_call_entry:
	.cfi_startproc
	.cfi_undefined %rip
	rdgsbase %r11
	xchgq %rcx, %r11
	jrcxz 1f
	movq STACK(%rcx), %rcx
	jrcxz 1f
	jmp 2f
1:	jmp *%r11
2:	movq %rsp, -8(%rcx)
	leaq -8(%rcx), %rsp
	pushfq
	andq $~0x100, (%rsp)		/* not TF, which is there while someone steps */
	pushq %r11
	movslq STUB_JUMP(%r11), %rcx
	leaq STUB_END(%r11, %rcx), %r11
	pushq %rax
	pushq %r9
	pushq %r8
	pushq %r10
	pushq %rdx
	pushq %rsi
	pushq %rdi
	pushq %r11			/* where the program goes on */
	pushq %rbp			/* begin: any value */
	pushq %rbp
	movq %rsp, %rbp
	andq $-16, %rsp
	cld
	movq %rbp, %rdi
	call fathom_trace_call_begin
	movq %rbp, %rsp
	movl %eax, %ecx
	load_program_registers
	testl %ecx, %ecx
	jz 3f
	syscall
	.globl fathom_trace_call_made
	.hidden fathom_trace_call_made
fathom_trace_call_made:
	movq %rax, RAX(%rsp)
	movq %rsp, %rbp
	andq $-16, %rsp
	movq %rbp, %rdi
	call fathom_trace_call_end
	movq %rbp, %rsp
	load_program_registers
	movq BEHIND(%rsp), %rcx
	movq FLAGS(%rsp), %r11
	leaq FLAGS(%rsp), %rsp
	popfq
	movq (%rsp), %rsp
	jmp *%rcx
3:	movq STUB(%rsp), %r11
	leaq FLAGS(%rsp), %rsp
	popfq
	movq (%rsp), %rsp
	jmp *%r11
	.cfi_endproc
	.size fathom_trace_call_entry, . - fathom_trace_call_entry

	.globl fathom_trace_load
	.hidden fathom_trace_load
	.type fathom_trace_load, @function
fathom_trace_load:
	movq (%rdi), %rax
	ret
	.size fathom_trace_load, . - fathom_trace_load

	.globl fathom_trace_load_byte
	.hidden fathom_trace_load_byte
	.type fathom_trace_load_byte, @function
fathom_trace_load_byte:
	movzbl (%rdi), %eax
	ret
	.size fathom_trace_load_byte, . - fathom_trace_load_byte

	.globl fathom_trace_load_fault
	.hidden fathom_trace_load_fault
	.type fathom_trace_load_fault, @function
fathom_trace_load_fault:
	xorl %eax, %eax
	movq $1, (%rsi)
	ret
	.size fathom_trace_load_fault, . - fathom_trace_load_fault

	.section .note.GNU-stack, "", @progbits
