/* SPDX-License-Identifier: MIT */
#include "host/code/x86_64/x86_stub.h"

#define RED_ZONE 128

static const uint8_t enter[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 };
static const uint8_t leave[] = { 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0 };

/* In front of the `syscall` of a stub. */
static const uint8_t to_hook[] = {
	0x48, 0x8d, 0x0d, 13, 0, 0, 0,          /* lea 13(%rip), %rcx */
	0x49, 0xbb, 0,    0,  0, 0, 0, 0, 0, 0, /* movabs $entry, %r11 */
	0x41, 0xff, 0xe3,                       /* jmp *%r11 */
};
enum { ENTRY_OFF = 9 };

_Static_assert(sizeof to_hook == FATHOM_X86_SYSCALL_STUB_BEFORE, "of the header");
_Static_assert(sizeof enter + FATHOM_X86_BRANCH_SIZE + sizeof leave == FATHOM_X86_HOOK_CALL_SIZE,
	       "of the header");

const uint64_t fathom_native_reach = FATHOM_X86_REACH;

const struct fathom_stub_registers fathom_native_registers = { .sp = 7, .pc = 16 };

void fathom_native_put_far_jump(uint64_t to, uint8_t bytes[FATHOM_NATIVE_FAR_SIZE])
{
	fathom_x86_put_far_jump(to, bytes);
}

bool fathom_x86_put_hook_call(uint64_t avma, uint64_t hook,
			      uint8_t bytes[FATHOM_X86_HOOK_CALL_SIZE])
{
	memcpy(bytes, enter, sizeof enter);
	memcpy(bytes + sizeof enter + FATHOM_X86_BRANCH_SIZE, leave, sizeof leave);
	return fathom_x86_put_call(avma + sizeof enter, hook, bytes + sizeof enter);
}

void fathom_x86_describe_hook_call(struct fathom_stub_cfi *c)
{
	fathom_stub_cfi_advance(c, sizeof enter);
	fathom_stub_cfi_frame(c, RED_ZONE);
	fathom_stub_cfi_advance(c, FATHOM_X86_BRANCH_SIZE + sizeof leave);
	fathom_stub_cfi_frame(c, 0);
}

bool fathom_x86_put_site_stub(uint64_t avma, uint64_t hook, uint64_t back,
			      uint8_t bytes[FATHOM_X86_SITE_STUB_SIZE])
{
	const size_t at = FATHOM_X86_SITE_STUB_BACK;

	bytes[at] = FATHOM_X86_RET;
	return fathom_x86_put_call(avma, hook, bytes) &&
	       (!back || fathom_x86_put_jump(avma + at, back, bytes + at));
}

bool fathom_x86_put_around_syscall(uint64_t avma, uint64_t before, uint64_t after, uint64_t back,
				   uint8_t bytes[FATHOM_X86_AROUND_SIZE(0)])
{
	const size_t call = FATHOM_X86_HOOK_CALL_SIZE;
	const size_t second = call + sizeof fathom_x86_syscall;
	const size_t jump = second + FATHOM_X86_HOOK_CALL_SIZE;

	memcpy(bytes + call, fathom_x86_syscall, sizeof fathom_x86_syscall);
	return fathom_x86_put_hook_call(avma, before, bytes) &&
	       fathom_x86_put_hook_call(avma + second, after, bytes + second) &&
	       fathom_x86_put_jump(avma + jump, back, bytes + jump);
}

void fathom_x86_describe_around_syscall(struct fathom_stub_cfi *c, uint32_t moved)
{
	fathom_stub_cfi_advance(c, moved);
	fathom_x86_describe_hook_call(c);
	fathom_stub_cfi_advance(c, FATHOM_X86_SYSCALL_SIZE);
	fathom_x86_describe_hook_call(c);
}

bool fathom_x86_put_word_stub(uint64_t avma, uint64_t hook, uint64_t word,
			      uint8_t bytes[FATHOM_X86_CALL_STUB_SIZE])
{
	const size_t back = FATHOM_X86_CALL_STUB_BACK;

	return fathom_x86_put_call(avma, hook, bytes) &&
	       fathom_x86_put_jump_by_word(avma + back, word, bytes + back);
}

uint64_t fathom_x86_word_of_stub(uint64_t avma, const uint8_t code[FATHOM_X86_CALL_STUB_SIZE])
{
	return code[0] == FATHOM_X86_CALL &&
			       fathom_x86_is_jump_by_word(code + FATHOM_X86_CALL_STUB_BACK)
		       ? fathom_x86_target(avma, code, FATHOM_X86_CALL_STUB_SIZE)
		       : 0;
}

bool fathom_x86_put_call_stub(uint64_t avma, uint64_t hook, uint64_t site, const uint8_t *call,
			      size_t size, uint8_t bytes[FATHOM_X86_CALL_STUB_SIZE])
{
	const size_t back = FATHOM_X86_CALL_STUB_BACK;
	const uint64_t to = fathom_x86_target(site, call, size);
	const bool is_by_word =
		(fathom_x86_is_call_by_word(call) || fathom_x86_is_jump_by_word(call)) &&
		size == FATHOM_X86_BY_WORD_SIZE;

	return is_by_word ? fathom_x86_put_word_stub(avma, hook, to, bytes)
			  : fathom_x86_put_call(avma, hook, bytes) &&
				    fathom_x86_put_jump(avma + back, to, bytes + back);
}

/* Writes what is up to the `syscall`, and that. */
static void put_syscall(uint64_t entry, uint8_t *bytes)
{
	memcpy(bytes, to_hook, sizeof to_hook);
	memcpy(bytes + ENTRY_OFF, &entry, sizeof entry);
	memcpy(bytes + sizeof to_hook, fathom_x86_syscall, sizeof fathom_x86_syscall);
}

bool fathom_x86_put_syscall_stub(uint64_t avma, uint64_t entry, uint64_t back,
				 uint8_t bytes[FATHOM_X86_SYSCALL_STUB_SIZE])
{
	const size_t jump = sizeof to_hook + sizeof fathom_x86_syscall;

	put_syscall(entry, bytes);
	return fathom_x86_put_jump(avma + jump, back, bytes + jump);
}

uint64_t fathom_x86_back_of_stub(uint64_t avma, uint64_t entry,
				 const uint8_t code[FATHOM_X86_SYSCALL_STUB_SIZE])
{
	uint8_t expected[sizeof to_hook + sizeof fathom_x86_syscall];

	put_syscall(entry, expected);
	return memcmp(code, expected, sizeof expected)
		       ? 0
		       : fathom_x86_target(avma, code, FATHOM_X86_SYSCALL_STUB_SIZE);
}
