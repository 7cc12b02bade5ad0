// SPDX-License-Identifier: MIT
// Instructions that call the kernel behind instructions of all shapes: each function makes one call, lseek() of a descriptor that tells its
// number, and prints what registers are behind it. With an argument, it steps through them by the trap flag, and prints whether it was ever
// elsewhere.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#define SHAPES 32
#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN uint64_t found[8], kept = 0x1122334455667788, put;
HIDDEN extern void (*const shapes[SHAPES])(void);
HIDDEN extern const char first_code[], last_code[];
HIDDEN extern void step(void (*shape)(void));
static volatile int n_elsewhere, n_steps;

#ifdef __PIC__
#define CONSTANT "0"
#else
#define CONSTANT "shape_inner_constant"
#endif

// No padding is near. %eax is the number of the call; the jump ends what is before.
__asm__(".text\n"
	".macro begin name, number, part\n"
	".type shape_\\name\\part, @function\n"
	"shape_\\name\\part:\n"
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
	// Two short instructions, of which the second one is called @inner.
	".macro pair inner\n"
	"mov %rbx, %r8\n"
	".Linner_\\inner:\n"
	"xor %r10d, %r10d\n"
	".endm\n"
	".fill 256, 1, 0xcc\n"
	"first_code:\n"
	// Calls a function with the trap flag set.
	".type step, @function\n"
	"step: .cfi_startproc\n"
	"pushfq; orl $0x100, (%rsp); popfq\n"
	"call *%rdi\n"
	"pushfq; andl $~0x100, (%rsp); popfq\n"
	"ret; .cfi_endproc; .size step, . - step\n"

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
	// Nobody jumps to the midst of these.
	"begin line_two, 9\n named: pair two\n finish line_two\n"
	"begin line_three, 10\n xor %esi, %esi\n mov %ebx, %eax\n mov %ebx, %edx\n finish line_three\n"
	"begin line_long, 11\n or $2, %esi\n mov %esi, %edx\n mov %ebx, %eax\n finish line_long\n"
	"begin line_set, 12\n cmp %ebx, %eax\n sete %sil\n shl $7, %esi\n finish line_set\n"
	"begin jumped_to, 13\n jmp 3f\n 2: jmp 3f\n 3: pair jumped_to\n finish jumped_to\n"
	"begin jumped_over, 14\n test %ebx, %ebx\n jnz 2f\n 3: pair jumped_over\n 2: finish jumped_over\n"
	// Somebody may.
	"begin inner_short, 15\n test %ebx, %ebx\n jz .Linner_short\n jmp 3f\n 3: pair short\n finish inner_short\n"
	"begin inner_near, 16\n pair near\n finish inner_near\n"
	"begin inner_branch, 17\n pair branch\n finish inner_branch\n"
	"begin inner_call, 18\n pair call\n finish inner_call\n"
	"begin inner_lea, 19\n pair lea\n finish inner_lea\n"
	"begin inner_pointer, 20\n pair pointer\n finish inner_pointer\n"
	"begin inner_distance, 21\n pair distance\n finish inner_distance\n"
	"begin inner_symbol, 22\n pair symbol\n named_inner = .Linner_symbol\n finish inner_symbol\n"
	"begin inner_indirect, 23\n pair indirect\n end\n jmp *%rax\n .cfi_endproc\n .size shape_inner_indirect, . - shape_inner_indirect\n"
	"begin inner_part, 24\n pair part\n end\n jmp .Lpart\n .cfi_endproc\n .size shape_inner_part, . - shape_inner_part\n"
	"begin inner_pads, 25\n .cfi_lsda 0x1b, .Lpads\n pair pads\n finish inner_pads\n"
	"begin inner_memory, 26\n lea kept(%rip), %r9\n jmp 2f\n 2: mov (%r9), %r8\n xor %r9d, %r9d\n finish inner_memory\n"
	".type shape_no_rules, @function\n"
	"shape_no_rules: push %rbx\n mov $1027, %edi\n mov $8, %ebx\n mov $8, %eax\n xor %esi, %esi\n xor %edx, %edx\n xor %r8d, %r8d\n"
	"xor %r9d, %r9d\n jmp 1f\n 1: pair no_rules\n end\n"
	".size shape_no_rules, . - shape_no_rules\n"
	"begin inner_cold, 28, .cold\n pair cold\n end\n .cfi_endproc\n .size shape_inner_cold.cold, . - shape_inner_cold.cold\n"
	"begin line_called, 29, .part.0\n pair called\n end\n .cfi_endproc\n .size shape_line_called.part.0, . - shape_line_called.part.0\n"
	"begin inner_constant, 30\n pair constant\n finish inner_constant\n"
	".fill 256, 1, 0xcc\n"
	".type jumper, @function\n"
	"jumper: .cfi_startproc\n"
	"jmp .Linner_near\n jne .Linner_branch\n call .Linner_call\n lea .Linner_lea(%rip), %rax\n call shape_line_called.part.0\n"
#ifndef __PIC__
	"mov $.Linner_constant, %eax\n"
#endif
	"ret; .cfi_endproc; .size jumper, . - jumper\n"
	".type part, @function\n"
	"part: .cfi_startproc\n nop\n .Lpart: jmp *%rax\n .cfi_endproc\n .size part, . - part\n"
	".section .gcc_except_table, \"a\"\n"
	".Lpads: .byte 0xff, 0xff, 1, 0\n"
	".section .rodata\n"
	".balign 4\n"
	".long .Linner_distance - .\n"
	".text\n"
	"last_code:\n"
	".section .data.rel.ro, \"aw\"\n"
	".balign 8\n"
	"shapes:\n"
	".quad shape_moved_22, shape_moved_37, shape_moved_38, shape_relative_lea, shape_relative_load, shape_relative_store, shape_relative_two\n"
	".quad shape_relative_constant, shape_relative_compared, shape_line_two, shape_line_three, shape_line_long, shape_line_set\n"
	".quad shape_jumped_to, shape_jumped_over, shape_inner_short, shape_inner_near, shape_inner_branch, shape_inner_call, shape_inner_lea\n"
	".quad shape_inner_pointer, shape_inner_distance, shape_inner_symbol, shape_inner_indirect, shape_inner_part, shape_inner_pads\n"
	".quad shape_inner_memory, shape_no_rules, shape_inner_cold.cold, shape_line_called.part.0\n"
	".quad " CONSTANT "\n"
	".fill 32 - 31, 8, 0\n"
	".quad .Linner_pointer\n"
	".text\n");

// Counts the step that has led to where @context is.
static void count(int signal, siginfo_t *info, void *context)
{
	const uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	(void)signal;
	(void)info;
	n_steps++;
	if (pc - (uint64_t)first_code >= (uint64_t)(last_code - first_code))
		n_elsewhere++;
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
