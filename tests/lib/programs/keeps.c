/* SPDX-License-Identifier: MIT */
/*
 * keeps N (x86-64): calls the kernel N times with random registers, and prints how often one was not kept that the kernel keeps, or
 * the red zone was not; then whether the code that handlers return to is as unwinders know it. Half of the calls are made
 * while handlers run, which call the kernel, too.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

struct state {
	uint64_t r[15]; /* rbx, rbp, rdi, rsi, rdx, r8, r9, r10, r12 to r15; rax; flags; rsp's difference */
	uint64_t red[4];
	uint8_t xmm[16][16];
};

void call_with(const struct state *in, struct state *out);

__asm__(".text\n"
	".globl call_with\n"
	".type call_with, @function\n"
	"call_with:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n	push %rsi\n	push %rdi\n"
#define LOAD(n) "	movdqu 152+16*" #n "(%rdi), %xmm" #n "\n"
	LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7) LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13) LOAD(14) LOAD(15)
	"	mov 120(%rdi), %rax\n	mov %rax, -8(%rsp)\n	mov 128(%rdi), %rax\n	mov %rax, -16(%rsp)\n"
	"	mov 136(%rdi), %rax\n	mov %rax, -120(%rsp)\n	mov 144(%rdi), %rax\n	mov %rax, -128(%rsp)\n"
	"	mov (%rdi), %rbx\n	mov 8(%rdi), %rbp\n	mov 24(%rdi), %rsi\n	mov 32(%rdi), %rdx\n	mov 40(%rdi), %r8\n"
	"	mov 48(%rdi), %r9\n	mov 56(%rdi), %r10\n	mov 64(%rdi), %r12\n	mov 72(%rdi), %r13\n	mov 80(%rdi), %r14\n	mov 88(%rdi), %r15\n"
	"	mov 104(%rdi), %rax\n	lea -256(%rsp), %rsp\n	push %rax\n	popfq\n	lea 256(%rsp), %rsp\n"
	"	mov 16(%rdi), %rdi\n"
	"	mov $110, %eax\n" /* getppid() */
	"	syscall\n"
	"	mov %rdi, %rcx\n	mov 8(%rsp), %rdi\n"
	"	mov %rbx, (%rdi)\n	mov %rbp, 8(%rdi)\n	mov %rcx, 16(%rdi)\n	mov %rsi, 24(%rdi)\n	mov %rdx, 32(%rdi)\n	mov %r8, 40(%rdi)\n"
	"	mov %r9, 48(%rdi)\n	mov %r10, 56(%rdi)\n	mov %r12, 64(%rdi)\n	mov %r13, 72(%rdi)\n	mov %r14, 80(%rdi)\n	mov %r15, 88(%rdi)\n	mov %rax, 96(%rdi)\n"
	"	lea -256(%rsp), %rsp\n	pushfq\n	pop %rax\n	lea 256(%rsp), %rsp\n	cld\n	mov %rax, 104(%rdi)\n"
	"	mov -8(%rsp), %rax\n	mov %rax, 120(%rdi)\n	mov -16(%rsp), %rax\n	mov %rax, 128(%rdi)\n"
	"	mov -120(%rsp), %rax\n	mov %rax, 136(%rdi)\n	mov -128(%rsp), %rax\n	mov %rax, 144(%rdi)\n"
#define STORE(n) "	movdqu %xmm" #n ", 152+16*" #n "(%rdi)\n"
	STORE(0) STORE(1) STORE(2) STORE(3) STORE(4) STORE(5) STORE(6) STORE(7) STORE(8) STORE(9) STORE(10) STORE(11) STORE(12) STORE(13) STORE(14) STORE(15)
	"	pop %rdi\n	pop %rsi\n	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	".size call_with, . - call_with\n");

static volatile long n_handled;

static void handle(int number)
{
	(void)number;
	(void)syscall(SYS_getpgid, 0);
	n_handled++;
}

static void randomize(struct state *s)
{
	static uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
	uint8_t *bytes = (uint8_t *)s;

	/* Marsaglia's xorshift. */
	for (size_t i = 0; i + 8 <= sizeof *s; i += 8) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		memcpy(bytes + i, &random, 8);
	}
	/* Carry, parity, adjust, zero, sign, overflow; direction; the bit that is 1, and that of interrupts. */
	s->r[13] = (s->r[13] & 0xcd5) | 0x202;
	s->r[14] = 0;
}

/* As gdb and libgcc know it: mov $15, %rax; syscall. */
static int has_restorer(void)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };
	struct {
		void *handler;
		unsigned long flags;
		const void *restorer;
		unsigned long mask;
	} action;

	return !syscall(SYS_rt_sigaction, SIGALRM, NULL, &action, 8) && !memcmp(action.restorer, code, sizeof code);
}

int main(int argc, char **argv)
{
	const long n = argc > 1 ? atol(argv[1]) : 0;
	const struct sigaction action = { .sa_handler = handle };
	const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
	const uint64_t parent = (uint64_t)getppid();
	long n_wrong = 0;

	(void)sigaction(SIGALRM, &action, NULL);
	for (long i = 0; i < n; i++) {
		struct state in, out;

		if (i == n / 2)
			(void)setitimer(ITIMER_REAL, &often, NULL);
		randomize(&in);
		memset(&out, 0, sizeof out);
		call_with(&in, &out);
		in.r[12] = parent;
		n_wrong += memcmp(&in, &out, sizeof in) != 0;
	}
	(void)setitimer(ITIMER_REAL, &never, NULL);
	printf("%ld wrong of %ld, %ld handled, %s\n", n_wrong, n, n_handled, has_restorer() ? "known" : "unknown");
	return 0;
}
