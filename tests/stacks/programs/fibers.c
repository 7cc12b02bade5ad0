/* SPDX-License-Identifier: MIT */
/*
 * fibers KIND DEPTH: calls deeper() DEPTH times on a stack that it has allocated, prints "ready" and waits there. How that
 * stack begins:
 * - context: as makecontext() makes it
 * - zero: the first function returns to 0, and the frame pointer is 0
 * - top: so does it in the last words of a mapping, above which nothing is mapped
 * - nowhere: it returns to an address that is not mapped, and the frame pointer is one
 * - data: it returns to memory that holds no code, and the frame pointer leads in a circle
 * - finish: it returns to code without rules that ends the process, as Boost's fibers do; the frame pointer leads to
 *   itself, and above it are the remains of other calls
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 1 << 20, ABOVE = 64 };

volatile int sink;
static int depth;
static ucontext_t main_context, fiber_context;
void *main_stack;
static uint64_t data[2];

void fiber_switch(void **save, void *to);
void fiber_finish(void);
extern char fiber_after_call[];

__asm__(".text\n"
	".globl fiber_switch, fiber_finish, fiber_after_call\n"
	".type fiber_switch, @function\n"
	"fiber_switch:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n"
	".size fiber_switch, .-fiber_switch\n"
	".type fiber_finish, @function\n"
	"	nop\n"
	"fiber_finish:\n"
	"	xor %edi, %edi\n"
	"	call _exit\n"
	"fiber_after_call:\n"
	"	hlt\n"
	".size fiber_finish, .-fiber_finish\n");

__attribute__((noinline, noclone)) int deeper(int n)
{
	if (n)
		return deeper(n - 1) + sink;
	puts("ready");
	fflush(stdout);
	return (int)pause();
}

void fiber_main(void)
{
	sink = deeper(depth) + sink;
	fiber_switch(&main_stack, main_stack);
}

static void switch_to_fiber(uint64_t return_address, uint64_t frame_pointer, uint64_t *stack)
{
	uint64_t *top = stack + STACK / sizeof *stack - ABOVE;

	/* So that the first function finds sp as behind a call: 8 below what is aligned to 16. */
	*--top = return_address;
	*--top = (uint64_t)(uintptr_t)fiber_main;
	*--top = frame_pointer;
	top -= 5;
	fiber_switch(&main_stack, top);
}

int main(int argc, char **argv)
{
	uint64_t *stack = aligned_alloc(64, STACK);
	uint64_t *above = stack + STACK / sizeof *stack - ABOVE;

	if (argc != 3 || !stack)
		return 2;
	depth = atoi(argv[2]);
	memset(stack, 0, STACK);
	if (!strcmp(argv[1], "context")) {
		getcontext(&fiber_context);
		fiber_context.uc_stack.ss_sp = stack;
		fiber_context.uc_stack.ss_size = STACK;
		fiber_context.uc_link = &main_context;
		makecontext(&fiber_context, fiber_main, 0);
		swapcontext(&main_context, &fiber_context);
	} else if (!strcmp(argv[1], "zero")) {
		switch_to_fiber(0, 0, stack);
	} else if (!strcmp(argv[1], "top")) {
		char *mapped = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		mprotect(mapped + STACK, 4096, PROT_NONE);
		switch_to_fiber(0, 0, (uint64_t *)(void *)(mapped + (ABOVE - 8) * sizeof *stack));
	} else if (!strcmp(argv[1], "nowhere")) {
		switch_to_fiber(0x123456789abc, 0xdeadbeefcafe, stack);
	} else if (!strcmp(argv[1], "data")) {
		data[0] = (uintptr_t)data;
		data[1] = (uintptr_t)data;
		switch_to_fiber((uintptr_t)data, (uintptr_t)data, stack);
	} else if (!strcmp(argv[1], "finish")) {
		for (int i = 1; i < ABOVE; i++)
			above[i] = (uintptr_t)(i % 2 ? (void *)(above + i) : (void *)fiber_after_call);
		switch_to_fiber((uintptr_t)fiber_finish, (uintptr_t)above, stack);
	}
	return 1;
}
