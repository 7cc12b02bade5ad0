/* SPDX-License-Identifier: MIT */
/*
 * Where fathom_unwind() says that stacks end. Stacks that are damaged in all the ways of damage.h are not whole, each in a
 * process of its own; those of fibers, of handlers and of threads that clone() has made are.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "check.h"

#include "../../lib/damage.h"

enum { MAX = 64 };

static uint64_t pcs[MAX];
static uint8_t kinds[MAX];
static struct fathom_unwind_result found;

__attribute__((noinline)) static void look(void)
{
	found = (struct fathom_unwind_result){ .size = sizeof found };
	expect(!fathom_unwind(self, NULL, pcs, kinds, MAX, &found));
}

/* Returns whether each frame is of code. */
static int are_code(void)
{
	char buffer[4096];

	for (size_t i = 0; i < found.n; i++) {
		const struct fathom_answer *a = fathom_self_lookup(self, (struct fathom_pc){ .address = pcs[i], .kind = kinds[i] }, 0, buffer, sizeof buffer);

		if (!a || !a->module)
			return 0;
	}
	return 1;
}

static void look_at_damage(void)
{
	look();
	_exit(found.stop == FATHOM_STOP_ENTRY ? 10 : found.n < 2 ? 11 : !are_code() ? 12 : 0);
}

static void check_damaged(void)
{
	for (int i = 0; i < DAMAGE_ALL; i++) {
		struct damage d;
		int status = 0;
		pid_t child;

		damage_number(i, look_at_damage, &d);
		child = fork();
		if (!child)
			damage_run(&d);
		expect(waitpid(child, &status, 0) == child);
		if (status && n_wrong++ < 10)
			printf("wrong: stack %d, value %d, size %d: status %x\n", d.stack, d.value, d.size, status);
	}
}

/* Whole stacks ------------------------------------------------------------------------------- */

static char room[1 << 16];
static ucontext_t here, there;

__attribute__((noinline)) static int deeper(int n)
{
	volatile char some[100];

	some[0] = (char)n;
	if (n > 0)
		return deeper(n - 1) + some[0];
	look();
	return some[0];
}

static int depth;

static void in_context(void)
{
	(void)deeper(depth);
}

static void on_signal(int number)
{
	(void)number;
	(void)deeper(depth);
}

static void in_context_with_signal(void)
{
	raise(SIGUSR1);
}

static void run_context(void (*fn)(void))
{
	getcontext(&there);
	there.uc_stack.ss_sp = room;
	there.uc_stack.ss_size = sizeof room;
	there.uc_link = &here;
	makecontext(&there, fn, 0);
	swapcontext(&here, &there);
}

/* A thread by clone(), without call frame information; its function ends it. */
long clone_by_hand(int (*fn)(void *), void *top, void *argument);
__asm__(".text\n.globl clone_by_hand\n.type clone_by_hand, @function\nclone_by_hand:\n"
	"	lea -16(%rsi), %rsi\n	mov %rdi, (%rsi)\n	mov %rdx, 8(%rsi)\n	mov $0x50f00, %edi\n"
	"	xor %edx, %edx\n	xor %r10d, %r10d\n	xor %r8d, %r8d\n	mov $56, %eax\n	syscall\n"
	"	test %eax, %eax\n	jnz 1f\n	xor %ebp, %ebp\n	pop %rax\n	pop %rdi\n	call *%rax\n"
	"	mov %eax, %edi\n	xor %eax, %eax\n	mov $60, %al\n	syscall\n	hlt\n"
	"1:	ret\n.size clone_by_hand, .-clone_by_hand\n");

static _Atomic int is_done;

static int in_clone(void *unused)
{
	(void)unused;
	(void)deeper(depth);
	is_done = 1;
	return 0;
}

static void *in_thread(void *unused)
{
	(void)deeper(depth);
	return unused;
}

/* Its last word is a return address of 0; its depth is checked, as what is above it is mapped or not. */
void call_on_top(void *top, int (*fn)(int), int n);
__asm__(".text\n.globl call_on_top\n.type call_on_top, @function\ncall_on_top:\n"
	"	.cfi_startproc\n	push %rbx\n	.cfi_def_cfa_offset 16\n	.cfi_offset rbx, -16\n"
	"	mov %rsp, %rbx\n	mov %rdx, %rcx\n	mov %rdi, %rsp\n	mov %rcx, %rdi\n	push $0\n"
	"	lea first_on_top(%rip), %rax\n	jmp *%rax\n	.cfi_endproc\n"
	".globl first_on_top\n.type first_on_top, @function\nfirst_on_top:\n	.cfi_startproc\n	sub $8, %rsp\n"
	"	.cfi_def_cfa_offset 16\n	call *%rsi\n	.globl after_top\nafter_top:\n	mov %rbx, %rsp\n	pop %rbx\n	ret\n"
	"	.cfi_endproc\n.size first_on_top, .-first_on_top\n.size call_on_top, .-call_on_top\n");

static void check_top(void)
{
	char *mapped = mmap(NULL, 3 * DAMAGE_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(mapped + 2 * DAMAGE_ROOM, DAMAGE_ROOM, PROT_NONE);
	call_on_top(mapped + 2 * DAMAGE_ROOM, deeper, depth);
	expect(found.stop == FATHOM_STOP_ENTRY && found.n == (size_t)depth + 3);
	/* The same, where more words follow. */
	call_on_top(mapped + 2 * DAMAGE_ROOM - 4096, deeper, depth);
	expect(found.stop == FATHOM_STOP_NO_RULE && found.n == (size_t)depth + 3);
}

static void check_whole(void)
{
	const struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	for (depth = 0; depth < 20; depth++) {
		run_context(in_context);
		/* look(), deeper(), in_context(), and the code that runs behind it */
		expect(found.stop == FATHOM_STOP_ENTRY && found.n == (size_t)depth + 4);
		run_context(in_context_with_signal);
		expect(found.stop == FATHOM_STOP_ENTRY && found.n > (size_t)depth + 4);
		expect(!pthread_create(&thread, NULL, in_thread, NULL) && !pthread_join(thread, NULL));
		expect(found.stop == FATHOM_STOP_ENTRY && found.n >= (size_t)depth + 5);
		is_done = 0;
		expect(clone_by_hand(in_clone, room + sizeof room, NULL) > 0);
		while (!is_done)
			sched_yield();
		expect(found.stop == FATHOM_STOP_ENTRY && found.n == (size_t)depth + 4);
		check_top();
	}
}


int main(void)
{
	start(FATHOM_SELF_UNWIND);
	check_whole();
	check_damaged();
	look();
	expect(found.stop == FATHOM_STOP_ENTRY);
	return end();
}
