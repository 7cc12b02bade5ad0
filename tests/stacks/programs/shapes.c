/* SPDX-License-Identifier: MIT */
/*
 * What compilers make of calls: prologues, epilogues, tail calls, pushed arguments, alloca, large frames,
 * realigned stacks, calls through stubs that are resolved by the first of them, handlers of signals, calls of
 * the vDSO, calls of no address, a child that has the stack until it ends (vfork), and an end in a function that
 * does not return.
 */
#include <alloca.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

volatile int sink;
static volatile sig_atomic_t handled;
static volatile int depth_in_handler;

NOINLINE int leaf(int a)
{
	return a * 3 + sink;
}

NOINLINE int caller(int a)
{
	return leaf(a) + leaf(a + 1);
}

NOINLINE int recursion(int n)
{
	return n ? recursion(n - 1) + leaf(n) : 0;
}

NOINLINE int tail(int a)
{
	sink += a;
	return caller(a);
}

NOINLINE int tail_of_tail(int a, int b)
{
	if (a < b)
		return tail(b);
	sink = caller(a);
	return tail(a);
}

NOINLINE int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + leaf(i) + j;
}

NOINLINE int pushes(int a)
{
	return many(a, 1, 2, 3, 4, 5, a, 7, 8, 9) + many(a, 1, 2, 3, 4, 5, 6, a, 8, 9);
}

NOINLINE int small_alloca(int n)
{
	char *p = alloca((size_t)n);
	int sum = 0;

	memset(p, n, (size_t)n);
	for (int i = 0; i < n; i++)
		sum += leaf(p[i]);
	return sum;
}

NOINLINE int large_frame(int n)
{
	volatile char p[20000];

	p[n] = (char)n;
	p[n + 9000] = 1;
	return leaf(p[n]);
}

NOINLINE int shrink_wrapped(int n)
{
	int sum = 0;

	if (n < 3)
		return n;
	for (int i = 0; i < n; i++)
		sum += caller(i) * leaf(sum);
	return sum;
}

NOINLINE int chosen(int n)
{
	switch (n) {
	case 0:
		return leaf(1);
	case 1:
		return caller(2) + 1;
	case 2:
		return tail(3);
	case 3:
		return pushes(4);
	case 4:
		return small_alloca(5);
	default:
		return shrink_wrapped(n);
	}
}

struct large {
	long v[20];
};

NOINLINE struct large by_value(struct large l, int n)
{
	l.v[n] += leaf(n);
	return l;
}

NOINLINE int variadic(int n, ...)
{
	va_list list;
	int sum = 0;

	va_start(list, n);
	while (n--)
		sum += leaf(va_arg(list, int));
	va_end(list);
	return sum;
}

/* A frame that is aligned more than the stack is. */
NOINLINE int realigned(int n)
{
	_Alignas(64) volatile char p[64];

	p[n] = (char)leaf(n);
	return p[n] + caller(n);
}

/* The same, of a size that is not known: its CFA is found through a saved pointer. */
NOINLINE int realigned_alloca(int n, int a, int b, int c, int d, int e, int f, int g)
{
	_Alignas(64) volatile char p[64];
	char *q = alloca((size_t)n);

	memset(q, g, (size_t)n);
	p[n] = q[n - 1];
	return p[n] + leaf(a + b + c + d + e + f);
}

NOINLINE double floating(double x)
{
	return sin(x) + pow(x, 1.5) + floor(x);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - leaf(*(const int *)b) + sink;
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

NOINLINE int library(int n)
{
	int values[] = { 5, 3, 9, 1, 7, 2 };
	char text[200];
	struct timespec now;
	char *copy;

	(void)compare;
	qsort(values, 6, sizeof *values, compare_ints);
	snprintf(text, sizeof text, "%d %s %5.2f %lx", n, "text", 1.5, 77L);
	copy = strdup(text);
	n += (int)strtol(copy, NULL, 10) + (int)strlen(copy);
	free(copy);
	clock_gettime(CLOCK_MONOTONIC, &now);
	n += (int)(time(NULL) & 1);
	return n + values[0] + (getenv("PATH") != NULL) + (int)getpid() % 2;
}

/* The child calls and returns where the parent's next frames will be. */
NOINLINE int spawns(int n)
{
#ifdef STEPS_ITSELF /* and the child would, too */
	return n;
#else
	const pid_t child = vfork();
	int status = n;

	if (!child)
		_exit(caller(n) & 1);
	while (waitpid(child, &status, 0) < 0)
		;
	return leaf(status);
#endif
}

static void handler(int number)
{
	handled++;
	sink += caller(number);
}

static void handler_with_info(int number, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	handled++;
	sink += small_alloca(number);
	if (!depth_in_handler) {
		depth_in_handler = 1;
		raise(SIGUSR1);
		depth_in_handler = 0;
	}
}

/* Goes on behind a call of no address. */
static void handler_of_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
#ifdef __aarch64__
	mcontext_t *r = &u->uc_mcontext;

	r->pc = r->regs[30];
	r->regs[0] = (unsigned)leaf(3);
#else
	greg_t *r = u->uc_mcontext.gregs;

	r[REG_RIP] = *(greg_t *)r[REG_RSP];
	r[REG_RSP] += 8;
	r[REG_RAX] = leaf(3);
#endif
	(void)number;
	(void)info;
}

static int (*volatile no_address)(int);

NOINLINE int calls_nothing(int n)
{
	return no_address(n) + leaf(n);
}

static char other_stack[1 << 16];

static void install(void)
{
	const stack_t other = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
	struct sigaction a = { .sa_handler = handler };

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &a, NULL);
	a.sa_sigaction = handler_with_info;
	a.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigaction(SIGUSR2, &a, NULL);
	a.sa_sigaction = handler_of_fault;
	a.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &a, NULL);
}

__attribute__((noreturn)) NOINLINE void ends(int n)
{
	sink = caller(n);
	exit(0);
}

/* Its last instruction is a call. */
NOINLINE void does_not_return(int n)
{
	sink = leaf(n);
	ends(n);
}

NOINLINE void behind_it(void)
{
	sink = 1;
}

#if defined STEPS_ITSELF && defined __x86_64__
/* Runs through padding, which no FDE has, into the next function, as glibc's checked string functions do. */
int padded(int n);
__asm__(".text\n"
	".p2align 5\n"
	".type padded, @function\n"
	"padded: .cfi_startproc\n"
	"	test %edi, %edi\n"
	"	.cfi_endproc\n"
	".size padded, . - padded\n"
	"	.nops 23\n"
	".type after_padding, @function\n"
	"after_padding: .cfi_startproc\n"
	"	lea 1(%rdi), %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size after_padding, . - after_padding\n");
#endif

int main(void)
{
	struct large l = { { 1, 2, 3 } };

	sink = tail_of_tail(1, 2) + tail_of_tail(2, 1) + recursion(20) + pushes(1);
	sink += small_alloca(7) + large_frame(3) + shrink_wrapped(2) + shrink_wrapped(5);
	for (int i = 0; i < 7; i++)
		sink += chosen(i);
	l = by_value(l, 2);
	sink += (int)l.v[2] + variadic(3, 1, 2, 3) + realigned(3);
	sink += realigned_alloca(9, 1, 2, 3, 4, 5, 6, 7) + (int)floating(2.5) + library(3);
#if defined STEPS_ITSELF && defined __x86_64__
	sink += padded(3);
#endif
	install();
	raise(SIGUSR1);
	raise(SIGUSR2);
	sink += calls_nothing(4) + spawns(3);
	for (int i = 0; i < 3; i++)
		sink += chosen(i * 2) + tail_of_tail(i, 1) + pushes(i) + realigned(i) + library(i) +
			realigned_alloca(9, 1, 2, 3, 4, 5, 6, 7);
	if (handled < 3)
		behind_it();
	does_not_return(handled);
	behind_it();
}
