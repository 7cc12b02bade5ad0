/* SPDX-License-Identifier: MIT */
/*
 * What stubs call. It keeps every register, the condition flags, and the control and status of floating
 * point; of vectors q0 to q31, if the site says so.
 *
 *	x30	    the return address into the stub, 8 bytes after which is the address of the site
 *	[sp]	    x16 of the function
 *	[sp, #8]    its return address
 *	sp + 16	    the stack pointer at the site
 *
 * Unwinders take where the function goes on for the return address: so the hooked function is the
 * caller, with the row of its own call frame information, by which its return address is in x30. That
 * has what it had there, so the return column is another: that of ELR_mode, which no frame has otherwise.
 * Its pc is exact, as below a signal: GCC's tables begin after the NOP of the slot.
 */
	.set SITE, 8
	.set BEHIND, 0
	.set SIZE, 16

	/* Bytes of registers, flags and the return address; with those of the stub's frame. */
	.set SAVED, 288
	.set FRAME, SAVED + 16
	.set VECTORS, 512
	.set FLAGS, 256
	.set STATUS, 272
	.set BACK, 280

	/* Rows: where the return address is, by x30 and by x19 (DW_CFA_val_expression of register 33). */
.macro BY_X30
	/* breg30 SITE, deref (the site), deref (after) */
	.cfi_escape 0x16, 33, 4, 0x8e, SITE, 0x06, 0x06
.endm
.macro BY_X19
	/* breg19 BEHIND, deref */
	.cfi_escape 0x16, 33, 3, 0x83, BEHIND, 0x06
.endm

.macro SAVE a b
	stp x\a, x\b, [sp, #\a * 8]
	.cfi_offset x\a, \a * 8 - FRAME
	.cfi_offset x\b, \b * 8 - FRAME
.endm
.macro RESTORE a b
	ldp x\a, x\b, [sp, #\a * 8]
	.cfi_restore x\a
	.cfi_restore x\b
.endm
.macro SAVE_VECTORS a b
	stp q\a, q\b, [sp, #\a * 16]
.endm
.macro RESTORE_VECTORS a b
	ldp q\a, q\b, [sp, #\a * 16]
.endm

	.text
	.balign 64
	.globl fathom_hook_entry
	.hidden fathom_hook_entry
	.type fathom_hook_entry, @function
fathom_hook_entry:
	.cfi_startproc
	.cfi_return_column 33
	.cfi_signal_frame
	.cfi_def_cfa_offset 16
	.cfi_offset x16, -16
	.cfi_offset x30, -8
	BY_X30
	hint #34			/* bti c */
	sub sp, sp, #SAVED
	.cfi_def_cfa_offset FRAME
.irp pair, "0, 1", "2, 3", "4, 5", "6, 7", "8, 9", "10, 11", "12, 13", "14, 15", "18, 19", "20, 21", "22, 23", "24, 25", "26, 27", "28, 29"
	SAVE \pair
.endr
	str x17, [sp, #17 * 8]
	.cfi_offset x17, 17 * 8 - FRAME
	ldp x0, x1, [sp, #SAVED]
	str x0, [sp, #16 * 8]
	str x1, [sp, #30 * 8]
	add x0, sp, #FRAME
	str x0, [sp, #31 * 8]
	mrs x0, nzcv
	mrs x1, fpcr
	stp x0, x1, [sp, #FLAGS]
	mrs x0, fpsr
	stp x0, x30, [sp, #STATUS]
	ldr x19, [x30, #SITE]
	BY_X19
	mov x29, sp
	.cfi_def_cfa_register x29
	ldr w2, [x19, #SIZE]
	cbz w2, 1f
	sub sp, sp, #VECTORS
.irp pair, "0, 1", "2, 3", "4, 5", "6, 7", "8, 9", "10, 11", "12, 13", "14, 15", "16, 17", "18, 19", "20, 21", "22, 23", "24, 25", "26, 27", "28, 29", "30, 31"
	SAVE_VECTORS \pair
.endr
1:	mov x0, x29
	mov x1, x19
	bl fathom_hook_dispatch
	ldr w2, [x19, #SIZE]
	cbz w2, 2f
.irp pair, "0, 1", "2, 3", "4, 5", "6, 7", "8, 9", "10, 11", "12, 13", "14, 15", "16, 17", "18, 19", "20, 21", "22, 23", "24, 25", "26, 27", "28, 29", "30, 31"
	RESTORE_VECTORS \pair
.endr
2:	mov sp, x29
	.cfi_def_cfa_register sp
	ldp x0, x30, [sp, #STATUS]
	BY_X30
	msr fpsr, x0
	ldp x0, x1, [sp, #FLAGS]
	msr nzcv, x0
	msr fpcr, x1
	ldr x17, [sp, #17 * 8]
	.cfi_restore x17
.irp pair, "28, 29", "26, 27", "24, 25", "22, 23", "20, 21", "18, 19", "14, 15", "12, 13", "10, 11", "8, 9", "6, 7", "4, 5", "2, 3", "0, 1"
	RESTORE \pair
.endr
	add sp, sp, #SAVED
	.cfi_def_cfa_offset 16
	ret
	.cfi_endproc
	.size fathom_hook_entry, . - fathom_hook_entry

	.section .note.GNU-stack, "", @progbits
