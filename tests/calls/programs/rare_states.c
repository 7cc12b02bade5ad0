/* SPDX-License-Identifier: MIT */
/*
 * rare_states WHAT: what a program sees of its signals, filters and stacks in states that are rare; says so on its standard output,
 * the same with a tracer and without.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 65536 };

static sigset_t seen;
static unsigned seen_rights;
static volatile int n_seen;
static sigjmp_buf back;

/* The rights of protection keys (rdpkru); 0: this processor has none. */
static unsigned rights(void)
{
	unsigned a = 0, d, has;

	__asm__ volatile("cpuid" : "=c"(has) : "a"(7), "c"(0) : "ebx", "edx");
	if (has & 16) /* OSPKE */
		__asm__ volatile(".byte 0x0f, 0x01, 0xee" : "=a"(a), "=d"(d) : "c"(0));
	return a;
}

static void look(int number)
{
	(void)number;
	seen_rights = rights();
	sigprocmask(SIG_SETMASK, NULL, &seen);
	n_seen++;
}

/* A handler that ends sigsuspend() has the mask of that. */
static void wait_with_mask(void)
{
	sigset_t mask;

	signal(SIGUSR1, look);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	raise(SIGUSR1);
	sigfillset(&mask);
	sigdelset(&mask, SIGUSR1);
	sigdelset(&mask, SIGTERM);
	sigsuspend(&mask);
	printf("INT %d TERM %d rights %#x", sigismember(&seen, SIGINT), sigismember(&seen, SIGTERM), seen_rights);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	printf(" then INT %d USR1 %d\n", sigismember(&mask, SIGINT), sigismember(&mask, SIGUSR1));
}

static void leave(int number)
{
	siglongjmp(back, number);
}

/* A handler that interrupts 32-bit code. */
static void narrow_code(void)
{
	char *code = mmap(NULL, STACK, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	memcpy(code, "\xeb\xfe", 2); /* jmp to itself */
	signal(SIGALRM, leave);
	if (!sigsetjmp(back, 1)) {
		ualarm(20000, 0);
		__asm__ volatile("leaq 60000(%0), %%rsp\n	pushq $0x23\n	pushq %0\n	lretq" ::"r"(code));
	}
	printf("left\n");
}

/* execve() that fails, among signals, where SIGSYS is ignored. */
static void failing_exec(void)
{
	char *const arguments[] = { "x", NULL };
	int n_wrong = 0;

	signal(SIGSYS, SIG_IGN);
	signal(SIGALRM, look);
	for (int i = 0; i < 5000; i++) {
		/* One that repeats would come again before its handler has returned, where that takes long. */
		const struct itimerval soon = { { 0, 0 }, { 0, 10 + i % 90 } };

		setitimer(ITIMER_REAL, &soon, NULL);
		n_wrong += execve("/nonexistent", arguments, arguments) != -1 || errno != ENOENT;
	}
	printf("wrong %d\n", n_wrong);
}

static volatile char selector;

static void dispatched(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	selector = 0;
	n_seen++;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4711;
}

/* A program that has its own calls dispatched (prctl(2), PR_SET_SYSCALL_USER_DISPATCH). */
static void own_dispatch(void)
{
	struct sigaction action = { .sa_sigaction = dispatched, .sa_flags = SA_SIGINFO };
	long result;

	sigaction(SIGSYS, &action, NULL);
	if (prctl(59, 1, 0, 0, &selector)) {
		printf("no dispatch\n");
		return;
	}
	selector = 1;
	result = syscall(SYS_getppid);
	selector = 0;
	printf("%ld %d\n", result, n_seen);
}

/* A filter that kills at rt_sigprocmask(), or strict mode, set on a signal stack. */
static void filter(int number)
{
	struct sock_filter code[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 1),
				      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
				      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 4, code };

	if (number == SIGUSR2) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		(void)!write(1, "strict\n", 7);
		syscall(SYS_exit, 0);
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	n_seen = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	(void)!write(1, "filtered\n", 9);
}

static void filter_on_other_stack(int number)
{
	const stack_t stack = { .ss_sp = mmap(NULL, 4 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
				.ss_size = 4 * STACK };
	struct sigaction action = { .sa_handler = filter, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(number, &action, NULL);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
	(void)!write(1, "end\n", 4);
	_exit(0);
}

static volatile int is_over, n_bad;

static void make_calls(void)
{
	static long parent;

	parent = parent ? parent : getppid();
	for (int i = 0; i < 30; i++)
		n_bad += syscall(SYS_getppid) != parent;
}

/* Makes calls on a stack that nobody has told of. */
static void *on_made_stack(void *unused)
{
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	__asm__ volatile("mov %%rsp, %%rbx\n	mov %0, %%rsp\n	call *%1\n	mov %%rbx, %%rsp" ::"D"(stack + STACK - 64),
			 "S"(make_calls)
			 : "rbx", "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory");
	munmap(stack, STACK);
	return unused;
}

static void *make_threads(void *unused)
{
	pthread_t thread;

	while (!is_over)
		if (!pthread_create(&thread, NULL, on_made_stack, NULL))
			pthread_join(thread, NULL);
	return unused;
}

/* Children by posix_spawn(), which have their parent's memory at first, beside threads on stacks of all kinds. */
static void spawn_beside_threads(void)
{
	char *const nothing[] = { "/bin/true", NULL };
	pthread_t makers[2];
	int n_failed = 0, status;
	pid_t pid;

	for (int i = 0; i < 2; i++)
		pthread_create(&makers[i], NULL, make_threads, NULL);
	for (int i = 0; i < 200; i++)
		n_failed += posix_spawn(&pid, "/bin/true", NULL, NULL, nothing, nothing + 1) || waitpid(pid, &status, 0) != pid ||
			    status;
	is_over = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(makers[i], NULL);
	printf("bad %d failed %d\n", n_bad, n_failed);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "mask"))
		wait_with_mask();
	else if (!strcmp(what, "narrow"))
		narrow_code();
	else if (!strcmp(what, "exec"))
		failing_exec();
	else if (!strcmp(what, "dispatch"))
		own_dispatch();
	else if (!strcmp(what, "filter"))
		filter_on_other_stack(SIGUSR1);
	else if (!strcmp(what, "strict"))
		filter_on_other_stack(SIGUSR2);
	else
		spawn_beside_threads();
	return 0;
}
