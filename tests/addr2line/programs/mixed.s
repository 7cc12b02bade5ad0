# SPDX-License-Identifier: MIT
# Symbols without size or type, two at one address, code before the first symbol of a section.
	.section .text.unnamed, "ax", @progbits
	nop
	nop
	.text
	.globl main
	.type main, @function
main:
	xorl %eax, %eax
inner:
	call callee
	ret
	.size main, . - main
	nop
callee:
callee_again:
	nop
	.type sized, @function
sized:
	ret
	.size sized, . - sized
	.globl end_of_text
end_of_text:
	.data
word:
	.long 1
	.type object, @object
	.size object, 8
object:
	.quad 2
	.section .note.GNU-stack, "", @progbits
