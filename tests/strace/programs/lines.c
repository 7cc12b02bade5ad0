// SPDX-License-Identifier: MIT
// Instructions that call the kernel behind instructions of all shapes: each function makes one call, lseek() of a descriptor that tells its
// number, and prints what all registers are behind it. With an argument, it steps through them by the trap flag, and prints whether it was
// ever elsewhere.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define SHAPES 32

uint64_t found[8], kept = 0x1122334455667788, put;
extern void (*const shapes[SHAPES])(void);
extern const char first_code[], last_code[];
static volatile int n_elsewhere, n_steps;

// No padding is near. %eax is the number of the call; the jump ends what is before.
__asm__(".text\n"
	".macro begin name, number\n"
	".type shape_\\name, @function\n"
	"shape_\\name:\n"
	".cfi_startproc\n"
	"push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	"mov $1000 + \\number, %edi\n"
	"mov $8, %ebx\n"
	"mov $8, %eax\n"
	"xor %esi, %esi\n"
	"xor %edx, %edx\n"
	"xor %r8d, %r8d\n"
	"xor %r9d, %r9d\n"
	"xor %r10d, %r10d\n"
	"jmp 1f\n"
	"1:\n"
	".endm\n"
	".macro end name\n"
	"syscall\n"
	"mov %rax, found(%rip)\n"
	"mov %rdi, found + 8(%rip)\n"
	"mov %rsi, found + 16(%rip)\n"
	"mov %rdx, found + 24(%rip)\n"
	"mov %r8, found + 32(%rip)\n"
	"mov %r9, found + 40(%rip)\n"
	"mov %r10, found + 48(%rip)\n"
	"mov %rbx, found + 56(%rip)\n"
	"pop %rbx\n"
	"ret\n"
	".endm\n"
	".macro finish name\n"
	"end\n"
	".cfi_endproc\n"
	".size shape_\\name, . - shape_\\name\n"
	".endm\n"
	".fill 256, 1, 0xcc\n"
	"first_code:\n"

	"begin moved_22, 0\n mov $3, %edx\n .rept 3\n mov (%rsp), %r8\n .endr\n sub (%rsp), %r8\n .byte 0x90\n finish moved_22\n"
	"begin moved_37, 1\n mov $3, %edx\n .rept 7\n mov (%rsp), %r8\n .endr\n sub (%rsp), %r8\n finish moved_37\n"
	"begin moved_38, 2\n mov $3, %r9d\n .rept 7\n mov (%rsp), %r8\n .endr\n sub (%rsp), %r8\n finish moved_38\n"
	"begin relative_lea, 3\n lea kept(%rip), %r8\n mov (%r8), %r9\n xor %r8d, %r8d\n"
	"finish relative_lea\n"
	"begin relative_load, 4\n mov kept(%rip), %rsi\n mov %rsi, %r8\n finish relative_load\n"
	"begin relative_store, 5\n mov %ebx, put(%rip)\n finish relative_store\n"
	"begin relative_two, 6\n mov kept(%rip), %rsi\n jmp 2f\n 2: mov kept(%rip), %rdx\n mov kept + 4(%rip), %r9d\n mov %ebx, %eax\n"
	"finish relative_two\n"
	"begin relative_constant, 7\n movl $7, put(%rip)\n mov (%rsp), %r8\n mov (%rsp), %r8\n sub (%rsp), %r8\n finish relative_constant\n"
	"begin relative_compared, 8\n cmp %rbx, kept(%rip)\n setb %sil\n finish relative_compared\n"
	".fill 256, 1, 0xcc\n"
	"last_code:\n"
	".section .data.rel.ro, \"aw\"\n"
	".balign 8\n"
	"shapes:\n"
	".quad shape_moved_22, shape_moved_37, shape_moved_38, shape_relative_lea, shape_relative_load, shape_relative_store, shape_relative_two\n"
	".quad shape_relative_constant, shape_relative_compared\n"
	".fill 32 - 9, 8, 0\n"
	".text\n");

// Counts the step that has led to where @context is.
static void count(int signal, siginfo_t *info, void *context)
{
	const uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	extern const char __executable_start[], etext[];

	(void)signal;
	(void)info;
	n_steps++;
	if (pc - (uint64_t)__executable_start >= (uint64_t)(etext - __executable_start))
		n_elsewhere++;
}

static void step(void (*shape)(void))
{
	__asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq; call *%0; pushfq; andl $~0x100, (%%rsp); popfq"
			 :
			 : "b"(shape)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_sigaction = count, .sa_flags = SA_SIGINFO };

	(void)argv;
	sigaction(SIGTRAP, &action, NULL);
	for (int i = 0; i < SHAPES && shapes[i]; i++) {
		memset(found, 0, sizeof found);
		n_steps = n_elsewhere = 0;
		put = 0;
		if (argc > 1)
			step(shapes[i]);
		else
			shapes[i]();
		printf("%d:", i);
		for (int k = 0; k < 8; k++)
			printf(" %lx", (unsigned long)found[k]);
		printf(" %lx", (unsigned long)put);
		printf(argc > 1 ? " %d elsewhere, %s\n" : "\n", n_elsewhere, n_steps > 20 ? "stepped" : "not stepped");
	}
	return 0;
}
