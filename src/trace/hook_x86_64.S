/* SPDX-License-Identifier: MIT */
/*
 * The hooks of the image that is put into programs: the thread's block is at the gs base, which a tracer sets
 * before the thread runs. The hooks never read the base itself: older kernels and processors have no instruction
 * for that (rdgsbase). A program that has set the base to memory of its own is told by the owner there. Words before
 * each hook, which is copied, say what it belongs to.
 */
#define IN_BLOCK(field) %gs:field

	.set FOLLOWED, 0xb6d1f00d5eed7ace	/* FATHOM_TRACE_FOLLOWED */

.macro FIND_BLOCK
	movabsq $FOLLOWED, %rcx
.endm

.macro GET_ARGUMENTS
	movabsq $FOLLOWED, %rsi
	xorl %edi, %edi
	cmpq IN_BLOCK(OWNER), %rsi
	jne 1f
	movq IN_BLOCK(BLOCK), %rdi
1:
.endm

.macro HOOK_WORDS
	.quad 0				/* struct fathom_trace_process */
	.quad 0				/* fathom_trace_slow_entry() */
	.quad 0				/* the number of a site is its return address less this */
	.quad 0
.endm

.macro SUBTRACT_BASE name
	subl \name-16(%rip), %edx
.endm

.macro CALL_SLOW name
	movq \name-32(%rip), %rdx
	callq *\name-24(%rip)
.endm

#include "trace/hook_macros_x86_64.S"

	HOOK fathom_trace_hook_full 1 0
	HOOK fathom_trace_hook_full_behind 1 1
	HOOK fathom_trace_hook_full_own 1 2
	HOOK fathom_trace_hook_full_own_behind 1 3
	HOOK fathom_trace_hook_full_at_call 1 4
	HOOK fathom_trace_hook_sparse 2 0
	HOOK fathom_trace_hook_sparse_behind 2 1
	HOOK fathom_trace_hook_sparse_own 2 2
	HOOK fathom_trace_hook_sparse_own_behind 2 3
	HOOK fathom_trace_hook_sparse_at_call 2 4
	HOOK fathom_trace_hook_none 0 0
	HOOK fathom_trace_hook_none_behind 0 1
	HOOK fathom_trace_hook_none_own 0 2
	HOOK fathom_trace_hook_none_own_behind 0 3
	HOOK fathom_trace_hook_none_at_call 0 4
	.balign 16
	.globl fathom_trace_hooks_end
	.hidden fathom_trace_hooks_end
fathom_trace_hooks_end:

	.quad 0				/* struct fathom_trace_process */
	.quad 0				/* fathom_trace_loaded_entry() */
	.quad 0
	.quad 0
	.globl fathom_trace_loaded_stub
	.hidden fathom_trace_loaded_stub
	.type fathom_trace_loaded_stub, @function
fathom_trace_loaded_stub:
	.cfi_startproc
.irp reg, rdi, rax, rcx, rdx
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
.endr
	movq fathom_trace_loaded_stub-32(%rip), %rdi
	callq *fathom_trace_loaded_stub-24(%rip)
.irp reg, rdx, rcx, rax, rdi
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
.endr
	ret
	.cfi_endproc
	.balign 16
	.globl fathom_trace_loaded_stub_end
	.hidden fathom_trace_loaded_stub_end
fathom_trace_loaded_stub_end:

	ENTRY fathom_trace_slow_entry fathom_trace_slow 1
	ENTRY fathom_trace_loaded_entry fathom_trace_loaded 0

	.section .note.GNU-stack, "", @progbits
