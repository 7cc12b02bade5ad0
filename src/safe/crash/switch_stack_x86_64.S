/* SPDX-License-Identifier: MIT */
/* x86-64: rdi the function, rsi its argument, rdx the end of the stack. */
	.text
	.globl	fathom_switch_stack
	.hidden	fathom_switch_stack
	.type	fathom_switch_stack, @function
fathom_switch_stack:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	movq	%rdx, %rsp
	movq	%rdi, %rax
	movq	%rsi, %rdi
	call	*%rax
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size	fathom_switch_stack, .-fathom_switch_stack
	.section .note.GNU-stack, "", @progbits
