/* SPDX-License-Identifier: MIT */
/*
 * Writes words of a page that is executable, while nothing in it runs: it is a copy of this that
 * does, in a page of its own (text_words.c).
 *
 *	long fathom_write_words(page, size, words, n, off)
 *
 * Each of the @n words of 16 bytes has its address first, and at @off what it is to be.
 */
	.set MPROTECT, 226
	.set READ_WRITE, 3
	.set READ_EXECUTE, 5

	/* It runs as a copy: what stands in this section is never led to the hook of system calls. */
	.section fathom_tracer_syscalls, "ax", @progbits
	.balign 4
	.globl fathom_write_words
	.hidden fathom_write_words
	.type fathom_write_words, @function
fathom_write_words:
	.cfi_startproc
	hint #34			/* bti c */
	mov x9, x0
	mov x10, x1
	mov x11, x2
	mov x8, #MPROTECT
	mov x2, #READ_WRITE
	svc #0
	cbnz x0, 2f
1:	ldr x12, [x11]
	ldr w13, [x11, x4]
	str w13, [x12]
	add x11, x11, #16
	sub x3, x3, #1
	cbnz x3, 1b
	mov x0, x9
	mov x1, x10
	mov x2, #READ_EXECUTE
	svc #0
2:	ret
	.cfi_endproc
	.size fathom_write_words, . - fathom_write_words
	.globl fathom_write_words_end
	.hidden fathom_write_words_end
fathom_write_words_end:

	.section .note.GNU-stack, "", @progbits
