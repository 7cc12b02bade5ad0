/* SPDX-License-Identifier: MIT */
/*
 * What stubs call. It keeps every register and flag: of vectors and x87 what the site says.
 *
 *	(%rsp)	 the return address into the stub, 11 bytes after which is the address of the site
 *	8(%rsp)	 what was on top of the stack at the site
 *
 * Unwinders take the end of the slot for the return address: so the hooked function is the caller,
 * with the row of its own call frame information.
 */
	.set SITE, 11
	.set BEHIND, 0
	.set MASK, 8
	.set SIZE, 16
	.set COMPACTED, 20

	/* Bytes of registers and flags, and those of XSAVE's legacy area. */
	.set SAVED, 17 * 8
	.set LEGACY, 512

	.text
	.balign 64
	.globl fathom_hook_entry
	.hidden fathom_hook_entry
	.type fathom_hook_entry, @function
fathom_hook_entry:
	.cfi_startproc
	/*
	 * The return address (16) is after of the site: DW_CFA_val_expression of the CFA, lit8,
	 * minus, deref (into the stub), lit11, plus, deref (the site), deref (after)
	 */
	.cfi_escape 0x16, 16, 7, 0x38, 0x1c, 0x06, 0x3b, 0x22, 0x06, 0x06
	endbr64
	pushfq
	.cfi_adjust_cfa_offset 8
	andq $~0x100, (%rsp)		/* not TF, which is there while someone steps */
	cld
.irp reg, r15, r14, r13, r12, r11, r10, r9, r8
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
.endr
	pushq %rsp			/* set by fathom_hook_dispatch() */
	.cfi_adjust_cfa_offset 8
.irp reg, rbp, rdi, rsi, rbx, rcx, rdx, rax
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
.endr
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq SAVED(%rbp), %rbx
	movq SITE(%rbx), %rbx
	movq %rbp, %rdi
	movq %rbx, %rsi
	movl SIZE(%rbx), %ecx
	subq %rcx, %rsp
	andq $-64, %rsp
	testl %ecx, %ecx
	jz 3f
	movl MASK(%rbx), %eax
	movl MASK + 4(%rbx), %edx
	movl %eax, %ecx
	orl %edx, %ecx
	jz 2f
	/* The header, but for what is written there, must be zero. */
	xorl %ecx, %ecx
.irp at, 0, 8, 16, 24, 32, 40, 48, 56
	movq %rcx, LEGACY + \at(%rsp)
.endr
	cmpl $0, COMPACTED(%rbx)
	jz 1f
	xsavec64 (%rsp)
	jmp 4f
1:	xsave64 (%rsp)
	jmp 4f
2:	fxsave64 (%rsp)
	call fathom_hook_dispatch
	fxrstor64 (%rsp)
	jmp 5f
3:	call fathom_hook_dispatch
	jmp 5f
4:	call fathom_hook_dispatch
	movl MASK(%rbx), %eax
	movl MASK + 4(%rbx), %edx
	xrstor64 (%rsp)
5:	movq %rbp, %rsp
	.cfi_def_cfa_register %rsp
.irp reg, rax, rdx, rcx, rbx, rsi, rdi, rbp
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
.endr
	leaq 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
.irp reg, r8, r9, r10, r11, r12, r13, r14, r15
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
.endr
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size fathom_hook_entry, . - fathom_hook_entry

	.section .note.GNU-stack, "", @progbits
