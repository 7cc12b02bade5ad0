/* SPDX-License-Identifier: MIT */
/*
 * whole EACH: has EACH threads of each kind below, with 0 to EACH - 1 calls of deeper(), which wait there. Each is called
 * by the number of its kind. Prints "ready" and the number of threads before. NO_CONTEXT: the C library has no
 * makecontext().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#ifndef NO_CONTEXT
#include <ucontext.h>
#endif
#include <unistd.h>

enum { ROOM = 1 << 16, FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM };

static _Atomic int n_waiting;
static int n_all;

/* Threads that clone() has made have no thread-local storage of their own: they call no function of a library. */
static long kernel(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

__attribute__((noinline, noclone)) int deeper(const char *name, int n)
{
	volatile char room[40];

	room[0] = (char)n;
	if (n > 0)
		return deeper(name, n - 1) + room[0];
	kernel(157, PR_SET_NAME, (long)name, 0);
	++n_waiting;
	for (;;)
		kernel(34, 0, 0, 0); /* pause */
}

/* What a thread does: on a stack of its own. */
struct task {
	const char *name;
	char *room;
	int depth;
};

__attribute__((noinline)) int first(void *task)
{
	const struct task *t = task;

	return deeper(t->name, t->depth) + 1;
}

static void *in_thread(void *task)
{
	first(task);
	return NULL;
}

static _Thread_local struct task *mine;

static void on_signal(int number)
{
	(void)number;
	first(mine);
}

static void raise_on(char *room)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER };
	const stack_t other = { .ss_sp = room, .ss_size = ROOM / 2 };

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
}

static void *in_handler(void *task)
{
	mine = task;
	raise_on(mine->room);
	return NULL;
}

#ifndef NO_CONTEXT
static void context(void)
{
	first(mine);
}

static void context_in_handler(void)
{
	raise_on(mine->room);
}

static void *make_context(void *task, void (*fn)(void), ucontext_t *link)
{
	static _Thread_local ucontext_t here;
	static _Thread_local ucontext_t there;

	mine = task;
	getcontext(&there);
	there.uc_stack.ss_sp = mine->room + ROOM / 2;
	there.uc_stack.ss_size = ROOM / 2;
	there.uc_link = link ? link : &here;
	if (link)
		there.uc_link = NULL;
	makecontext(&there, fn, 0);
	swapcontext(&here, &there);
	return NULL;
}

static void *in_context(void *task)
{
	return make_context(task, context, NULL);
}

static void *in_last_context(void *task)
{
	ucontext_t none;

	return make_context(task, context, &none);
}

static void *in_handler_in_context(void *task)
{
	return make_context(task, context_in_handler, NULL);
}
#endif

/* clone() by hand, without call frame information; the last one does not clear the frame pointer. */
long clone_in_c_library_style(int (*fn)(void *), void *top, void *task);
long clone_short(int (*fn)(void *), void *top, void *task);
void first_on_top(void *task, void *top);

#define CLONE(name, clear, end)                                                                                   \
	".globl " name "\n.type " name ", @function\n" name ":\n"                                                 \
	"	lea -16(%rsi), %rsi\n	mov %rdi, (%rsi)\n	mov %rdx, 8(%rsi)\n	mov $0x50f00, %edi\n"             \
	"	xor %edx, %edx\n	xor %r10d, %r10d\n	xor %r8d, %r8d\n	mov $56, %eax\n	syscall\n"        \
	"	test %eax, %eax\n	jnz 1f\n" clear "	pop %rax\n	pop %rdi\n	call *%rax\n" end                  \
	"1:	ret\n.size " name ", .-" name "\n"

__asm__(".text\n"
	CLONE("clone_in_c_library_style", "	xor %ebp, %ebp\n",
	      "	mov %eax, %edi\n	xor %eax, %eax\n	mov $60, %al\n	syscall\n	hlt\n")
	CLONE("clone_short", "", "	push $60\n	pop %rax\n	syscall\n	hlt\n")
	/* Changes to a stack whose last word is a return address of 0. */
	".globl first_on_top\n.type first_on_top, @function\n"
	"first_on_top:	mov %rsi, %rsp\n	push $0\n	xor %ebp, %ebp\n	jmp first\n"
	".size first_on_top, .-first_on_top\n");

static void *on_top(void *task)
{
	char *room = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(room + ROOM, 4096, PROT_NONE);
	first_on_top(task, room + ROOM);
	return NULL;
}

/* clone() in a function of C: what is said of its caller does not hold in the thread. */
__attribute__((noinline)) static long clone_in_c(void *top, void *task)
{
	void **stack = top;
	long result;
	register long zero10 __asm__("r10") = 0;
	register long zero8 __asm__("r8") = 0;

	stack[-1] = task;
	stack[-2] = (void *)(uintptr_t)first;
	__asm__ volatile("syscall\n	test %%eax, %%eax\n	jnz 1f\n	xor %%ebp, %%ebp\n	pop %%rax\n	pop %%rdi\n"
			 "	call *%%rax\n	mov $60, %%eax\n	xor %%edi, %%edi\n	syscall\n	hlt\n1:\n"
			 : "=a"(result)
			 : "a"(56L), "D"((long)FLAGS), "S"(stack - 2), "d"(0L), "r"(zero10), "r"(zero8)
			 : "rcx", "r11", "memory");
	return result;
}

static void start(int kind, struct task *t)
{
	static void *(*const in_threads[])(void *) = { in_thread, in_handler, on_top,
#ifndef NO_CONTEXT
						       in_context, in_last_context, in_handler_in_context
#endif
	};
	const int n = (int)(sizeof in_threads / sizeof *in_threads);
	pthread_attr_t attr;
	pthread_t thread;
	long made = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 17);
	if (kind < n)
		made = pthread_create(&thread, &attr, in_threads[kind], t) ? -1 : 1;
	else if (kind == n && (made = clone(first, t->room + ROOM, FLAGS, t)) < 0 && errno == EINVAL)
		/* musl's refuses to make threads from 1.2.5 on. */
		made = clone_in_c_library_style(first, t->room + ROOM, t);
	else if (kind == n + 1)
		made = clone_in_c_library_style(first, t->room + ROOM, t);
	else if (kind == n + 2)
		made = clone_short(first, t->room + ROOM, t);
	else if (kind == n + 3)
		made = clone_in_c(t->room + ROOM, t);
	if (made < 0)
		exit(3);
	n_all += made > 0;
}

int main(int argc, char **argv)
{
	const int each = argc > 1 ? atoi(argv[1]) : 1;
	static char names[12][16];

	for (int kind = 0; kind < 12; kind++)
		snprintf(names[kind], sizeof names[kind], "kind %d", kind);
	for (int kind = 0; kind < 12; kind++)
		for (int depth = 0; depth < each; depth++) {
			struct task *t = malloc(sizeof *t);

			*t = (struct task){ names[kind],
					    mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), depth };
			start(kind, t);
		}
	while (n_waiting != n_all)
		usleep(1000);
	printf("ready %d\n", n_all);
	fflush(stdout);
	pause();
	return 0;
}
