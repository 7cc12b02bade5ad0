/* SPDX-License-Identifier: MIT */
/*
 * The entry point of programs that have the tracer inside as an archive (-Wl,-e,__fathom_trace_entry):
 * takes the flags away, then enters the C library. %rdx is the dynamic linker's, for it.
 */
	.weak _start			/* a shared object has none, and needs no entry point */
	.text
	.globl __fathom_trace_entry
	.type __fathom_trace_entry, @function
__fathom_trace_entry:
	.cfi_startproc
	.cfi_undefined %rip
	endbr64
	xorl %ebp, %ebp
	movq %rdx, %rbx
	movq %rsp, %rdi
	andq $-16, %rsp
	call fathom_trace_take_from_stack
	movq %rax, %rsp
	movq %rbx, %rdx
	xorl %ebx, %ebx
	jmp _start
	.cfi_endproc
	.size __fathom_trace_entry, . - __fathom_trace_entry
	/* What runs before main() is taken out of the archive, too. */
	.section .rodata
	.hidden fathom_trace_baked_in_here
	.long fathom_trace_baked_in_here - .
	.section .note.GNU-stack, "", @progbits
