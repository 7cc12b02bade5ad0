/* SPDX-License-Identifier: MIT */
/*
 * The hook of system calls (syscall_hook.h). Offsets are those of struct fathom_trace_syscall_frame and of
 * struct fathom_trace_thread.
 */
	.set BEHIND, 24
	.set ARGS, 32
	.set RAX, 80
	.set STUB, 88
	.set FLAGS, 96
	.set SP, 104
	.set FRAME, 112
	.set STACK, 56
	.set SCRATCH, 72
	.set MAY_BE_RECORDED, 0x7e9000107410
	.set DIRECTION, 4		/* of the second byte of the flags */
	.set OVERFLOW, 8

	/*
	 * Loads what the program has in its registers, but for %rcx, %r11 and the stack. The flags are
	 * loaded without popf, which takes longer; the hook changes no others.
	 */
	.macro load_program_registers
	movq ARGS(%rsp), %rdi
	movq ARGS+8(%rsp), %rsi
	movq ARGS+16(%rsp), %rdx
	movq ARGS+24(%rsp), %r10
	movq ARGS+32(%rsp), %r8
	movq ARGS+40(%rsp), %r9
	movq (%rsp), %rbp
	.endm

	.macro load_program_flags
	testb $DIRECTION, FLAGS+1(%rsp)
	jz 7f
	std
7:	movzbl FLAGS+1(%rsp), %eax
	andl $OVERFLOW, %eax
	addb $0x80-OVERFLOW, %al
	movb FLAGS(%rsp), %ah
	sahf
	.endm

	.text
	.balign 16
	.globl fathom_trace_syscall_entry
	.hidden fathom_trace_syscall_entry
	.type fathom_trace_syscall_entry, @function
fathom_trace_syscall_entry:
	.cfi_startproc
	.cfi_undefined %rip
	movq %rcx, %r11			/* the stub */
	movq %gs:STACK, %rcx
	jrcxz 1f
	/* What is left out goes back at once: no comparison, as that would change flags. */
	movq %rdx, %gs:SCRATCH
	movzwl %ax, %edx
	movabsq $MAY_BE_RECORDED, %rcx
	movzbl (%rcx,%rdx), %ecx
	movq %gs:SCRATCH, %rdx
	jrcxz 1f
	jmp 2f
1:	jmp *%r11
2:	movq %gs:STACK, %rcx
	movq %rsp, -8(%rcx)
	leaq -8(%rcx), %rsp
	pushfq
	andq $~0x100, (%rsp)		/* not TF, which is there while someone steps */
	pushq %r11
	pushq %rax
	pushq %r9
	pushq %r8
	pushq %r10
	pushq %rdx
	pushq %rsi
	pushq %rdi
	leaq -24(%rsp), %rsp
	pushq %rbp
	cld
	movq %rsp, %rdi
	call fathom_trace_syscall_begin
	movl %eax, %ecx
	load_program_registers
	jrcxz 3f
	movq RAX(%rsp), %rax
	syscall
	.globl fathom_trace_syscall_made
	.hidden fathom_trace_syscall_made
fathom_trace_syscall_made:
	movq %rax, RAX(%rsp)
	movq %rsp, %rdi
	call fathom_trace_syscall_end
	load_program_registers
	load_program_flags
	movq BEHIND(%rsp), %rcx
	movq FLAGS(%rsp), %r11
	movq RAX(%rsp), %rax
	movq SP(%rsp), %rsp
	jmp *%rcx
3:	load_program_flags
	movq STUB(%rsp), %r11
	movq RAX(%rsp), %rax
	movq SP(%rsp), %rsp
	jmp *%r11
	.cfi_endproc
	.size fathom_trace_syscall_entry, . - fathom_trace_syscall_entry

	.globl fathom_trace_load
	.hidden fathom_trace_load
	.type fathom_trace_load, @function
fathom_trace_load:
	movq (%rdi), %rax
	ret
	.size fathom_trace_load, . - fathom_trace_load

	.globl fathom_trace_load_byte
	.hidden fathom_trace_load_byte
	.type fathom_trace_load_byte, @function
fathom_trace_load_byte:
	movzbl (%rdi), %eax
	ret
	.size fathom_trace_load_byte, . - fathom_trace_load_byte

	.globl fathom_trace_load_fault
	.hidden fathom_trace_load_fault
	.type fathom_trace_load_fault, @function
fathom_trace_load_fault:
	xorl %eax, %eax
	movq $1, (%rsi)
	ret
	.size fathom_trace_load_fault, . - fathom_trace_load_fault

	.section .note.GNU-stack, "", @progbits
