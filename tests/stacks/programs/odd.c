/* SPDX-License-Identifier: MIT */
/*
 * odd HOW: sleeps in a place whose stack is easily misread. Prints "done" before.
 *
 * handler: in a handler of a signal, on another stack.
 * register: in code without rules whose frame pointer is a register like any other, which leads to
 * memory of zeros, and that jumps where nobody can follow.
 * old-call: in a call of i386's, by int $0x80: its number is that of another call of x86-64.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory that is mapped before the thread's stack, and so above it. */
char *zeros;

/* pause() by its number, and then on to where %rbx says. */
__asm__(".text\n.globl wander\n.type wander, @function\n"
	"wander: push %rbp; push %rbx\n"
	"mov zeros(%rip), %rbp\n"
	"lea 1f(%rip), %rbx\n"
	"1: mov $34, %eax; syscall\n"
	"jmp *%rbx\n"
	".size wander, . - wander\n");
void wander(void);

/* pause() of i386. */
__asm__(".text\n.globl old_call\n.type old_call, @function\n"
	"old_call: .cfi_startproc\n"
	"1: mov $29, %eax; int $0x80\n"
	"jmp 1b\n"
	".cfi_endproc\n.size old_call, . - old_call\n");
void old_call(void);

static void on_signal(int number)
{
	(void)number;
	for (;;)
		pause();
}

__attribute__((noinline)) static void in_handler(void)
{
	static char room[1 << 16];
	const stack_t other = { .ss_sp = room, .ss_size = sizeof room };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	(void)sigaltstack(&other, NULL);
	(void)sigaction(SIGUSR1, &action, NULL);
	(void)raise(SIGUSR1);
}

static void *wander_in_thread(void *unused)
{
	wander();
	return unused;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread;

	puts("done");
	(void)fflush(stdout);
	if (!strcmp(how, "handler"))
		in_handler();
	else if (!strcmp(how, "old-call"))
		old_call();
	if (argc > 1 && strcmp(how, "register") != 0)
		return 1;
	zeros = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pthread_create(&thread, NULL, wander_in_thread, NULL))
		(void)pthread_join(thread, NULL);
	return 0;
}
