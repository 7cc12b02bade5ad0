/* SPDX-License-Identifier: MIT */
/*
 * The hook: what a site's stub calls at the entry of a function (linked.h).
 *
 *	x30		the return address into the stub, which names the site
 *	[sp]		x16 of the function
 *	[sp, #8]	its return address
 *	sp + 48		the stack pointer at its entry
 *
 * It keeps every register: the condition flags and vectors by touching none. There is no red zone, so
 * the stub has moved the stack pointer by what the hook needs. Offsets are those of struct
 * fathom_trace_thread.
 *
 * A record is reserved by an exclusive pair, before it is filled: a handler of a signal that comes
 * between writes after it. (An exclusive store fails if an exception was taken since its load.) The
 * limit is looked at before, so handlers may pass it, each by one. The record's first word is stored
 * last, with release: the reader finds the others after it.
 */
	.set FS, 0
	.set CURSOR, 8
	.set LIMIT, 16
	.set RECORDS, 24
	.set RECORDS_LOG2, 16
	.set EVERY, 64
	.set FRAME, 48

	.text

/* clock: 0 never, 1 each time, 2 one in EVERY */
.macro HOOK name clock
	.balign 64
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	hint #34			/* bti c */
	stp x17, x15, [sp, #16]
	.cfi_offset x17, 16
	.cfi_offset x15, 24
	stp x14, x13, [sp, #32]
	.cfi_offset x14, 32
	.cfi_offset x13, 40
1:	mrs x14, tpidr_el0
	adrp x16, :gottprel:fathom_trace_self_thread
	ldr x16, [x16, #:gottprel_lo12:fathom_trace_self_thread]
	ldr x16, [x14, x16]
	cbz x16, 8f
	ldp x15, x17, [x16, #FS]
	sub x15, x15, x14
	cbnz x15, 8f
	ldr x15, [x16, #LIMIT]
	sub x15, x15, x17
	sub x15, x15, #1
	tbnz x15, #63, 8f		/* the limit is reached */
	add x14, x16, #CURSOR
2:	ldxr x17, [x14]
	add x15, x17, #1
	stxr w13, x15, [x14]
	cbnz w13, 2b
	ldr x14, [x16, #RECORDS]
	and x15, x17, #(1 << RECORDS_LOG2) - 1
	add x15, x15, x15, lsl #1	/* 24 bytes of a record */
	add x14, x14, x15, lsl #3
	add x13, sp, #FRAME
	lsr x13, x13, #3
	stp w30, w13, [x14, #8]
	ldr x13, [sp, #8]
	stp w13, w29, [x14, #16]
.if \clock == 2
	mov x15, #0
	and x13, x17, #EVERY - 1
	cbnz x13, 3f
.endif
.if \clock
	mrs x15, cntvct_el0
.else
	mov x15, #0
.endif
3:	mvn x17, x17			/* the lap: inverted bit RECORDS_LOG2 of the number */
	lsr x17, x17, #RECORDS_LOG2
	bfi x15, x17, #63, #1
	stlr x15, [x14]
9:	ldp x14, x13, [sp, #32]
	ldp x17, x15, [sp, #16]
	.cfi_remember_state
	.cfi_same_value x13
	.cfi_same_value x14
	.cfi_same_value x15
	.cfi_same_value x17
	ret
	.cfi_restore_state
8:	str x30, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	.cfi_offset x30, -16
	bl slow_entry			/* leaves in x16 whether to go on */
	ldr x30, [sp], #16
	.cfi_adjust_cfa_offset -16
	.cfi_restore x30
	cbnz x16, 1b
	b 9b
	.cfi_endproc
	.size \name, . - \name
.endm

	HOOK fathom_trace_hook_full 1
	HOOK fathom_trace_hook_sparse 2
	HOOK fathom_trace_hook_none 0

/*
 * Calls fathom_trace_slow() for the block x16, and returns in x16 what it says. Keeps all but x13 to
 * x17, which are saved: C uses general registers only.
 */
	.type slow_entry, @function
slow_entry:
	.cfi_startproc
	stp x29, x30, [sp, #-144]!
	.cfi_def_cfa_offset 144
	.cfi_offset x29, -144
	.cfi_offset x30, -136
	mov x29, sp
	.cfi_def_cfa_register x29
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	stp x8, x9, [sp, #80]
	stp x10, x11, [sp, #96]
	stp x12, x18, [sp, #112]
	mrs x13, nzcv
	str x13, [sp, #128]
	mov x0, x16
	mrs x1, tpidr_el0
	adrp x2, fathom_trace_self_process
	add x2, x2, #:lo12:fathom_trace_self_process
	bl fathom_trace_slow
	mov x16, x0
	ldr x13, [sp, #128]
	msr nzcv, x13
	ldp x12, x18, [sp, #112]
	ldp x10, x11, [sp, #96]
	ldp x8, x9, [sp, #80]
	ldp x6, x7, [sp, #64]
	ldp x4, x5, [sp, #48]
	ldp x2, x3, [sp, #32]
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #144
	.cfi_def_cfa sp, 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size slow_entry, . - slow_entry

	.section .note.GNU-stack, "", @progbits
