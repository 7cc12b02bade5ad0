/* SPDX-License-Identifier: MIT */
/*
 * The entry point of programs that have the tracer inside as an archive (-Wl,-e,__fathom_trace_entry):
 * takes the flags away, then enters the C library. x0 is the dynamic linker's, for it.
 */
	.weak _start			/* a shared object has none, and needs no entry point */
	.text
	.globl __fathom_trace_entry
	.type __fathom_trace_entry, @function
__fathom_trace_entry:
	.cfi_startproc
	.cfi_undefined x30
	hint #34			/* bti c */
	mov x29, #0
	mov x30, #0
	mov x19, x0
	mov x0, sp
	bl fathom_trace_take_from_stack
	mov sp, x0
	mov x0, x19
	mov x30, #0
	b _start
	.cfi_endproc
	.size __fathom_trace_entry, . - __fathom_trace_entry
	/* What runs before main() is taken out of the archive, too. */
	.section .rodata
	.balign 4
	.hidden fathom_trace_baked_in_here
	.word fathom_trace_baked_in_here - .
	.section .note.GNU-stack, "", @progbits
