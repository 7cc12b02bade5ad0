/* SPDX-License-Identifier: MIT */
/*
 * safe/unwind/ends.h: code of C libraries and runtimes as their disassembly shows it, and code that
 * is nearly the same.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "safe/unwind/ends.h"

#define CODE 0x1000

/* Code from CODE on; what is behind it cannot be read. */
struct code {
	const char *bytes;
	size_t size;
};

static size_t read_code(void *data, uint64_t avma, void *to, size_t size)
{
	const struct code *c = data;
	const uint64_t at = avma - CODE;
	const size_t left = at < c->size ? c->size - (size_t)at : 0;

	memcpy(to, c->bytes + (left ? at : 0), size < left ? size : left);
	return size < left ? size : left;
}

/* A question about code at offset @at. */
struct question {
	uint32_t machine;
	bool is;
	uint8_t at;
	uint8_t size;
	const char *bytes;
};

#define Q(machine, is, at, bytes) { machine, is, at, sizeof bytes - 1, bytes }

static void ask(const struct question *q, size_t n,
		bool (*fn)(const struct fathom_unwind_arch *arch, const struct fathom_reader *code,
			   uint64_t pc))
{
	for (size_t i = 0; i < n; i++) {
		struct code c = { q[i].bytes, q[i].size };
		const struct fathom_reader reader = { .read = read_code, .data = &c };

		if (fn(fathom_unwind_arch(q[i].machine), &reader, CODE + q[i].at) != q[i].is)
			fail_msg("question %zu: not %d", i, q[i].is);
	}
}

static void test_thread_end(void **state)
{
	static const struct question questions[] = {
		/* musl: mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall; hlt */
		Q(EM_X86_64, true, 0, "\x89\xc7\x31\xc0\xb0\x3c\x0f\x05\xf4"),
		/* the same, where a mapping ends */
		Q(EM_X86_64, true, 0, "\x89\xc7\x31\xc0\xb0\x3c\x0f\x05"),
		/* Go: mov $111,%edi; mov $60,%eax; syscall */
		Q(EM_X86_64, true, 0, "\xbf\x6f\x00\x00\x00\xb8\x3c\x00\x00\x00\x0f\x05\xeb\xf2"),
		/* endbr64; nop; xor %rdi,%rdi; mov $231,%rax; syscall */
		Q(EM_X86_64, true, 0,
		  "\xf3\x0f\x1e\xfa\x90\x48\x31\xff\x48\xc7\xc0\xe7\x00\x00\x00\x0f\x05"),
		/* push $60; pop %rax; syscall */
		Q(EM_X86_64, true, 0, "\x6a\x3c\x58\x0f\x05"),
		/* another call of the kernel; none that is known; a register that is not eax */
		Q(EM_X86_64, false, 0, "\x89\xc7\x31\xc0\xb0\x3b\x0f\x05\xf4"),
		Q(EM_X86_64, false, 0, "\x89\xc7\xb0\x3c\x0f\x05\xf4"),
		Q(EM_X86_64, false, 0, "\x41\xb8\x3c\x00\x00\x00\x0f\x05"),
		Q(EM_X86_64, false, 0, "\xb8\x3c\x00\x00\x00\x89\xd0\x0f\x05"),
		/* mov $60,%eax; ret; a jump before it; a call before it; cut off */
		Q(EM_X86_64, false, 0, "\xb8\x3c\x00\x00\x00\xc3\x0f\x05"),
		Q(EM_X86_64, false, 0, "\x75\x02\xb8\x3c\x00\x00\x00\x0f\x05"),
		Q(EM_X86_64, false, 0, "\xe8\x00\x00\x00\x00\xb8\x3c\x00\x00\x00\x0f\x05"),
		Q(EM_X86_64, false, 0, "\x89\xc7\x31\xc0\xb0\x3c\x0f"),
		Q(EM_X86_64, false, 0, "\x58\x0f\x05"),
		Q(EM_X86_64, false, 0, ""),
		/* musl: mov %eax,%ebx; xor %eax,%eax; inc %eax; int $0x80 */
		Q(EM_386, true, 0, "\x89\xc3\x31\xc0\x40\xcd\x80\xf4"),
		Q(EM_386, false, 0, "\x89\xc3\x31\xc0\xcd\x80\xf4"),
		Q(EM_386, false, 0, "\x89\xc7\x31\xc0\xb0\x3c\x0f\x05\xf4"),
		/* musl: mov x8,#93; svc #0 */
		Q(EM_AARCH64, true, 0, "\xa8\x0b\x80\xd2\x01\x00\x00\xd4"),
		/* bti c; mov w0,w1; mov w8,#94; svc #0 */
		Q(EM_AARCH64, true, 0,
		  "\x5f\x24\x03\xd5\xe0\x03\x01\x2a\xc8\x0b\x80\x52\x01\x00\x00\xd4"),
		/* mov x8,#220; svc #0; then: mov x8,x0 between; ret between */
		Q(EM_AARCH64, false, 0, "\x88\x1b\x80\xd2\x01\x00\x00\xd4"),
		Q(EM_AARCH64, false, 0, "\xa8\x0b\x80\xd2\xe8\x03\x00\xaa\x01\x00\x00\xd4"),
		Q(EM_AARCH64, false, 0, "\xa8\x0b\x80\xd2\xc0\x03\x5f\xd6\x01\x00\x00\xd4"),
	};

	(void)state;
	ask(questions, sizeof questions / sizeof *questions, fathom_is_thread_end);
}

/* Of glibc 2.36 and 2.41. */
static void test_context_end(void **state)
{
	static const struct question questions[] = {
		Q(EM_X86_64, true, 0,
		  "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8\x0f\xf6\xfe\xff\x48\x89\xc7"
		  "\xe8\xa7\xcc\xfe\xff\xf4"),
		Q(EM_X86_64, true, 0,
		  "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8\xef\xca\xfe\xff\x48\x89\xc7"
		  "\xe8\x97\x9a\xfe\xff\xf4"),
		/* built with -fcf-protection: endbr64 before it */
		Q(EM_X86_64, true, 0,
		  "\xf3\x0f\x1e\xfa\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8\x0f\xf6\xfe"
		  "\xff\x48\x89\xc7"
		  "\xe8\xa7\xcc\xfe\xff\xf4"),
		/* from its second instruction on; without its end */
		Q(EM_X86_64, false, 3,
		  "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8\x0f\xf6\xfe\xff\x48\x89\xc7"
		  "\xe8\xa7\xcc\xfe\xff\xf4"),
		Q(EM_X86_64, false, 0,
		  "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74\x08\xe8\x0f\xf6\xfe\xff\x48\x89\xc7"
		  "\xe8\xa7\xcc\xfe\xff\xc3"),
		Q(EM_X86_64, false, 0, "\x48\x89\xdc\x48\x8b\x3c\x24"),
		Q(EM_AARCH64, true, 0,
		  "\x1f\x20\x03\xd5\xe0\x03\x13\xaa\x80\xff\xff\xb5\x12\x34\x00\x14"),
		Q(EM_AARCH64, true, 4,
		  "\x1f\x20\x03\xd5\xe0\x03\x13\xaa\x80\xff\xff\xb5\x12\x34\x00\x14\x00\x00\x00"
		  "\x00"),
		/* i386: the code behind makecontext() */
		Q(EM_386, true, 0,
		  "\x8d\x24\x9c\x83\x3c\x24\x00\x74\x07\xe8\x37\x0c\x00\x00\xeb\x02\x31\xc0\x83\xe4"
		  "\xf0\x83\xec\x0c\x50\xe8\xf7\xfd\xff\xff\xf4"),
		Q(EM_386, false, 0,
		  "\x8d\x24\x9c\x83\x3c\x24\x00\x74\x08\xe8\x37\x0c\x00\x00\xeb\x02\x31\xc0\x83\xe4"
		  "\xf0\x83\xec\x0c\x50\xe8\xf7\xfd\xff\xff\xf4"),
		Q(EM_X86_64, false, 0,
		  "\x8d\x24\x9c\x83\x3c\x24\x00\x74\x07\xe8\x37\x0c\x00\x00\xeb\x02\x31\xc0\x83\xe4"
		  "\xf0\x83\xec\x0c\x50\xe8\xf7\xfd\xff\xff\xf4"),
		/* bl for b */
		Q(EM_AARCH64, false, 0,
		  "\x1f\x20\x03\xd5\xe0\x03\x13\xaa\x80\xff\xff\xb5\x12\x34\x00\x94"),
	};

	(void)state;
	ask(questions, sizeof questions / sizeof *questions, fathom_is_context_end);
}

static void test_frame_pointer(void **state)
{
	static const struct question questions[] = {
		/* musl: xor %ebp,%ebp; pop %rdi; call *%r9 */
		Q(EM_X86_64, true, 12, "\x0f\x05\x85\xc0\x75\x0f\x31\xed\x5f\x41\xff\xd1"),
		Q(EM_X86_64, false, 12, "\x0f\x05\x85\xc0\x75\x0f\x31\xff\x5f\x41\xff\xd1"),
		Q(EM_X86_64, false, 8, "\x31\xed\x5f\x41\xff\xd1\x90\x90"),
		/* mov x29,#0; ldp x1,x0,[sp],#16; blr x1 */
		Q(EM_AARCH64, true, 12, "\x1d\x00\x80\xd2\xe1\x03\xc1\xa8\x20\x00\x3f\xd6"),
		Q(EM_AARCH64, false, 12, "\x1e\x00\x80\xd2\xe1\x03\xc1\xa8\x20\x00\x3f\xd6"),
	};

	(void)state;
	ask(questions, sizeof questions / sizeof *questions, fathom_clears_frame_pointer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_end),
		cmocka_unit_test(test_context_end),
		cmocka_unit_test(test_frame_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
