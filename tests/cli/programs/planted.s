# SPDX-License-Identifier: MIT
# Each function but the last writes the frame pointer once, in another way, one byte behind its start.
.macro function name
.text
.globl \name
.type \name, @function
\name:
nop
.endm
.macro over name
ret
.size \name, . - \name
.endm
function by_mov
mov %rax, %rbp
over by_mov
function by_pop
pop %rbp
over by_pop
function by_lea
lea 8(%rsp), %rbp
over by_lea
function by_xchg
xchg %rbp, %rbx
over by_xchg
function by_enter
enter $16, $0
over by_enter
function by_leave
leave
over by_leave
function by_low_byte
movb $1, %bpl
over by_low_byte
function by_cmov
cmove %eax, %ebp
over by_cmov
function by_bad_code
.byte 0x06
over by_bad_code
function reads_only
push %rbp
mov %rbp, %rax
mov 8(%rbp), %rcx
mov %rcx, 8(%rbp)
call by_mov
add $8, %rsp
over reads_only
