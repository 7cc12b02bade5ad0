/* SPDX-License-Identifier: MIT */
/*
 * Filters of the program beside calls that are dispatched: filters WHAT. For all threads, while
 * others are within calls: "place" asks where calls are made, "return" kills at rt_sigreturn(),
 * "few" kills first what tells of other threads and prctl(). "trap" traps two calls, and tells what
 * its handler finds.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define THREADS 4

static int ends[2];
static _Atomic int n_ready, n_back;

static void *wait_for_byte(void *data)
{
	char byte;

	n_ready++;
	n_back += read(ends[0], &byte, 1) == 1;
	for (int i = 0; i < 10; i++)
		(void)syscall(SYS_getppid);
	n_back++;
	return data;
}

static long filter(struct sock_filter *code, unsigned short n, unsigned flags)
{
	struct sock_fprog program = { .len = n, .filter = code };

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Has calls @first and @second have result @action. */
static long filter_calls(unsigned first, unsigned second, unsigned action, unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return filter(code, sizeof code / sizeof *code, flags);
}

static void filter_all(const char *what)
{
	struct sock_filter place[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, instruction_pointer)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	pthread_t threads[THREADS];
	long results[2] = { 0 };

	(void)!pipe(ends);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, wait_for_byte, NULL);
	while (n_ready < THREADS)
		;
	/* They are within their calls by then, or they read later. */
	usleep(100000);
	if (!strcmp(what, "few"))
		results[0] = filter_calls(SYS_prctl, SYS_newfstatat, SECCOMP_RET_KILL_PROCESS,
					  SECCOMP_FILTER_FLAG_TSYNC);
	if (!strcmp(what, "return"))
		results[1] = filter_calls(SYS_rt_sigreturn, SYS_rt_sigreturn,
					  SECCOMP_RET_KILL_PROCESS, SECCOMP_FILTER_FLAG_TSYNC);
	else
		results[1] = filter(place, 2, SECCOMP_FILTER_FLAG_TSYNC);
	for (int i = 0; i < THREADS; i++)
		(void)!write(ends[1], "x", 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %ld, back: %d\n", results[0], results[1], n_back);
}

static char *top;

static void tell(int number, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	const greg_t *r = u->uc_mcontext.gregs;
	uint64_t mask;
	char here;

	memcpy(&mask, &u->uc_sigmask, sizeof mask);
	printf("%d %d, call %d, errno %d, at its place %d, rax %lld, args %lld %lld, on its stack "
	       "%d, mask %lx\n",
	       number, info->si_code, info->si_syscall, info->si_errno,
	       info->si_call_addr == (void *)r[REG_RIP], r[REG_RAX], r[REG_RDI], r[REG_RDX],
	       top - &here > 0 && top - &here < 8192 && (char *)r[REG_RSP] - &here < 8192,
	       (unsigned long)mask);
}

static void trap(void)
{
	struct sigaction action = { .sa_sigaction = tell, .sa_flags = SA_SIGINFO };
	sigset_t mask;
	char here;

	top = &here + 256;
	sigaction(SIGSYS, &action, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	printf("%ld\n", filter_calls(SYS_getppid, SYS_read, SECCOMP_RET_TRAP | 7, 0));
	/* One that our handler would make, and one that is made on the program's stack. */
	printf("%ld\n", syscall(SYS_getppid, 11, 0, 12));
	printf("%ld\n", syscall(SYS_read, 21, 0, 22));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOFBF, 0);
	printf("%s\n", what);
	fflush(stdout);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!strcmp(what, "trap"))
		trap();
	else
		filter_all(what);
	fflush(stdout);
	_exit(3);
}
