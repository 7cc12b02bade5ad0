/* SPDX-License-Identifier: MIT */
/*
 * served [gs|filter]: for each line "calls N" of standard input, one thread calls counted() N times, and says "did N". Meanwhile other
 * threads wait in calls that must not be interrupted, and compute; what goes wrong is said at "end". Further lines: "thread",
 * "fork", "load FILE", "sum".
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic int wrong;
static _Atomic int is_over;
static _Atomic long sums;
static volatile double kept = 1.5;

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) double mixed(double a, double b, long n)
{
	__asm__ volatile("" ::: "memory");
	return a * b + (double)n;
}

/* The same sum, again and again: of registers of all kinds, across calls that may be recorded. */
static void *compute(void *data)
{
	(void)data;
	while (!is_over) {
		double sum = 0;
		long n = 0;

		for (int i = 0; i < 1000; i++) {
			counted();
			sum += mixed(kept, 2, i & 7);
			n += i;
		}
		if (sum != 1000 * 3 + 125 * 28 || n != 499500)
			wrong++;
		sums++;
	}
	return NULL;
}

static void *sleep_long(void *data)
{
	const struct timespec second = { .tv_nsec = 100000000 };

	(void)data;
	while (!is_over)
		if (nanosleep(&second, NULL))
			wrong++;
	return NULL;
}

static void *wait_for_pipe(void *data)
{
	const int *ends = data;
	char byte;

	if (read(ends[0], &byte, 1) != 1)
		wrong++;
	return NULL;
}

static void *wait_for_poll(void *data)
{
	struct pollfd p = { .fd = *(const int *)data, .events = POLLIN };

	if (poll(&p, 1, -1) != 1)
		wrong++;
	return NULL;
}

static void *wait_for_lock(void *data)
{
	pthread_mutex_lock(data);
	pthread_mutex_unlock(data);
	return NULL;
}

static void *call_once(void *data)
{
	counted();
	return data;
}

__attribute__((noinline)) static void do_calls(long n)
{
	for (long i = 0; i < n; i++)
		counted();
	printf("did %ld\n", n);
}

static void do_line(const char *line)
{
	pthread_t t;
	pid_t pid;
	int status;

	if (!strncmp(line, "calls ", 6)) {
		do_calls(strtol(line + 6, NULL, 10));
	} else if (!strcmp(line, "thread")) {
		pthread_create(&t, NULL, call_once, NULL);
		pthread_join(t, NULL);
		puts("joined");
	} else if (!strcmp(line, "fork")) {
		pid = fork();
		if (!pid) {
			counted();
			_exit(3);
		}
		waitpid(pid, &status, 0);
		printf("child %d\n", WEXITSTATUS(status));
	} else if (!strncmp(line, "load ", 5)) {
		void *library = dlopen(line + 5, RTLD_NOW);
		int (*plug)(int) = library ? (int (*)(int))dlsym(library, "plug") : NULL;

		printf("loaded %d\n", plug ? plug(1) : -1);
	} else if (!strcmp(line, "sum")) {
		const long before = sums;

		while (sums < before + 20)
			usleep(1000);
		puts("summed");
	}
	(void)fflush(stdout);
}

/* Whoever makes shared memory, or a mapping that is code, ends the program. */
static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof code / sizeof *code, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		wrong++;
}

int main(int argc, char **argv)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int ends[2];
	pthread_t threads[6];
	char line[4096];

	if (argc > 1 && !strcmp(argv[1], "gs"))
		(void)syscall(SYS_arch_prctl, ARCH_SET_GS, (unsigned long)line);
	if (argc > 1 && !strcmp(argv[1], "filter"))
		filter();
	if (pipe(ends))
		return 99;
	pthread_mutex_lock(&lock);
	pthread_create(&threads[0], NULL, compute, NULL);
	pthread_create(&threads[1], NULL, compute, NULL);
	pthread_create(&threads[2], NULL, sleep_long, NULL);
	pthread_create(&threads[3], NULL, wait_for_pipe, ends);
	pthread_create(&threads[4], NULL, wait_for_poll, ends);
	pthread_create(&threads[5], NULL, wait_for_lock, &lock);
	puts("ready");
	(void)fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "end"))
			break;
		do_line(line);
	}
	is_over = 1;
	pthread_mutex_unlock(&lock);
	if (write(ends[1], "ab", 2) != 2)
		wrong++;
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	printf("%d wrong\n", wrong);
	return 0;
}
