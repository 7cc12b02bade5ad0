/* SPDX-License-Identifier: MIT */
/*
 * The hooks that are linked into a program that traces itself (linked.h): the thread's block is in a
 * thread-local variable. The number of a site is the lowest 32 bits of where its stub's call returns to.
 */
#define IN_BLOCK(field) field(%rdx)

.macro FIND_BLOCK
	movq fathom_trace_self_thread@gottpoff(%rip), %rdx
	movq %fs:(%rdx), %rdx
	testq %rdx, %rdx
	jz 8f
	movq %fs:0, %rcx
.endm

.macro GET_ARGUMENTS
	movq fathom_trace_self_thread@gottpoff(%rip), %rdi
	movq %fs:(%rdi), %rdi
	movq %fs:0, %rsi
.endm

.macro HOOK_WORDS
.endm

.macro SUBTRACT_BASE name
.endm

.macro CALL_SLOW name
	leaq fathom_trace_self_process(%rip), %rdx
	call fathom_trace_slow_entry
.endm

#include "trace/hook_macros_x86_64.S"

	HOOK fathom_trace_hook_full 1 0
	HOOK fathom_trace_hook_sparse 2 0
	HOOK fathom_trace_hook_none 0 0

	ENTRY fathom_trace_slow_entry fathom_trace_slow 1

	.hidden fathom_trace_self_process, fathom_trace_slow
	.section .note.GNU-stack, "", @progbits
