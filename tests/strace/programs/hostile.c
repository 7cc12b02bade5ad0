/* SPDX-License-Identifier: MIT */
/* hostile WHAT [FOLDER]: makes system calls that tracers stumble over, and prints what it got. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096

static void say(const char *what, long result)
{
	printf("%s %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
	fflush(stdout);
}

/* A page behind which there is none. */
static char *last_page(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p + PAGE, PAGE);
	return p;
}

static _Atomic int is_over;
static int file; /* that has a path */

static void *protect(void *page)
{
	while (!is_over) {
		mprotect(page, PAGE, PROT_NONE);
		mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

static void *unmap(void *page)
{
	while (!is_over) {
		munmap(page, PAGE);
		mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, file, 0);
	}
	return NULL;
}

/*
 * Another thread takes the page of a path away, again and again, as @take does, while this one
 * opens it so many times; tells how many results there are that the kernel never gives.
 */
static void change_path(void *(*take)(void *page), long n)
{
	char *page = last_page();
	long n_other = 0;
	pthread_t t;

	strcpy(page, "/nothing/of/this/name");
	file = memfd_create("path", 0);
	(void)!write(file, page, PAGE);
	pthread_create(&t, NULL, take, page);
	for (long i = 0; i < n; i++)
		n_other += open(page, O_RDONLY) != -1 || (errno != ENOENT && errno != EFAULT);
	is_over = 1;
	pthread_join(t, NULL);
	say("other results", n_other);
}

/* The same with the page of the buffers and of what describes them, which are written, and read. */
static void change_buffers(long n)
{
	struct iovec *v = (struct iovec *)(void *)last_page();
	const int to = memfd_create("to", 0);
	long n_other = 0;
	pthread_t t;

	for (int i = 0; i < 16; i++)
		v[i] = (struct iovec){ (char *)v + 1024 + 8 * i, 5 };
	file = memfd_create("page", 0);
	(void)!write(file, v, PAGE);
	(void)!pwrite(to, v, PAGE, 0);
	pthread_create(&t, NULL, unmap, v);
	for (long i = 0; i < n; i++) {
		struct msghdr m = { .msg_iov = v, .msg_iovlen = 16 };
		const long written = pwritev(to, v, 16, 0);
		const long sent = sendmsg(-1, &m, 0);

		n_other += written > 80;
		n_other += sent != -1;
		n_other += preadv(to, v, 16, 0) > 80;
	}
	is_over = 1;
	pthread_join(t, NULL);
	say("other results", n_other);
}

static void use_bad_pointers(void)
{
	char *page = last_page();
	const struct timespec now = { 0, 0 };
	struct iovec *many = calloc(1 << 20, sizeof *many);
	void *const places[] = { NULL, (void *)1, (void *)(UINT64_C(1) << 47), (void *)-1,
				 page + PAGE - 1 };

	memset(page, 'x', PAGE);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		char *p = places[i];

		say("openat", syscall(SYS_openat, AT_FDCWD, p, O_RDONLY));
		say("execve", syscall(SYS_execve, p, p, p));
		say("stat", syscall(SYS_stat, "/", p));
		say("writev", syscall(SYS_writev, 1, p, 2));
		say("sendmsg", syscall(SYS_sendmsg, 1, p, 0));
		say("poll", syscall(SYS_poll, p, 3, 0));
		say("clone3", syscall(SYS_clone3, p, 88));
		say("rt_sigaction", syscall(SYS_rt_sigaction, SIGUSR1, p, p, 8));
		say("futex", syscall(SYS_futex, p, 128 | 9, 1, p, p, 0));
		say("bpf", syscall(SYS_bpf, 5, p, UINT32_MAX));
		say("pselect6", syscall(SYS_pselect6, 1000, p, p, p, &now, p));
	}
	say("writev of many", syscall(SYS_writev, 1, many, 1 << 20));
	say("open of a page", open(page, O_RDONLY));
	say("poll of many", syscall(SYS_poll, many, UINT32_MAX, 0));
}

static void lack_descriptors(void)
{
	const struct rlimit limit = { 3, 3 };

	for (int i = 3; i < 1024; i++)
		close(i);
	setrlimit(RLIMIT_NOFILE, &limit);
	say("open", open("/", O_RDONLY));
	say("dup", dup(1));
	fclose(stdin);
	close(2);
	say("open", open("/", O_RDONLY));
	close(1);
	_exit(7);
}

static void drop(const char *folder)
{
	say("chroot", chroot(folder));
	say("chdir", chdir("/"));
	say("setgid", setgid(65534));
	say("setuid", setuid(65534));
	say("open", open("/etc/passwd", O_RDONLY));
	say("setuid", setuid(0));
}

static volatile sig_atomic_t n_handled;
static volatile int called;

static void count(int number)
{
	(void)number;
	n_handled = n_handled + 1;
}

static void return_42(int number, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	(void)number;
	called = info->si_syscall;
	c->uc_mcontext.gregs[REG_RAX] = 42;
}

static void block_signals(void)
{
	sigset_t all;
	int number = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	raise(SIGSYS);
	raise(SIGTRAP);
	sigpending(&all);
	say("SIGSYS waits", sigismember(&all, SIGSYS));
	say("SIGTRAP waits", sigismember(&all, SIGTRAP));
	sigemptyset(&all);
	sigaddset(&all, SIGSYS);
	sigwait(&all, &number);
	say("SIGSYS comes", number == SIGSYS);
	signal(SIGTRAP, count);
	signal(SIGSYS, count);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(SIGSYS);
	say("handled", n_handled);
}

/* Has the filter answer getppid() with @action. */
static void filter(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof code / sizeof *code, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	say("filter", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	say("getppid", syscall(SYS_getppid));
}

static void trap(void)
{
	struct sigaction a = { .sa_flags = SA_SIGINFO };

	a.sa_sigaction = return_42;
	sigaction(SIGSYS, &a, NULL);
	filter(SECCOMP_RET_TRAP);
	say("it was getppid()", called == SYS_getppid);
}

static void be_strict(void)
{
	say("strict", 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (write(1, "still there\n", 12) != 12)
		syscall(SYS_exit, 6);
	syscall(SYS_exit, 5);
}

/* A kernel that runs no programs of i386 takes int $0x80 for a fault. */
static bool has_calls_of_i386(void)
{
	const pid_t child = fork();
	int status;

	if (!child) {
		long result;

		__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
		_exit(0);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status);
}

static void call_otherwise(void)
{
	static const unsigned char code[] = { 0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3 };
	char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *low = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int (*f)(void);
	long result;

	memcpy(page, code, sizeof code);
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
	memcpy(&f, &page, sizeof f);
	say("code of its own", f() == getpid());
	if (!has_calls_of_i386())
		return;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
	say("int $0x80", result == getpid());
	strcpy(low, "/nothing/of/this/name");
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(5), "b"(low), "c"(0) : "memory");
	say("int $0x80: open", result == -ENOENT);
}

static void *make_children(void *data)
{
	(void)data;
	for (volatile int i = 0; i < 20; i++) {
		int status = 0;
		const pid_t pid = vfork();

		if (!pid)
			_exit(i);
		waitpid(pid, &status, 0);
		if (WEXITSTATUS(status) != i)
			abort();
	}
	return NULL;
}

static void fork_in_threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, make_children, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	say("threads", 4);
}

static void use_uring(void)
{
	struct io_uring_params p = { 0 };
	const long fd = syscall(SYS_io_uring_setup, 4, &p);

	say("io_uring_setup", fd < 0 ? fd : 0);
	say("io_uring_enter", syscall(SYS_io_uring_enter, fd, 0, 0, 0, NULL, 0));
}

/* Calls that a signal interrupts: made again, ended, and restarted by the kernel. */
static void interrupt(void)
{
	/* Again and again: however late a call is made, one of these interrupts it. */
	const struct itimerval often = { { 0, 30000 }, { 0, 30000 } };
	const struct itimerval never = { 0 };
	const struct timespec pause = { 1000, 0 };
	struct sigaction a = { 0 };
	int ends[2];
	char c = 0;

	a.sa_handler = count;
	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	say("nanosleep", nanosleep(&pause, NULL));
	setitimer(ITIMER_REAL, &never, NULL);
	a.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &a, NULL);
	(void)!pipe(ends);
	if (!fork()) {
		usleep(90000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	setitimer(ITIMER_REAL, &often, NULL);
	say("read", read(ends[0], &c, 1));
	setitimer(ITIMER_REAL, &never, NULL);
	say("handled", n_handled > 0);
	wait(NULL);
}

/* Uses the gs base itself, for memory that looks like addresses, and makes calls all the same. */
static void use_gs(void)
{
	static uint64_t own[512];
	uint64_t sum = 0;
	uint64_t at = 0;

	for (size_t i = 0; i < 512; i++)
		own[i] = (uintptr_t)&own[256 + i % 256];
	say("set", (int)syscall(SYS_arch_prctl, 0x1001, own));
	for (int i = 0; i < 1000; i++) {
		const int fd = open("/dev/null", O_RDONLY);

		close(fd);
		sum += fd >= 0 && getppid() > 0;
	}
	say("calls", (int)sum);
	for (size_t i = 0; i < 512; i++)
		at += own[i] == (uintptr_t)&own[256 + i % 256];
	say("words", (int)at);
	__asm__ volatile("movq %%gs:8, %0" : "=r"(at));
	say("own", at == own[1]);
}

/* Children that whoever traces this process traces, too, whether it wants to or not. */
static void share_tracer(void)
{
	for (int i = 0; i < 20; i++) {
		int status = 0;
		/* One that sends no signal, or another one than SIGCHLD, is waited for by __WALL. */
		const int number = i % 3 == 0 ? SIGCHLD : i % 3 == 1 ? SIGUSR1 : 0;
		const long pid = syscall(SYS_clone, CLONE_PTRACE | number, NULL, NULL, NULL, NULL);

		if (!pid)
			_exit(i);
		(void)!waitpid((pid_t)pid, &status, __WALL);
		say("child", WEXITSTATUS(status));
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "path"))
		change_path(protect, 3000);
	else if (!strcmp(what, "unmapped"))
		change_path(unmap, argc > 3 ? atol(argv[3]) : 3000);
	else if (!strcmp(what, "buffers"))
		change_buffers(1000);
	else if (!strcmp(what, "pointers"))
		use_bad_pointers();
	else if (!strcmp(what, "descriptors"))
		lack_descriptors();
	else if (!strcmp(what, "root"))
		drop(argv[2]);
	else if (!strcmp(what, "blocked"))
		block_signals();
	else if (!strcmp(what, "trap"))
		trap();
	else if (!strcmp(what, "errno"))
		filter(SECCOMP_RET_ERRNO | E2BIG);
	else if (!strcmp(what, "kill"))
		filter(SECCOMP_RET_KILL_PROCESS);
	else if (!strcmp(what, "strict"))
		be_strict();
	else if (!strcmp(what, "otherwise"))
		call_otherwise();
	else if (!strcmp(what, "vfork"))
		fork_in_threads();
	else if (!strcmp(what, "uring"))
		use_uring();
	else if (!strcmp(what, "interrupt"))
		interrupt();
	else if (!strcmp(what, "gs"))
		use_gs();
	else if (!strcmp(what, "shared")) {
		signal(SIGUSR1, SIG_IGN);
		share_tracer();
	}
	else
		return 1;
	return 3;
}
