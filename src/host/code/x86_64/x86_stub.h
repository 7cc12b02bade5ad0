/* SPDX-License-Identifier: MIT */
/*
 * Stubs of x86-64, and their parts. @avma is where the bytes are to be; a function that returns
 * false has met something that is too far.
 *
 * A call of a hook from where functions may use the red zone:
 *
 *	                        stack, from where the stub begins
 *	lea -128(%rsp), %rsp	128 bytes of the red zone
 *	call hook		in the hook: the return address
 *	lea 128(%rsp), %rsp	nothing
 *
 * No flags change, and no register but the stack pointer.
 *
 * In the place of a slot, at a function's entry or return:
 *
 *	call hook		in the hook: the return address
 *	jmp back, ret		nothing
 *
 * Before a call that goes on elsewhere, as if it had led there:
 *
 *	call hook		in the hook: the return address
 *	jmp target, jmp *word	nothing
 *
 * Before a system call, which overwrites %rcx and %r11:
 *
 *	lea 13(%rip), %rcx	nothing; %rcx leads to the `syscall`
 *	movabs $entry, %r11
 *	jmp *%r11		in the hook: nothing; it jumps back by %rcx
 *	syscall
 *	jmp back
 *
 * Around a system call, with each call of a hook as above:
 *
 *	moved instructions	nothing
 *	call of the first hook
 *	syscall
 *	call of the second hook
 *	jmp back
 */
#ifndef FATHOM_CODE_X86_STUB_H
#define FATHOM_CODE_X86_STUB_H

#include "host/code/native.h"
#include "host/code/x86_64/x86_instructions.h"

/* Bytes of the call of a hook with what is before and after it. */
#define FATHOM_X86_HOOK_CALL_SIZE 18

/* Writes it, which is to be at @avma; returns false if @hook is too far. */
bool fathom_x86_put_hook_call(uint64_t avma, uint64_t hook,
			      uint8_t bytes[FATHOM_X86_HOOK_CALL_SIZE]);

/* Appends its rules. */
void fathom_x86_describe_hook_call(struct fathom_stub_cfi *c);

/* Bytes of the stub of a slot, at most, and up to where the hook returns to. */
#define FATHOM_X86_SITE_STUB_SIZE (2 * FATHOM_X86_BRANCH_SIZE)
#define FATHOM_X86_SITE_STUB_BACK FATHOM_X86_BRANCH_SIZE

/* Writes one that goes on at @back; 0: it returns. */
bool fathom_x86_put_site_stub(uint64_t avma, uint64_t hook, uint64_t back,
			      uint8_t bytes[FATHOM_X86_SITE_STUB_SIZE]);

/* Bytes of a stub around a system call, beside the @moved instructions that it begins with. */
#define FATHOM_X86_AROUND_SIZE(moved) \
	((moved) + 2 * FATHOM_X86_HOOK_CALL_SIZE + FATHOM_X86_SYSCALL_SIZE + FATHOM_X86_BRANCH_SIZE)

/* Writes what follows the moved instructions, from @avma on; it goes on at @back. */
bool fathom_x86_put_around_syscall(uint64_t avma, uint64_t before, uint64_t after, uint64_t back,
				   uint8_t bytes[FATHOM_X86_AROUND_SIZE(0)]);
/* Appends the rules of all of it, up to the jump. */
void fathom_x86_describe_around_syscall(struct fathom_stub_cfi *c, uint32_t moved);

/* Bytes of a stub that goes on elsewhere, at most, and up to where the hook returns to. */
#define FATHOM_X86_CALL_STUB_SIZE (FATHOM_X86_BRANCH_SIZE + FATHOM_X86_BY_WORD_SIZE)
#define FATHOM_X86_CALL_STUB_BACK FATHOM_X86_BRANCH_SIZE

/* Writes one that goes on where the word at @word leads. */
bool fathom_x86_put_word_stub(uint64_t avma, uint64_t hook, uint64_t word,
			      uint8_t bytes[FATHOM_X86_CALL_STUB_SIZE]);
/* Returns the avma of the word by which the stub @code goes on; 0: it is no such stub. */
uint64_t fathom_x86_word_of_stub(uint64_t avma, const uint8_t code[FATHOM_X86_CALL_STUB_SIZE]);
/* Writes one that goes on where @call, a call or jump of @size bytes at @site, leads. */
bool fathom_x86_put_call_stub(uint64_t avma, uint64_t hook, uint64_t site, const uint8_t *call,
			      size_t size, uint8_t bytes[FATHOM_X86_CALL_STUB_SIZE]);

/* Bytes of a stub of a system call, and those before its `syscall`. */
#define FATHOM_X86_SYSCALL_STUB_BEFORE 20
#define FATHOM_X86_SYSCALL_STUB_SIZE \
	(FATHOM_X86_SYSCALL_STUB_BEFORE + FATHOM_X86_SYSCALL_SIZE + FATHOM_X86_BRANCH_SIZE)

/* Writes one, of the hook at @entry, that goes on at @back. */
bool fathom_x86_put_syscall_stub(uint64_t avma, uint64_t entry, uint64_t back,
				 uint8_t bytes[FATHOM_X86_SYSCALL_STUB_SIZE]);
/* Returns where stub @code, of the hook at @entry, goes on; 0: it is no such stub. */
uint64_t fathom_x86_back_of_stub(uint64_t avma, uint64_t entry,
				 const uint8_t code[FATHOM_X86_SYSCALL_STUB_SIZE]);

#endif
