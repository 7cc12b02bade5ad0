/* SPDX-License-Identifier: MIT */
/*
 * steps trace|calls|hook: a child, whose functions or system calls are traced, or whose functions are hooked, is run instruction by instruction. At each one it gets a signal,
 * whose handler has libgcc walk its stack. Prints how many instructions that were, how many of them were in code of ours, and
 * where the functions that were found are not those that have begun.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <fathom/fathom.h>

#define KEPT __attribute__((noinline))
#define UNSEEN KEPT __attribute__((patchable_function_entry(0, 0)))

/* How many of the functions are within their bodies; memory that parent and child share has what was found. */
static volatile int level;
static int calls_kernel;
static struct {
	long n, n_wrong, n_ours;
	char text[200];
} *found;

KEPT int leaf(int n)
{
	level++;
	__asm__ volatile("" : "+r"(n));
	if (calls_kernel-- == 1)
		__asm__ volatile("mov x8, #173\n	svc #0" ::: "x0", "x8"); /* getppid() */
	level--;
	return n + 1;
}

KEPT int middle(int n)
{
	int sum;

	level++;
	sum = leaf(n) + leaf(n + 1) * 2;
	level--;
	return sum;
}

KEPT int top(int n)
{
	int sum;

	level++;
	sum = middle(n) + middle(2 * n);
	level--;
	return sum;
}

UNSEEN int run_all(void)
{
	return top(3) + top(4);
}

/* The functions from the innermost on, and where each ends. */
static const struct {
	const char *name;
	int (*fn)(int);
} functions[] = { { "leaf", leaf }, { "middle", middle }, { "top", top }, { "run_all", (int (*)(int))(void *)run_all } };

struct walk {
	int chain[16];
	int n;
};

UNSEEN static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *data)
{
	struct walk *w = data;
	const unsigned long start = _Unwind_GetRegionStart(context);

	for (int i = 0; i < 4 && w->n < 16; i++)
		if (start == (unsigned long)functions[i].fn || start == (unsigned long)functions[i].fn + 4)
			w->chain[w->n++] = i;
	return _URC_NO_REASON;
}

UNSEEN static void handle(int number, siginfo_t *info, void *context)
{
	const unsigned long pc = ((ucontext_t *)context)->uc_mcontext.pc;
	struct walk w = { .n = 0 };
	int is_right, is_slot = 0;

	(void)number;
	(void)info;
	(void)_Unwind_Backtrace(step, &w);
	/* One more may be at its beginning or end. */
	is_right = w.n == level + 1 || w.n == level + 2;
	for (int i = 0; i < w.n; i++)
		is_right &= w.chain[i] == 4 - w.n + i;
	/* GCC's tables begin behind the NOP at which a function begins. */
	for (int i = 0; i < 3; i++)
		is_slot |= pc == (unsigned long)functions[i].fn;
	found->n++;
	found->n_ours += pc - (unsigned long)leaf > 4096 && pc - (unsigned long)run_all > 4096;
	if (!is_right && !is_slot && !found->n_wrong++)
		(void)snprintf(found->text, sizeof found->text, "pc %#lx, leaf %p, %d found, level %d", pc, (void *)leaf, w.n, level);
	raise(SIGUSR2);
}

UNSEEN static void count(void *data, const struct fathom_hook_call *call)
{
	(void)call;
	++*(long *)data;
}

UNSEEN static struct user_regs_struct registers_of(pid_t pid)
{
	struct user_regs_struct regs = { .pc = 0 };
	struct iovec vec = { &regs, sizeof regs };

	(void)ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &vec);
	return regs;
}

UNSEEN static unsigned long pc_of(pid_t pid)
{
	return registers_of(pid).pc;
}

/* Sends the child, which is at @pc, the signal, lets its handler run to its end, and steps back to @pc. */
UNSEEN static int let_walk(pid_t pid, unsigned long pc)
{
	int status;

	if (ptrace(PTRACE_CONT, pid, NULL, SIGUSR1) || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGUSR2)
		return 0;
	do {
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, 0) || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			return 0;
	} while (pc_of(pid) != pc);
	return 1;
}

/* Returns the instruction at @pc of the child. */
UNSEEN static unsigned op_at(pid_t pid, unsigned long pc)
{
	const long word = ptrace(PTRACE_PEEKTEXT, pid, pc & ~7ul, NULL);

	return (unsigned)((unsigned long)word >> (pc & 4) * 8);
}

UNSEEN static void put_op(pid_t pid, unsigned long pc, unsigned op)
{
	unsigned long word = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, pc & ~7ul, NULL);

	word = (word & ~(0xfffffffful << (pc & 4) * 8)) | (unsigned long)op << (pc & 4) * 8;
	(void)ptrace(PTRACE_POKETEXT, pid, pc & ~7ul, word);
}

/*
 * Goes to the next instruction; of an exclusive load to behind the loop that it begins, as a store would never succeed: a
 * debugger does the same.
 */
UNSEEN static int go_on(pid_t pid, unsigned long *pc)
{
	unsigned long behind = *pc;
	unsigned op = op_at(pid, *pc);
	int status;

	if ((op & 0x3fc00000) == 0x08400000) {
		while ((op_at(pid, behind) & 0x3fc00000) != 0x08000000)
			behind += 4;
		behind += 8;
		op = op_at(pid, behind);
		put_op(pid, behind, 0xd4200000);
		if (ptrace(PTRACE_CONT, pid, NULL, 0) || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			return 0;
		put_op(pid, behind, op);
	} else if (ptrace(PTRACE_SINGLESTEP, pid, NULL, 0) || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
		return 0;
	}
	*pc = pc_of(pid);
	return 1;
}

UNSEEN static void be_child(void)
{
	const struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct walk w = { .n = 0 };

	(void)sigaction(SIGUSR1, &action, NULL);
	/* What is done at a first walk is done. */
	(void)_Unwind_Backtrace(step, &w);
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	(void)run_all();
	kill(getpid(), SIGKILL);
}

UNSEEN int main(int argc, char **argv)
{
	const struct fathom_options one = { .size = sizeof one, .threads = 1 };
	struct fathom *session;
	struct fathom_hook *hook;
	unsigned long pc = 0, end;
	long n_hooked = 0;
	int status;
	pid_t pid;

	(void)argc;
	found = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	calls_kernel = !strcmp(argv[1], "calls");
	if (!strcmp(argv[1], "hook") ? fathom_create(&one, &session, NULL) || fathom_hook_add(session, count, &n_hooked, NULL, &hook, NULL)
				     : fathom_trace_start(calls_kernel ? "--syscalls --no-functions --log /dev/null" : "--log /dev/null", NULL))
		return 1;
	pid = fork();
	if (!pid)
		be_child();
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	/* To the function whose calls count, then instruction by instruction to its end. */
	pc = pc_of(pid);
	while (pc != (unsigned long)run_all)
		if (!go_on(pid, &pc))
			return 1;
	end = registers_of(pid).regs[30];
	while (pc != end && let_walk(pid, pc) && go_on(pid, &pc))
		;
	kill(pid, SIGKILL);
	printf("%ld instructions, %ld of ours, %ld wrong %s\n", found->n, found->n_ours, found->n_wrong, found->text);
	return 0;
}
