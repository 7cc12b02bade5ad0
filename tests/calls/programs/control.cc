// SPDX-License-Identifier: MIT
// Ways to leave functions other than by returning. After each, base() is called from main().
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <ucontext.h>

static jmp_buf back;
static sigjmp_buf signal_back;
static ucontext_t of_main;
static ucontext_t of_generator;
static char generator_stack[65536];
static char signal_stack[65536];
static long total;

extern "C" {

__attribute__((noinline)) void base()
{
	__asm__ volatile("" ::: "memory");
	total++;
}

__attribute__((noinline)) void dig(int n)
{
	if (!n)
		longjmp(back, 1);
	dig(n - 1);
	__asm__ volatile("");
}

__attribute__((noinline)) void throws(int n)
{
	if (!n)
		throw 3;
	throws(n - 1);
	__asm__ volatile("");
}

__attribute__((noinline)) void rethrows()
{
	try {
		throws(20);
	} catch (int n) {
		total += n;
		throw;
	}
}

__attribute__((noinline)) void leaves(int)
{
	siglongjmp(signal_back, 1);
}

__attribute__((noinline)) void handles(int)
{
	total += 7;
}

__attribute__((noinline)) void step()
{
	total += 11;
}

__attribute__((noinline)) void generates()
{
	for (;;) {
		step();
		swapcontext(&of_generator, &of_main);
	}
}
}

int main()
{
	struct sigaction sa = {};
	stack_t stack = {};

	stack.ss_sp = signal_stack;
	stack.ss_size = sizeof signal_stack;
	sigaltstack(&stack, nullptr);
	sa.sa_handler = handles;
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &sa, nullptr);
	for (int i = 0; i < 200; i++)
		raise(SIGUSR2);
	sa.sa_flags = 0;
	for (int i = 0; i < 1000; i++) {
		if (!setjmp(back))
			dig(9);
		base();
	}
	for (int i = 0; i < 100; i++) {
		try {
			rethrows();
		} catch (int n) {
			total += n;
		}
		base();
	}
	sa.sa_handler = leaves;
	sigaction(SIGUSR1, &sa, nullptr);
	for (int i = 0; i < 200; i++) {
		if (!sigsetjmp(signal_back, 1))
			raise(SIGUSR1);
		base();
	}
	getcontext(&of_generator);
	of_generator.uc_stack.ss_sp = generator_stack;
	of_generator.uc_stack.ss_size = sizeof generator_stack;
	makecontext(&of_generator, generates, 0);
	for (int i = 0; i < 1000; i++) {
		swapcontext(&of_main, &of_generator);
		base();
	}
	std::printf("%ld\n", total);
}
