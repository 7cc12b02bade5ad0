/* SPDX-License-Identifier: MIT */
/*
 * What is easily broken where system calls are dispatched by SIGSYS: masks, stacks of handlers,
 * actions, children of all kinds; and a region of a program whose threads were there before.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "fathom/trace.h"

extern char **environ;

static volatile sig_atomic_t n_handled;
static char other_stack[65536];
static int on_other_stack;
static int flags_in_handler;
static long n_small;

static void count(int number)
{
	stack_t now;
	char here;

	(void)number;
	on_other_stack = &here >= other_stack && &here < other_stack + sizeof other_stack;
	sigaltstack(NULL, &now);
	flags_in_handler = now.ss_flags;
	(void)getppid();
	n_handled = n_handled + 1;
}

/* Prints what the program has said of its signals. */
static void tell_signals(void)
{
	struct sigaction action = { .sa_handler = count };
	struct sigaction old;
	stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
	stack_t none;
	sigset_t mask;

	sigfillset(&action.sa_mask);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR1, NULL, &old);
	printf("mask of an action: %d %d\n", sigismember(&old.sa_mask, SIGSYS),
	       sigismember(&old.sa_mask, SIGHUP));
	memset(&none, 1, sizeof none);
	sigaltstack(NULL, &none);
	printf("no stack: %d %zu %d\n", none.ss_flags, none.ss_size, none.ss_sp == NULL);
	sigaltstack(&stack, &none);
	printf("no stack: %d\n", none.ss_flags);
	memset(&stack, 0, sizeof stack);
	sigaltstack(NULL, &stack);
	printf("stack: %d %d\n", stack.ss_sp == other_stack, stack.ss_flags);
	raise(SIGUSR1);
	printf("handled: %d %d %d\n", (int)n_handled, on_other_stack, flags_in_handler);
	sigfillset(&mask);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	(void)getppid();
	sigprocmask(SIG_BLOCK, NULL, &mask);
	printf("blocked: %d %d\n", sigismember(&mask, SIGSYS), sigismember(&mask, SIGHUP));
	raise(SIGUSR1);
	printf("pending: %d\n", (int)n_handled);
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	printf("unblocked: %d\n", (int)n_handled);
	sigaction(SIGSYS, NULL, &old);
	printf("SIGSYS: %d\n", old.sa_handler == SIG_DFL);
	sigaction(SIGSYS, &action, NULL);
	sigaction(SIGSYS, NULL, &old);
	kill(getpid(), SIGSYS);
	printf("SIGSYS: %d %d\n", old.sa_handler == count, (int)n_handled);
	signal(SIGSYS, SIG_IGN);
	kill(getpid(), SIGSYS);
	printf("SIGSYS: %d\n", (int)n_handled);
}

static void *read_file(void *data)
{
	char bytes[16];
	const int fd = open("/etc/passwd", O_RDONLY);

	(void)!read(fd, bytes, sizeof bytes);
	close(fd);
	/* Its number is not told: it differs. */
	return data;
}

/* What the process of vfork() does. */
static int spawn_by_vfork(const char *program)
{
	int status = 0;
	const pid_t pid = vfork();

	if (!pid) {
		/* One within the other. */
		if (!vfork())
			_exit(5);
		execl(program, program, (char *)NULL);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

/* Runs a program that this one traces: its tracer waits in vfork() until it has become that. */
static int trace_program(const char *program)
{
	int status = 0;
	const pid_t pid = vfork();

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execl(program, program, (char *)NULL);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return -1;
	ptrace(PTRACE_CONT, pid, NULL, NULL);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static int spawn_by_posix(const char *program)
{
	char *const argv[] = { (char *)(uintptr_t)program, NULL };
	int status = 0;
	pid_t pid = 0;

	posix_spawn(&pid, program, NULL, NULL, argv, environ);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void make_children(void)
{
	pthread_t threads[3];
	int status = 0;

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, read_file, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (!fork()) {
		pthread_create(threads, NULL, read_file, NULL);
		pthread_join(threads[0], NULL);
		_exit(4);
	}
	wait(&status);
	printf("%d\n", trace_program("/bin/false"));
	printf("%d %d %d\n", WEXITSTATUS(status), spawn_by_vfork("/bin/false"),
	       spawn_by_posix("/bin/true"));
}

/* Calls that signals interrupt, with and without SA_RESTART. */
static void interrupt(void)
{
	struct sigaction action = { .sa_handler = count };
	const struct timespec pause = { .tv_nsec = 20000000 };
	timer_t timer;
	int pipe_ends[2];
	char byte;

	(void)!pipe(pipe_ends);
	for (int flags = 0; flags < 2; flags++) {
		struct itimerspec when = { .it_value = { .tv_nsec = 10000000 } };

		action.sa_flags = flags ? SA_RESTART : 0;
		sigaction(SIGALRM, &action, NULL);
		timer_create(CLOCK_MONOTONIC, NULL, &timer);
		timer_settime(timer, 0, &when, NULL);
		if (flags) {
			printf("%d\n", nanosleep(&pause, NULL) == -1 && errno == EINTR);
		} else {
			printf("%d\n", read(pipe_ends[0], &byte, 1) == -1 && errno == EINTR);
		}
		timer_delete(timer);
	}
}

static ucontext_t back_here, small_stack;
static int small_ends[2];

static long call_kernel(long number, long first, long second, long third)
{
	long result = number;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(first), "S"(second), "d"(third)
			 : "rcx", "r11", "memory");
	return result;
}

/* Makes calls where there is no room for the frame of a signal. */
static void call_there(void)
{
	stack_t now;
	char byte;

	for (int i = 0; i < 100; i++)
		call_kernel(SYS_getppid, 0, 0, 0);
	call_kernel(SYS_sigaltstack, 0, (long)&now, 0);
	flags_in_handler = now.ss_flags;
	/* SIGALRM comes meanwhile. */
	call_kernel(SYS_alarm, 1, 0, 0);
	n_small = call_kernel(SYS_read, small_ends[0], (long)&byte, 1);
}

/* As Go does: all handlers on a signal stack, and other stacks that are as small as they can be. */
static void use_small_stack(void)
{
	const size_t page = 4096;
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_sp = other_stack, .ss_size = sizeof other_stack };
	stack_t none = { .ss_flags = SS_DISABLE };
	char *small = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(small, page, PROT_NONE);
	(void)!pipe(small_ends);
	sigaction(SIGALRM, &action, NULL);
	sigaltstack(&stack, NULL);
	getcontext(&small_stack);
	small_stack.uc_stack = (stack_t){ .ss_sp = small + page, .ss_size = page };
	small_stack.uc_link = &back_here;
	makecontext(&small_stack, call_there, 0);
	swapcontext(&back_here, &small_stack);
	printf("called: %d %d %ld %d\n", (int)n_handled, on_other_stack, n_small, flags_in_handler);
	/* A stack is changed while others are used, too. */
	printf("none: %d\n", sigaltstack(&none, NULL));
	stack.ss_size = 1;
	printf("too small: %d %d\n", sigaltstack(&stack, &none), none.ss_flags);
	stack.ss_size = 8192;
	printf("small: %d\n", sigaltstack(&stack, NULL));
	action.sa_flags = 0;
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	pause();
	printf("called: %d %d\n", (int)n_handled, on_other_stack);
}

static int n_found;

/* Makes calls; a signal comes while one of them ends. */
__attribute__((noinline)) static void calls_on(void)
{
	for (int i = 0; i < 10; i++)
		(void)getppid();
}

static _Unwind_Reason_Code look_at(struct _Unwind_Context *context, void *data)
{
	(void)data;
	n_found += _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context)) ==
		   (void *)(uintptr_t)calls_on;
	return _URC_NO_REASON;
}

static void unwind(int number)
{
	(void)number;
	_Unwind_Backtrace(look_at, NULL);
}

static void be_unwound(void)
{
	signal(SIGUSR1, unwind);
	calls_on();
	printf("found: %d\n", n_found);
}

static void *end_process(void *data)
{
	pthread_t thread;
	sigset_t mask;

	/* The first thread ends meanwhile. */
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	sigfillset(&mask);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	(void)getppid();
	pthread_create(&thread, NULL, read_file, NULL);
	pthread_join(thread, NULL);
	printf("joined\n");
	exit(3);
	return data;
}

static void end_first_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, end_process, NULL);
	pthread_exit(NULL);
}

/* What children change of their signals is not their parent's. */
static void keep_signals(void)
{
	struct clone_args wanted = { .flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD };
	sigset_t mask;
	int status = 0;
	long pid;

	signal(SIGSYS, count);
	(void)!system("true");
	kill(getpid(), SIGSYS);
	printf("handled: %d\n", (int)n_handled);
	pid = syscall(SYS_clone3, &wanted, sizeof wanted);
	if (!pid) {
		(void)syscall(SYS_getppid);
		syscall(SYS_exit_group, 4);
	}
	waitpid((pid_t)pid, &status, 0);
	printf("cleared: %d\n", WEXITSTATUS(status));
	sigemptyset(&mask);
	sigaddset(&mask, SIGSYS);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGSYS, SIG_DFL);
	raise(SIGSYS);
	if (!fork()) {
		sigprocmask(SIG_UNBLOCK, &mask, NULL);
		_exit(6);
	}
	wait(&status);
	printf("pending: %d\n", WEXITSTATUS(status));
	sigpending(&mask);
	printf("pending: %d\n", sigismember(&mask, SIGSYS));
}

static sigjmp_buf before;

static void jump(int number)
{
	siglongjmp(before, number);
}

/* Handlers jump away from vfork(), from calls, and from their ends. */
static void jump_away(void)
{
	static volatile int n;
	const struct itimerval often = { { .tv_usec = 300 }, { .tv_usec = 300 } };
	const struct itimerval never = { { 0 }, { 0 } };
	int status = 0;
	pid_t pid;

	signal(SIGALRM, jump);
	if (!sigsetjmp(before, 1))
		setitimer(ITIMER_REAL, &often, NULL);
	while (n < 300) {
		n = n + 1;
		(void)getppid();
		pid = vfork();
		if (!pid)
			_exit(0);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	while (wait(&status) > 0)
		;
	pid = vfork();
	if (!pid)
		_exit(5);
	waitpid(pid, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
}

/* Ends under a filter that kills at all calls but four. */
static void end_filtered(void)
{
	static const int allowed[] = { SYS_write, SYS_exit_group, SYS_rt_sigreturn,
				       SYS_newfstatat };
	struct sock_filter code[2 + 2 * 4 + 1] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .filter = code };
	unsigned short n = 1;

	for (int i = 0; i < 4; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)allowed[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	program.len = n;
	printf("filtered\n");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	printf("still there\n");
	_exit(7);
}

static volatile int is_over;
static volatile int n_ready;
static volatile int n_asked;

static void *call_on(void *data)
{
	n_ready = 1;
	while (!is_over) {
		(void)syscall(SYS_getpgid, 0);
		n_asked++;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return data;
}

/* A thread that was there before calls within the region, too. */
static void trace_region(const char *options, const char *others)
{
	pthread_t thread;

	pthread_create(&thread, NULL, call_on, NULL);
	while (!n_ready)
		;
	(void)syscall(SYS_getpgrp);
	printf("\n");
	printf("%d", fathom_trace_start(options, NULL));
	for (int i = 0; i < 5; i++)
		(void)syscall(SYS_getppid);
	fathom_trace_thread(-1);
	(void)syscall(SYS_getuid);
	fathom_trace_thread(1);
	/* The other one may have no processor for long. */
	for (const int asked = n_asked; n_asked < asked + 6;)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	printf(" %d", fathom_trace_stop(NULL));
	(void)syscall(SYS_getgid);
	printf(" %d", fathom_trace_start(others, NULL));
	(void)syscall(SYS_geteuid);
	printf(" %d\n", fathom_trace_stop(NULL));
	is_over = 1;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "signals"))
		tell_signals();
	else if (!strcmp(what, "children"))
		make_children();
	else if (!strcmp(what, "interrupt"))
		interrupt();
	else if (!strcmp(what, "thread"))
		end_first_thread();
	else if (!strcmp(what, "actions"))
		keep_signals();
	else if (!strcmp(what, "jumps"))
		jump_away();
	else if (!strcmp(what, "unwound"))
		be_unwound();
	else if (!strcmp(what, "small"))
		use_small_stack();
	else if (!strcmp(what, "filtered"))
		end_filtered();
	else if (!strcmp(what, "region"))
		trace_region(argv[2], argv[3]);
	return 3;
}
