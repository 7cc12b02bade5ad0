/* SPDX-License-Identifier: MIT */
/*
 * kept full|sparse|none[-behind|-own|-own-behind]: calls a function that is recorded with random
 * registers, flags and vectors, one instruction at a time. All are the same afterwards, at most 128
 * bytes of stack were used, and nothing was written above. Prints how many instructions an event
 * takes.
 */
#include "traced.h"

#include <signal.h>
#include <ucontext.h>

enum { ROUNDS = 2000, STACK = 4096, FLAGS = 0xcd5 /* CF PF AF ZF SF DF OF, less DF below */ };

/* As call_with() reads and writes it. */
struct state {
	uint64_t registers[16]; /* rax rbx rcx rdx rsi rdi rbp r8 to r15, and flags */
	uint8_t vectors[16][32];
};

void call_with(struct state *state, void (*fn)(void), void *stack);

/* Without AVX the low halves of vectors are taken. */
char has_avx;

/*
 * The state pointer and our stack pointer stand above the stack that the call is made on:
 * rsp + 0: fn, + 8: state, + 16: our rsp.
 */
__asm__(".text\n"
	".type call_with, @function\n"
	"call_with:\n"
	"push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"mov %rsp, 16(%rdx)\n mov %rdi, 8(%rdx)\n mov %rsi, (%rdx)\n"
	"mov %rdx, %rsp\n"
	"mov %rdi, %rax\n"
	".set i, 0\n"
	"cmpb $0, has_avx(%rip)\n je 1f\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovdqu (128+i)(%rax), %ymm\\n\n .set i, "
	"i+32\n .endr\n"
	"jmp 2f\n1:\n.set i, 0\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu (128+i)(%rax), %xmm\\n\n .set i, "
	"i+32\n .endr\n2:\n"
	"mov 8(%rax), %rbx\n mov 16(%rax), %rcx\n mov 24(%rax), %rdx\n mov 32(%rax), %rsi\n"
	"mov 40(%rax), %rdi\n mov 48(%rax), %rbp\n mov 56(%rax), %r8\n mov 64(%rax), %r9\n"
	"mov 72(%rax), %r10\n mov 80(%rax), %r11\n mov 88(%rax), %r12\n mov 96(%rax), %r13\n"
	"mov 104(%rax), %r14\n mov 112(%rax), %r15\n"
	"push 120(%rax)\n mov (%rax), %rax\n popfq\n"
	"call *(%rsp)\n"
	".globl behind_call\n"
	"behind_call: push %rax\n pushfq\n"
	"mov 24(%rsp), %rax\n"
	"pop 120(%rax)\n pop (%rax)\n"
	"mov %rbx, 8(%rax)\n mov %rcx, 16(%rax)\n mov %rdx, 24(%rax)\n mov %rsi, 32(%rax)\n"
	"mov %rdi, 40(%rax)\n mov %rbp, 48(%rax)\n mov %r8, 56(%rax)\n mov %r9, 64(%rax)\n"
	"mov %r10, 72(%rax)\n mov %r11, 80(%rax)\n mov %r12, 88(%rax)\n mov %r13, 96(%rax)\n"
	"mov %r14, 104(%rax)\n mov %r15, 112(%rax)\n"
	".set i, 0\n"
	"cmpb $0, has_avx(%rip)\n je 1f\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovdqu %ymm\\n, (128+i)(%rax)\n .set i, "
	"i+32\n .endr\n"
	"vzeroupper\n jmp 2f\n1:\n.set i, 0\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movdqu %xmm\\n, (128+i)(%rax)\n .set i, "
	"i+32\n .endr\n2:\n"
	"cld\n"
	"mov 16(%rsp), %rsp\n"
	"pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

extern const char behind_call[];

__attribute__((naked, noinline)) void recorded(void)
{
	__asm__ volatile("ret");
}

static unsigned long steps;

/* Counts what runs between the call and the function's own instruction. */
UNTRACED static void step(int number, siginfo_t *info, void *data)
{
	ucontext_t *u = data;
	const uint64_t pc = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
	const uint64_t sp = (uint64_t)u->uc_mcontext.gregs[REG_RSP];

	(void)number;
	(void)info;
	if (pc == (uint64_t)(uintptr_t)behind_call) {
		u->uc_mcontext.gregs[REG_EFL] &= ~0x100;
		return;
	}
	steps++;
}

UNTRACED static uint64_t random64(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

UNTRACED int main(int argc, char **argv)
{
	const char *clock = argc > 1 ? argv[1] : "";
	static const struct {
		const char *clock;
		const unsigned char *from;
		const unsigned char *to;
	} hooks[] = {
		{ "full", fathom_trace_hook_full, fathom_trace_hook_full_behind },
		{ "full-behind", fathom_trace_hook_full_behind, fathom_trace_hook_full_own },
		{ "full-own", fathom_trace_hook_full_own, fathom_trace_hook_full_own_behind },
		{ "full-own-behind", fathom_trace_hook_full_own_behind,
		  fathom_trace_hook_full_at_call },
		{ "full-at-call", fathom_trace_hook_full_at_call, fathom_trace_hook_sparse },
		{ "sparse", fathom_trace_hook_sparse, fathom_trace_hook_sparse_behind },
		{ "sparse-behind", fathom_trace_hook_sparse_behind, fathom_trace_hook_sparse_own },
		{ "sparse-own", fathom_trace_hook_sparse_own, fathom_trace_hook_sparse_own_behind },
		{ "sparse-own-behind", fathom_trace_hook_sparse_own_behind,
		  fathom_trace_hook_sparse_at_call },
		{ "sparse-at-call", fathom_trace_hook_sparse_at_call, fathom_trace_hook_none },
		{ "none", fathom_trace_hook_none, fathom_trace_hook_none_behind },
		{ "none-behind", fathom_trace_hook_none_behind, fathom_trace_hook_none_own },
		{ "none-own", fathom_trace_hook_none_own, fathom_trace_hook_none_own_behind },
		{ "none-own-behind", fathom_trace_hook_none_own_behind,
		  fathom_trace_hook_none_at_call },
		{ "none-at-call", fathom_trace_hook_none_at_call, fathom_trace_hooks_end },
	};
	const unsigned char *from = NULL;
	const unsigned char *to = NULL;
	struct sigaction sa = { .sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static uint8_t stack[STACK] __attribute__((aligned(64)));
	static uint8_t handlers[65536];
	const stack_t other = { .ss_sp = handlers, .ss_size = sizeof handlers };
	unsigned long most = 0;
	unsigned long first = 0;
	uint64_t deepest = 0;

	for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
		if (strcmp(hooks[i].clock, clock) != 0)
			continue;
		from = hooks[i].from;
		to = hooks[i].to;
	}
	require(from, "no such clock");
	__builtin_cpu_init();
	has_avx = __builtin_cpu_supports("avx") != 0;
	set_up(1, FATHOM_TRACE_OVERWRITE);
	place_hook(from, to);
	patch();
	require(!sigaltstack(&other, NULL) && !sigaction(SIGTRAP, &sa, NULL), "sigaction");
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t *sp = stack + STACK / 2;
		struct state before;
		struct state after;

		for (size_t i = 0; i < sizeof before / 8; i++)
			((uint64_t *)(void *)&before)[i] = random64();
		/* DF is 0 at the entry of a function; the trap flag is ours. */
		before.registers[15] = (before.registers[15] & FLAGS & ~0x400u) | 0x302;
		/* Behind a prologue the frame pointer leads to a frame. */
		if (strstr(clock, "behind"))
			before.registers[6] = (uintptr_t)handlers + before.registers[6] % 4096;
		after = before;
		memset(stack, 0xa5, sizeof stack);
		steps = 0;
		call_with(&after, recorded, sp);
		after.registers[15] |= 0x100;
		require(!memcmp(&before, &after, sizeof before),
			"a register, flag or vector has changed");
		for (size_t i = 0; i < STACK / 2 - 256; i++)
			require(stack[i] == 0xa5, "more stack was used");
		if (!round)
			first = steps;
		else if (steps > most)
			most = steps;
		/* Below the return address; what is written below the stack pointer counts, too. */
		for (size_t i = 0; round && i < STACK / 2 - 8; i++)
			if (stack[i] != 0xa5) {
				deepest = STACK / 2 - 8 - i > deepest ? STACK / 2 - 8 - i : deepest;
				break;
			}
	}
	require(fathom_trace_records(head, 0)[ROUNDS - 1].site == site_of((const void *)recorded),
		"no record");
	printf("instructions %lu, first %lu, stack %llu\n", most, first,
	       (unsigned long long)deepest);
	return 0;
}
