/* SPDX-License-Identifier: MIT */
/*
 * midst OFFSET: for each line of standard input, stops before the instruction OFFSET bytes from the beginning of counted(), in
 * which only NOPs lie, as if called there; says "went on" when it came back.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

static long off;

__attribute__((noipa)) static void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Of a breakpoint: calls counted() at the offset. The stop, which the handler's mask holds back, comes before that. */
static void go_there(int number, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)number;
	(void)info;
	r[REG_RSP] -= 8;
	*(greg_t *)r[REG_RSP] = r[REG_RIP];
	r[REG_RIP] = (greg_t)counted + off;
	(void)raise(SIGTSTP);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = go_there, .sa_flags = SA_SIGINFO };
	int c;

	/* An orphaned process group is not stopped by SIGTSTP (setpgid(2)). */
	(void)setpgid(0, 0);
	off = argc > 1 ? strtol(argv[1], NULL, 0) : 0;
	(void)sigaddset(&action.sa_mask, SIGTSTP);
	(void)sigaction(SIGTRAP, &action, NULL);
	(void)puts("ready");
	(void)fflush(stdout);
	while ((c = getchar()) != EOF) {
		if (c != '\n')
			continue;
		__asm__ volatile("sub $128, %%rsp\n\tint3\n\tadd $128, %%rsp" ::: "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8",
				 "r9", "r10", "r11");
		(void)puts("went on");
		(void)fflush(stdout);
	}
	return 0;
}
