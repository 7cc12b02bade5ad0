/* SPDX-License-Identifier: MIT */
/*
 * signals WHAT: what a program notices of who samples it, in one line.
 *	own	 signals: sends itself 300 SIGWINCH beside work and prints how many have come; a
 *timer of its own that sends SIGPROF: how many; calls without timeouts that end with EINTR: how
 *many blocked	 works with SIGWINCH blocked: how many could be read of it, in two turns filtered
 *forbids itself timers, on pain of death, then starts a thread that works left	 works for a second;
 *then its timers and who traces it, as /proc says timeouts  sleeps 300 times in calls with a
 *timeout beside work: how many ended with EINTR
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "clock_of.h"

#define MS UINT64_C(1000000)

static volatile uint64_t sink;
static volatile sig_atomic_t windows, profiles;
static int there[2], back[2];

static __attribute__((noinline)) void work(uint64_t ns)
{
	const uint64_t end = clock_of(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 2000; i++)
			sink += (uint64_t)i;
}

static void count(int number)
{
	if (number == SIGWINCH)
		windows++;
	else
		profiles++;
}

/* Answers each byte. */
static void *answer(void *data)
{
	char byte;

	while (read(there[0], &byte, 1) == 1) {
		work(MS / 4);
		if (write(back[1], &byte, 1) != 1)
			break;
	}
	return data;
}

/* Works, and waits without a timeout; returns how many waits ended with EINTR. */
static int wait_for_answers(int n)
{
	const int poll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN };
	int interrupted = 0;
	char byte = 0;

	epoll_ctl(poll, EPOLL_CTL_ADD, back[0], &event);
	for (int i = 0; i < n; i++) {
		if (write(there[1], &byte, 1) != 1)
			break;
		work(MS / 4);
		while (epoll_wait(poll, &event, 1, -1) < 0)
			interrupted++;
		if (read(back[0], &byte, 1) != 1)
			break;
	}
	close(there[1]);
	return interrupted;
}

static int own_signals(void)
{
	const struct itimerval every = { { 0, 20000 }, { 0, 20000 } };
	struct sigaction act = { .sa_handler = count, .sa_flags = SA_RESTART };
	pthread_t thread;
	sigset_t all;
	int interrupted;

	sigaction(SIGWINCH, &act, NULL);
	sigaction(SIGPROF, &act, NULL);
	for (int i = 0; i < 300; i++) {
		work(MS);
		raise(SIGWINCH);
	}
	setitimer(ITIMER_PROF, &every, NULL);
	work(1000 * MS);
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL))
		return 1;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	interrupted = wait_for_answers(1000);
	pthread_join(thread, NULL);
	printf("%d %d %d\n", (int)windows, (int)profiles, interrupted);
	return 0;
}

static int blocked(void)
{
	struct signalfd_siginfo info;
	sigset_t window;
	int n[2] = { 0 };
	int fd;

	sigemptyset(&window);
	sigaddset(&window, SIGWINCH);
	sigprocmask(SIG_BLOCK, &window, NULL);
	fd = signalfd(-1, &window, SFD_NONBLOCK);
	for (int turn = 0; turn < 2; turn++) {
		work(300 * MS);
		while (read(fd, &info, sizeof info) == sizeof info)
			n[turn]++;
	}
	printf("%d %d\n", n[0], n[1]);
	return 0;
}

static void *work_there(void *data)
{
	work(300 * MS);
	return data;
}

static int filtered(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	pthread_t thread;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ||
	    pthread_create(&thread, NULL, work_there, NULL))
		return 1;
	pthread_join(thread, NULL);
	printf("filtered\n");
	return 0;
}

static int left(void)
{
	const uint64_t end = clock_of(CLOCK_MONOTONIC) + 1000 * MS;
	char line[256];
	int timers = 0;
	int tracer = 0;
	FILE *f;

	printf("works\n");
	fflush(stdout);
	while (clock_of(CLOCK_MONOTONIC) < end)
		work(10 * MS);
	f = fopen("/proc/self/timers", "r");
	while (f && fgets(line, sizeof line, f))
		timers += !strncmp(line, "ID:", 3);
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		(void)sscanf(line, "TracerPid: %d", &tracer);
	printf("%d %d\n", timers, tracer);
	return 0;
}

static int timeouts(void)
{
	const int poll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;
	int interrupted = 0;

	for (int i = 0; i < 300; i++) {
		work(2 * MS);
		interrupted += epoll_wait(poll, &event, 1, 1) < 0 && errno == EINTR;
	}
	printf("%d\n", interrupted);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	return !strcmp(what, "own")        ? own_signals()
	       : !strcmp(what, "blocked")  ? blocked()
	       : !strcmp(what, "filtered") ? filtered()
	       : !strcmp(what, "left")     ? left()
	       : !strcmp(what, "timeouts") ? timeouts()
					   : 2;
}
