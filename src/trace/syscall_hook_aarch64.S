/* SPDX-License-Identifier: MIT */
/*
 * The hook of system calls (syscall_linked.h). The stub of an instruction:
 *
 *	stp x16, x30, [sp, #-FATHOM_TRACE_STUB_FRAME]!
 *	bl fathom_trace_syscall_before		through a veneer, which uses x16
 *	ldp x16, x30, [sp], #FATHOM_TRACE_STUB_FRAME
 *	svc #0
 *	stp x16, x30, [sp, #-FATHOM_TRACE_STUB_FRAME]!
 *	bl fathom_trace_syscall_behind		likewise
 *	ldp x16, x30, [sp], #FATHOM_TRACE_STUB_FRAME
 *	b after the program's own svc
 *
 * The kernel keeps all registers but x0, and so does this: those that C may change are on the stack,
 * and the C functions touch no vector. A frame record makes the stub the caller.
 */
	.set STUB_FRAME, 48		/* FATHOM_TRACE_STUB_FRAME */
	.set SAVED, 176
	.set X0, 16
	.set FLAGS, 160
	.set BEHIND, 16			/* from after the first call of the hook to after the second */

	.text

/* 1: before the call; 0: after it */
.macro HOOK name function is_before
	.balign 64
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	hint #34			/* bti c */
	stp x29, x30, [sp, #-SAVED]!
	.cfi_def_cfa_offset SAVED
	.cfi_offset x29, -SAVED
	.cfi_offset x30, -SAVED + 8
	stp x0, x1, [sp, #X0]
	stp x2, x3, [sp, #X0 + 16]
	stp x4, x5, [sp, #X0 + 32]
	stp x6, x7, [sp, #X0 + 48]
	stp x8, x9, [sp, #X0 + 64]
	stp x10, x11, [sp, #X0 + 80]
	stp x12, x13, [sp, #X0 + 96]
	stp x14, x15, [sp, #X0 + 112]
	stp x17, x18, [sp, #X0 + 128]
	mrs x9, nzcv
	str x9, [sp, #FLAGS]
.if \is_before
	mov x1, x8
	add x2, sp, #SAVED + STUB_FRAME
	mov x3, x30
	mov x4, x29
	ldr x5, [sp, #SAVED + 8]	/* x30, as the stub has saved it */
.else
	add x1, sp, #SAVED + STUB_FRAME
	sub x2, x30, #BEHIND
.endif
	mov x29, sp
	.cfi_def_cfa_register x29
	add x0, sp, #X0
	bl \function
	ldr x9, [sp, #FLAGS]
	msr nzcv, x9
	ldp x17, x18, [sp, #X0 + 128]
	ldp x14, x15, [sp, #X0 + 112]
	ldp x12, x13, [sp, #X0 + 96]
	ldp x10, x11, [sp, #X0 + 80]
	ldp x8, x9, [sp, #X0 + 64]
	ldp x6, x7, [sp, #X0 + 48]
	ldp x4, x5, [sp, #X0 + 32]
	ldp x2, x3, [sp, #X0 + 16]
	ldp x0, x1, [sp, #X0]
	ldp x29, x30, [sp], #SAVED
	.cfi_def_cfa sp, 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size \name, . - \name
.endm

	HOOK fathom_trace_syscall_before fathom_trace_linked_before 1
	HOOK fathom_trace_syscall_behind fathom_trace_linked_behind 0

	.section .note.GNU-stack, "", @progbits
