/* SPDX-License-Identifier: MIT */
/*
 * i386: the number in eax, arguments in ebx, ecx, edx, esi, edi, ebp. In assembly, because a
 * compiler may need ebx and ebp for itself.
 */
	.text
	.globl	fathom_sys
	.hidden	fathom_sys
	.type	fathom_sys, @function
fathom_sys:
	pushl	%ebp
	pushl	%edi
	pushl	%esi
	pushl	%ebx
	movl	20(%esp), %eax
	movl	24(%esp), %ebx
	movl	28(%esp), %ecx
	movl	32(%esp), %edx
	movl	36(%esp), %esi
	movl	40(%esp), %edi
	movl	44(%esp), %ebp
	int	$0x80
	popl	%ebx
	popl	%esi
	popl	%edi
	popl	%ebp
	ret
	.size	fathom_sys, .-fathom_sys
	.section .note.GNU-stack, "", @progbits
