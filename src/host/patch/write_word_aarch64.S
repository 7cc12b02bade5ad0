/* SPDX-License-Identifier: MIT */
/*
 * Writes a word of a page that is executable, while nothing in it runs: it is a copy of this that
 * does, in a page of its own (own_words_aarch64.c).
 *
 *	long fathom_write_word(page, size, avma, word)
 */
	.set MPROTECT, 226
	.set READ_WRITE, 3
	.set READ_EXECUTE, 5

	/* It runs as a copy: what stands in this section is never led to the hook of system calls. */
	.section fathom_tracer_syscalls, "ax", @progbits
	.balign 4
	.globl fathom_write_word
	.hidden fathom_write_word
	.type fathom_write_word, @function
fathom_write_word:
	.cfi_startproc
	hint #34			/* bti c */
	mov x9, x0
	mov x11, x2
	mov x8, #MPROTECT
	mov x2, #READ_WRITE
	svc #0
	cbnz x0, 2f
	str w3, [x11]
	mov x0, x9
	mov x2, #READ_EXECUTE
	svc #0
2:	ret
	.cfi_endproc
	.size fathom_write_word, . - fathom_write_word
	.globl fathom_write_word_end
	.hidden fathom_write_word_end
fathom_write_word_end:

	.section .note.GNU-stack, "", @progbits
