/* SPDX-License-Identifier: MIT */
/*
 * System calls where next to nothing is left of the stack, of threads of all kinds, with and
 * without a signal stack, and handlers that see where they are and what they have interrupted:
 * small_stacks KIND. Each case is a process of its own, of which one line tells.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE  4096
#define SMALL 16384

#define AUTODISARM (1U << 31)

static const size_t lefts[] = { 136, 512, 1024, 2048, 3072, 4096, 6144, 8192 };

/* Signal stacks: bytes, and flags. */
static const struct {
	size_t size;
	unsigned flags;
} stacks[] = { { 0, 0 }, { 2048, 0 }, { 8192, 0 }, { 65536, 0 }, { 65536, AUTODISARM } };

/* Flags of handlers; -1: there is none. */
static const int flags_of[] = { -1, 0, SA_ONSTACK, SA_ONSTACK | SA_NODEFER | SA_RESTART };

/* What one case is. */
static size_t left;
static size_t stack_size;
static unsigned stack_flags;
static int handler_flags;

static char *small, *other;
static char text[4096];
static size_t n_text;
static sigjmp_buf before;
static volatile int jumps;

/* What a handler has seen. */
static struct {
	volatile int n;
	long distance; /* of its context from the end of the signal stack, or from the small one's
			*/
	long at;       /* likewise of the frame of the handler's function */
	stack_t now;
	stack_t before;
	uint64_t mask;
	long result; /* what the interrupted call has in %rax */
	int is_call; /* it stands at, or behind, our own instruction */
	long changed;
	unsigned mxcsr;
} seen;

extern const char call_begin[], call_end[];

/* Makes a call with @sp as the stack pointer. The kernel's own frames go below that. */
__attribute__((noinline)) static long call_at(char *sp, long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result = number;

	__asm__ volatile(".globl call_begin, call_end\n"
			 "movq %%rsp, %%rbx\n"
			 "movq %[sp], %%rsp\n"
			 "call_begin: syscall\n"
			 "call_end: movq %%rbx, %%rsp"
			 : "+a"(result)
			 : [sp] "r"(sp), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rbx", "rcx", "r11", "memory");
	return result;
}

/* Calls vfork() at @sp; the child, which has that stack, too, ends with status 5. */
__attribute__((noinline)) static long vfork_at(char *sp)
{
	long result = SYS_vfork;

	__asm__ volatile("movq %%rsp, %%rbx\n"
			 "movq %[sp], %%rsp\n"
			 "syscall\n"
			 "testq %%rax, %%rax\n"
			 "jnz 1f\n"
			 "movl $110, %%eax\n" /* getppid() */
			 "syscall\n"
			 "movl $5, %%edi\n"
			 "movl $231, %%eax\n" /* exit_group() */
			 "syscall\n"
			 "1: movq %%rbx, %%rsp"
			 : "+a"(result)
			 : [sp] "r"(sp)
			 : "rbx", "rcx", "rdi", "r11", "memory");
	return result;
}

static long call(long number, long a, long b, long c, long d)
{
	return call_at(small + SMALL, number, a, b, c, d);
}

static void tell(const char *name, long value)
{
	n_text += (size_t)snprintf(text + n_text, sizeof text - n_text, " %s=%ld", name, value);
}

/* The end of the stack that @at is on. */
static long from_end(const char *at)
{
	if (at >= other && at <= other + 65536)
		return other + stack_size - at;
	return at >= small && at <= small + SMALL ? small + SMALL + 1000000 - at : -1;
}

static long kernel(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result = number;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static void handle(int number, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	const stack_t none = { .ss_flags = SS_DISABLE };
	const uintptr_t pc = (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
	char here;

	(void)info;
	/* Of the alarms that come while a call waits, the first one that finds it interrupted counts. */
	if (number == SIGALRM && (seen.n || (long)u->uc_mcontext.gregs[REG_RAX] != -EINTR))
		return;
	seen.distance = from_end(context);
	seen.at = from_end(&here) / 256;
	seen.before = u->uc_stack;
	memcpy(&seen.mask, &u->uc_sigmask, sizeof seen.mask);
	seen.result = (long)u->uc_mcontext.gregs[REG_RAX];
	seen.is_call = pc == (uintptr_t)call_end ? 2 : pc == (uintptr_t)call_begin;
	__asm__("stmxcsr %0" : "=m"(seen.mxcsr));
	kernel(SYS_sigaltstack, 0, (long)&seen.now, 0, 0);
	if (number == SIGUSR1) {
		seen.changed = kernel(SYS_sigaltstack, (long)&none, 0, 0, 0);
		/* One handler within the other. */
		kernel(SYS_tgkill, kernel(SYS_getpid, 0, 0, 0, 0), kernel(SYS_gettid, 0, 0, 0, 0),
		       SIGUSR2, 0);
	}
	seen.n = seen.n + 1;
	if (jumps)
		siglongjmp(before, 1);
}

static void tell_seen(const char *name)
{
	tell(name, seen.n);
	tell("distance", seen.distance);
	tell("at", seen.at);
	tell("now", seen.now.ss_flags);
	tell("size", (long)seen.now.ss_size);
	tell("before", seen.before.ss_flags);
	tell("size", (long)seen.before.ss_size);
	tell("own", seen.before.ss_sp == other);
	tell("mask", (long)seen.mask);
	tell("is_call", seen.is_call);
	tell("rax", seen.result);
	tell("changed", seen.changed);
	tell("mxcsr", seen.mxcsr);
	memset(&seen, 0, sizeof seen);
}

static long own_tid(void)
{
	return kernel(SYS_gettid, 0, 0, 0, 0);
}

/* Calls that tell, change and wait. */
static void make_calls(void)
{
	static const char *const nothing[] = { NULL };
	stack_t stack = { .ss_sp = other, .ss_size = 4096 };
	stack_t old = { .ss_size = 0 };
	int status = 0;
	long pid;

	tell("getppid", call(SYS_getppid, 0, 0, 0, 0) == getppid());
	tell("execve", call(SYS_execve, (long)"/nowhere", (long)nothing, (long)nothing, 0));
	tell("stack", call(SYS_sigaltstack, 0, (long)&old, 0, 0));
	tell("flags", old.ss_flags);
	tell("size", (long)old.ss_size);
	tell("short", call(SYS_sigaltstack, (long)&(stack_t){ .ss_size = 1 }, 0, 0, 0));
	tell("bad", call(SYS_sigaltstack, (long)&(stack_t){ .ss_flags = 77 }, 0, 0, 0));
	tell("fault", call(SYS_sigaltstack, 8, 0, 0, 0));
	if (!stack_size) {
		tell("set", call(SYS_sigaltstack, (long)&stack, (long)&old, 0, 0));
		stack.ss_flags = SS_DISABLE;
		tell("unset", call(SYS_sigaltstack, (long)&stack, (long)&old, 0, 0));
		tell("size", (long)old.ss_size);
	}
	pid = vfork_at(small + SMALL);
	tell("vfork", call(SYS_wait4, pid, (long)&status, 0, 0) == pid ? status : -1);
	pid = call(SYS_fork, 0, 0, 0, 0);
	if (!pid)
		call(SYS_exit_group, 6, 0, 0, 0);
	tell("fork", call(SYS_wait4, pid, (long)&status, 0, 0) == pid ? status : -1);
}

/* Calls with which signals come, or that wait for them. */
static void take_signals(void)
{
	uint64_t mask = UINT64_C(1) << (SIGUSR2 - 1), old = 0, none = UINT64_C(1) << (SIGSYS - 1);
	const struct itimerval often = { { .tv_usec = 1000 }, { .tv_usec = 1000 } };
	const struct itimerval never = { { 0 }, { 0 } };
	const struct timespec at_once = { 0 };
	int ends[2];
	char byte;

	call(SYS_tgkill, getpid(), own_tid(), SIGUSR1, 0);
	tell_seen("kill");
	tell("block", call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, (long)&old, 8));
	tell("was", (long)old);
	tell("block", call(SYS_rt_sigprocmask, 77, (long)&mask, (long)&old, 8));
	tell("block", call(SYS_rt_sigprocmask, SIG_BLOCK, 8, 0, 8));
	call(SYS_tgkill, getpid(), own_tid(), SIGUSR2, 0);
	tell("blocked", seen.n);
	tell("pending", call(SYS_rt_sigpending, (long)&old, 8, 0, 0));
	tell("set", (long)old);
	tell("ppoll", call(SYS_ppoll, 0, 0, (long)&at_once, (long)&mask));
	tell("wait", call(SYS_rt_sigtimedwait, (long)&mask, 0, (long)&at_once, 8));
	call(SYS_tgkill, getpid(), own_tid(), SIGUSR2, 0);
	tell("suspend", call(SYS_rt_sigsuspend, (long)&none, 8, 0, 0));
	tell_seen("suspended");
	call(SYS_tgkill, getpid(), own_tid(), SIGUSR2, 0);
	tell("unblock", call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&mask, (long)&old, 8));
	tell("was", (long)old);
	tell_seen("unblocked");
	jumps = 1;
	if (!sigsetjmp(before, 1))
		call(SYS_tgkill, getpid(), own_tid(), SIGUSR2, 0);
	jumps = 0;
	tell_seen("jumped");
	if (!(handler_flags & SA_RESTART) && !pipe(ends)) {
		setitimer(ITIMER_REAL, &often, NULL);
		tell("read", call(SYS_read, ends[0], (long)&byte, 1, 0));
		setitimer(ITIMER_REAL, &never, NULL);
		seen.n = 0;
		tell_seen("read");
	}
}

static void *run_case(void *data)
{
	const stack_t stack = { .ss_sp = other,
				.ss_size = stack_size,
				.ss_flags = (int)stack_flags };
	struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
	double sum = 0.5;
	sigset_t none;

	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	if (stack_size && sigaltstack(&stack, NULL))
		tell("errno", errno);
	if (handler_flags >= 0) {
		action.sa_flags |= handler_flags;
		sigaddset(&action.sa_mask, SIGHUP);
		sigaction(SIGUSR1, &action, NULL);
		sigaction(SIGUSR2, &action, NULL);
		sigaction(SIGALRM, &action, NULL);
	}
	make_calls();
	__asm__ volatile("movsd %0, %%xmm15" ::"m"(sum) : "xmm15");
	__asm__ volatile("ldmxcsr %0" ::"m"((const unsigned){ 0x7f80 }));
	if (handler_flags >= 0)
		take_signals();
	__asm__ volatile("stmxcsr %0" : "=m"(seen.mxcsr));
	__asm__ volatile("movsd %%xmm15, %0" : "=m"(sum));
	tell("mxcsr", seen.mxcsr);
	tell("sum", (long)(sum * 10));
	return data;
}

static int is_done;
static char clone_stack[262144];

/* A thread without thread-local storage of its own. */
static int run_cloned(void *data)
{
	run_case(data);
	__atomic_store_n(&is_done, 1, __ATOMIC_SEQ_CST);
	for (;;)
		kernel(SYS_exit, 0, 0, 0, 0);
	return 0;
}

static ucontext_t back_here, fibre;

static void run_fibre(void)
{
	run_case(NULL);
}

static void run_kind(const char *kind)
{
	static char fibre_stack[262144];
	pthread_t thread;
	sigset_t all;

	/* What comes to the process comes to the thread of the case. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (!strcmp(kind, "pthread")) {
		pthread_create(&thread, NULL, run_case, NULL);
		pthread_join(thread, NULL);
	} else if (!strcmp(kind, "clone")) {
		clone(run_cloned, clone_stack + sizeof clone_stack,
		      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			      CLONE_SYSVSEM,
		      NULL);
		/* No call: both threads have the same thread-local storage. */
		while (!__atomic_load_n(&is_done, __ATOMIC_SEQ_CST))
			__builtin_ia32_pause();
	} else if (!strcmp(kind, "fibre")) {
		getcontext(&fibre);
		fibre.uc_stack = (stack_t){ .ss_sp = fibre_stack, .ss_size = sizeof fibre_stack };
		fibre.uc_link = &back_here;
		makecontext(&fibre, run_fibre, 0);
		swapcontext(&back_here, &fibre);
	} else {
		run_case(NULL);
	}
}

/* Has @left bytes be left below the end of the small stack. */
static void make_small(void)
{
	char *low = mmap(NULL, SMALL + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const size_t pages = (left + PAGE - 1) / PAGE * PAGE;

	mprotect(low + PAGE, pages, PROT_READ | PROT_WRITE);
	small = low + PAGE + left - SMALL;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "main";
	int status;

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	for (size_t i = 0; i < sizeof lefts / sizeof *lefts; i++)
		for (size_t k = 0; k < sizeof stacks / sizeof *stacks; k++)
			for (size_t m = 0; m < sizeof flags_of / sizeof *flags_of; m++) {
				left = lefts[i];
				stack_size = stacks[k].size;
				stack_flags = stacks[k].flags;
				handler_flags = flags_of[m];
				fflush(stdout);
				if (!fork()) {
					make_small();
					other = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
					run_kind(kind);
					printf("%s\n", text);
					fflush(stdout);
					_exit(3);
				}
				wait(&status);
				printf("%zu %zu %d: %d\n", i, k, handler_flags, status);
			}
	return 3;
}
