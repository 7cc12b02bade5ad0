/* SPDX-License-Identifier: MIT */
/*
 * The hook: what a site's stub calls at the entry of a function, or before its return.
 *
 *	(%rsp)	 the return address into the stub, which names the site
 *	8(%rsp)	 the function's return address; where it lies is the event's stack pointer
 *
 * It keeps every register and flag, vectors by touching none. Memory below the stack pointer is
 * free at the entry of a function, and handlers of signals keep 128 bytes of it: the stack pointer
 * stays, so a debugger that has no rules for this code finds a return address on top of the stack
 * at each instruction. Offsets are those of struct fathom_trace_thread.
 *
 * The file that includes this defines how the hook finds its block and its process: IN_BLOCK, FIND_BLOCK,
 * GET_ARGUMENTS, HOOK_WORDS, SUBTRACT_BASE, CALL_SLOW. FIND_BLOCK may use %rdx, and IN_BLOCK, which comes before that is
 * used again.
 *
 * A record is reserved by one instruction, before it is filled: a handler of a signal that comes
 * between writes after it. The limit is looked at before, so handlers may pass it, each by one.
 */
	.set OWNER, 0
	.set CURSOR, 8
	.set LIMIT, 16
	.set RECORDS, 24
	.set BLOCK, 80
	.set RECORDS_LOG2, 16
	.set EVERY, 64

	.text

/*
 * clock: 0 never, 1 each time, 2 one in EVERY. place: 0 where a function is entered, 1 after a
 * prologue; before a call that the program makes itself, whose arguments are a function (%rdi) and
 * where it returns to (%rsi): 2 anywhere, 3 where the frame pointer is set; 4 before such a call
 * where a function is entered, or left: 16(%rsp) is its return address.
 */
.macro HOOK name clock place
	.balign 16
	HOOK_WORDS
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	movq %rax, -8(%rsp)
	.cfi_offset %rax, -16
	lahf
	seto %al
	movq %rcx, -16(%rsp)
	.cfi_offset %rcx, -24
	movq %rdx, -24(%rsp)
	.cfi_offset %rdx, -32
	movq %rax, -32(%rsp)		/* flags */
1:	FIND_BLOCK			/* %rcx: the owner of its block; or it goes on at 8 */
	cmpq IN_BLOCK(OWNER), %rcx
	jne 8f
	movq IN_BLOCK(CURSOR), %rcx
	cmpq IN_BLOCK(LIMIT), %rcx
	jae 8f
	movl $1, %ecx
	xaddq %rcx, IN_BLOCK(CURSOR)
	movzwl %cx, %eax
	imull $24, %eax			/* bytes of a record */
	addq IN_BLOCK(RECORDS), %rax
	movl (%rsp), %edx		/* the site */
	SUBTRACT_BASE \name
	movl %edx, 8(%rax)
.if \place == 3
	movl %edi, 20(%rax)
	movl 8(%rbp), %edx
	movl %edx, 16(%rax)
	leaq 8(%rbp), %rdx
.elseif \place == 1
	movl (%rbp), %edx
	movl %edx, 20(%rax)
	movl 8(%rbp), %edx		/* 4 bytes of the return address */
	movl %edx, 16(%rax)
	leaq 8(%rbp), %rdx		/* where it lies */
.else
.if \place == 2
	movl %edi, 20(%rax)
	movl %esi, 16(%rax)
	leaq 8(%rsp), %rdx
.else
	movl %ebp, 20(%rax)
	movl 8+8*(\place/4)(%rsp), %edx
	movl %edx, 16(%rax)
	leaq 8+8*(\place/4)(%rsp), %rdx
.endif
.endif
	shrq $3, %rdx
	movl %edx, 12(%rax)
	movq %rax, -40(%rsp)
.if \clock == 2
	xorl %eax, %eax
	testb $(EVERY - 1), %cl
	jnz 2f
.endif
.if \clock
	rdtsc
	shlq $32, %rdx
	orq %rdx, %rax
.else
	xorl %eax, %eax
.endif
2:
	notq %rcx			/* the lap: inverted bit RECORDS_LOG2 of the number */
	shrq $RECORDS_LOG2, %rcx
	shlq $63, %rcx
	orq %rcx, %rax
	movq -40(%rsp), %rcx
	movq %rax, (%rcx)
9:	movq -32(%rsp), %rax
	movq -24(%rsp), %rdx
	.cfi_same_value %rdx
	movq -16(%rsp), %rcx
	.cfi_same_value %rcx
	addb $0x7f, %al			/* overflows if it was 1 */
	sahf
	movq -8(%rsp), %rax
	.cfi_same_value %rax
	ret
	.cfi_offset %rax, -16
	.cfi_offset %rcx, -24
	.cfi_offset %rdx, -32
8:	leaq -32(%rsp), %rsp
	.cfi_adjust_cfa_offset 32
	CALL_SLOW \name			/* leaves in %rax whether to go on */
	leaq 32(%rsp), %rsp
	.cfi_adjust_cfa_offset -32
	testl %eax, %eax
	jnz 1b
	jmp 9b
	.cfi_endproc
	.size \name, . - \name
.endm

/*
 * Calls @fn, with the block and the owner of the thread's block as arguments if @takes_block. Keeps all but %rax,
 * %rcx and %rdx, which its caller has saved: C uses general registers only.
 */
.macro ENTRY name fn takes_block
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	pushfq				/* DF */
	.cfi_adjust_cfa_offset 8
	andq $~0x100, (%rsp)		/* not TF, which is there while someone steps */
	cld
.irp reg, rsi, rdi, r8, r9, r10, r11, rbp
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
.endr
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
.if \takes_block
	GET_ARGUMENTS
.endif
	andq $-16, %rsp
	call \fn
	movq %rbp, %rsp
	.cfi_def_cfa_register %rsp
.irp reg, rbp, r11, r10, r9, r8, rdi, rsi
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
.endr
	popfq
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.size \name, . - \name
.endm
