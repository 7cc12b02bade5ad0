/* SPDX-License-Identifier: MIT */
/* AArch64: x0 the function, x1 its argument, x2 the end of the stack. */
	.text
	.globl	fathom_switch_stack
	.hidden	fathom_switch_stack
	.type	fathom_switch_stack, %function
fathom_switch_stack:
	.cfi_startproc
	hint	#34 /* bti c */
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov	x29, sp
	.cfi_def_cfa_register 29
	mov	sp, x2
	mov	x3, x0
	mov	x0, x1
	blr	x3
	mov	sp, x29
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa 31, 0
	.cfi_restore 29
	.cfi_restore 30
	ret
	.cfi_endproc
	.size	fathom_switch_stack, .-fathom_switch_stack
	.section .note.GNU-stack, "", %progbits
