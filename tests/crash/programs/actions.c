/* SPDX-License-Identifier: MIT */
/* Does with signal actions what runtimes and shells do, and prints what it sees of them. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Names of the C library that its headers do not declare, or no longer. */
int __sigaction(int number, const struct sigaction *action, struct sigaction *old);
void (*bsd_signal(int number, void (*handler)(int)))(int);
void (*sysv_signal(int number, void (*handler)(int)))(int);
void (*__sysv_signal(int number, void (*handler)(int)))(int);
void (*sigset(int number, void (*handler)(int)))(int);

static const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGUSR1 };

#define N (sizeof numbers / sizeof *numbers)

static struct sigaction earlier[64];

__attribute__((noinline, noclone)) static void crash_here(void)
{
	*(volatile int *)0x1230 = 1;
}

static void say(const char *text)
{
	(void)!write(1, text, strlen(text));
}

static void on_signal(int number)
{
	(void)number;
	say("handled\n");
}

static const char *name_of(void (*handler)(int))
{
	return handler == SIG_DFL    ? "default"
	       : handler == SIG_IGN  ? "ignored"
	       : handler == SIG_ERR  ? "error"
	       : handler == SIG_HOLD ? "held"
	       : handler == on_signal ? "handler"
				      : "a stranger";
}

static void print_action(const char *what, const struct sigaction *a)
{
	uint64_t mask;

	memcpy(&mask, &a->sa_mask, sizeof mask);
	printf("%s %s %x %llx\n", what, name_of(a->sa_handler), (unsigned)a->sa_flags,
	       (unsigned long long)mask);
}

static void look(const char *what, int number)
{
	struct sigaction now;

	if (sigaction(number, NULL, &now))
		printf("%s error\n", what);
	else
		print_action(what, &now);
}

/* Each function sets each action, and says what was there before. */
static void way_seen(void)
{
	static void (*const handlers[])(int) = { SIG_DFL, on_signal, SIG_DFL, SIG_IGN, on_signal, SIG_IGN, SIG_DFL, SIG_DFL };
	static const struct {
		const char *name;
		void (*(*set)(int, void (*)(int)))(int);
	} setters[] = {
		{ "signal", signal }, { "bsd_signal", bsd_signal }, { "ssignal", ssignal }, { "sysv_signal", sysv_signal },
		{ "__sysv_signal", __sysv_signal }, { "sigset", sigset },
	};

	for (size_t n = 0; n < N; n++) {
		const int number = numbers[n];

		look("first", number);
		for (size_t s = 0; s < sizeof setters / sizeof *setters; s++)
			for (size_t h = 0; h < sizeof handlers / sizeof *handlers; h++) {
				printf("%s(%d) %s\n", setters[s].name, number, name_of(setters[s].set(number, handlers[h])));
				look("then", number);
			}
		for (size_t h = 0; h < sizeof handlers / sizeof *handlers; h++) {
			struct sigaction a = { .sa_handler = handlers[h], .sa_flags = h % 2 ? SA_ONSTACK : SA_NODEFER };

			sigemptyset(&a.sa_mask);
			sigaddset(&a.sa_mask, SIGUSR2);
			/* One struct may be both. */
			printf("%d\n", (h % 3 ? sigaction : __sigaction)(number, &a, h % 2 ? &a : &earlier[0]));
			print_action("before", h % 2 ? &a : &earlier[0]);
			look("then", number);
			printf("%d", siginterrupt(number, (int)h % 2));
			look(" interrupted", number);
		}
		printf("%d", sigignore(number));
		look(" ignored", number);
		printf("%s", name_of(sigset(number, SIG_HOLD)));
		look(" held", number);
		printf("%s", name_of(sigset(number, SIG_DFL)));
		look(" not held", number);
	}
	for (int wrong = -1; wrong < 70; wrong += 5) {
		printf("%d: %s %s", wrong, name_of(signal(wrong, SIG_DFL)), name_of(sigset(wrong, SIG_DFL)));
		look("", wrong);
	}
	printf("%s %s\n", name_of(signal(SIGKILL, on_signal)), name_of(signal(SIGSEGV, SIG_ERR)));
	exit(0);
}

/* Prints the signal lines of /proc/self/status of a program that inherits nothing else. */
static void print_inherited(const char *how)
{
	char *const command[] = { (char *)"sh", (char *)"-c", (char *)"exec grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status", NULL };
	char *const nothing[] = { NULL };
	posix_spawnattr_t attributes;
	sigset_t some;
	pid_t pid;
	int status;

	printf("%s\n", how);
	fflush(stdout);
	posix_spawnattr_init(&attributes);
	sigemptyset(&some);
	sigaddset(&some, SIGILL);
	posix_spawnattr_setsigdefault(&attributes, &some);
	if (strstr(how, "default"))
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	if (strstr(how, "spawn")) {
		if (posix_spawn(&pid, "/bin/sh", NULL, &attributes, command, nothing))
			exit(3);
	} else {
		pid = strstr(how, "vfork") ? vfork() : fork();
		if (!pid) {
			execve("/bin/sh", command, nothing);
			_exit(3);
		}
	}
	waitpid(pid, &status, 0);
}

/* What children inherit. */
static void way_children(void)
{
	signal(SIGSEGV, SIG_IGN);
	signal(SIGILL, SIG_IGN);
	signal(SIGBUS, on_signal);
	print_inherited("fork");
	print_inherited("vfork");
	print_inherited("spawn");
	print_inherited("spawn, default");
	execve("/bin/sh", (char *[]){ (char *)"sh", (char *)"-c", (char *)"exec grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status", NULL },
	       (char *[]){ NULL });
}

/* A child of vfork() has the parent's memory, not its actions. */
static void way_vfork(void)
{
	const struct sigaction marked = { .sa_handler = SIG_DFL, .sa_flags = SA_NODEFER };
	pid_t pid;
	int status;

	sigaction(SIGFPE, &marked, NULL);
	pid = vfork();
	if (!pid) {
		for (size_t n = 0; n < N; n++)
			signal(numbers[n], SIG_DFL);
		signal(SIGILL, SIG_IGN);
		signal(SIGSEGV, on_signal);
		raise(SIGSEGV);
		_exit(7);
	}
	waitpid(pid, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	for (size_t n = 0; n < N; n++)
		look("parent", numbers[n]);
	fflush(stdout);
	crash_here();
}

/* As a shell: a child of fork() sets everything back. */
static void way_shell(void)
{
	pid_t pid;
	int status;

	signal(SIGSEGV, on_signal);
	pid = fork();
	if (!pid) {
		for (int i = 1; i < 65; i++)
			signal(i, SIG_DFL);
		crash_here();
	}
	waitpid(pid, &status, 0);
	printf("child %d\n", WTERMSIG(status));
	fflush(stdout);
	signal(SIGSEGV, SIG_DFL);
	crash_here();
}

/* As node: all signals are set back at the start. */
static void way_node(void)
{
	struct sigaction a;

	for (int i = 1; i < 32; i++) {
		if (i == SIGKILL || i == SIGSTOP)
			continue;
		memset(&a, 0, sizeof a);
		a.sa_handler = i == SIGPIPE || i == SIGXFSZ ? SIG_IGN : SIG_DFL;
		if (sigaction(i, &a, NULL))
			exit(3);
	}
	crash_here();
}

/* As HotSpot: hands the signal on to a handler that it has found, and has a report of its own else. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	const struct sigaction *old = &earlier[number];

	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(number, info, context);
	else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
		old->sa_handler(number);
	else
		say("# the program's own report\n");
	abort();
}

static void way_hotspot(void)
{
	struct sigaction a = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigfillset(&a.sa_mask);
	for (size_t n = 0; n < N - 1; n++)
		if (numbers[n] != SIGABRT)
			sigaction(numbers[n], &a, &earlier[numbers[n]]);
	crash_here();
}

/* Gives up in a handler that blocks all signals. */
static void on_fault_asserting(int number)
{
	assert(number == 0);
}

static void way_asserting(void)
{
	struct sigaction a = { .sa_handler = on_fault_asserting };

	sigfillset(&a.sa_mask);
	sigaction(SIGSEGV, &a, NULL);
	crash_here();
}

static void on_own_abort(int number)
{
	(void)number;
	say("# the program's own report\n");
}

/* Installs a handler of its own for abort(), and blocks the signal. */
static void way_own_abort(void)
{
	sigset_t all;

	signal(SIGABRT, on_own_abort);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	abort();
}

/* As Python's faulthandler, and as Rust: reports, and restores what was there before. */
static void on_fault_once(int number)
{
	say("# the program's own report\n");
	sigaction(number, &earlier[number], NULL);
	raise(number);
}

static void way_faulthandler(void)
{
	struct sigaction a = { .sa_handler = on_fault_once, .sa_flags = SA_NODEFER | SA_ONSTACK };

	sigaction(SIGSEGV, &a, &earlier[SIGSEGV]);
	crash_here();
}

/* What is ignored stays so, but for faults, which the kernel does not let be ignored. */
static void way_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	raise(SIGSEGV);
	puts("ignored");
	fflush(stdout);
	crash_here();
}

/* A handler that was set by signal() repairs what it can. */
static void way_handled(void)
{
	signal(SIGSEGV, on_signal);
	raise(SIGSEGV);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

/* Needs more stack than a small one for signals has: threads without one run it on their own. */
static void on_signal_deep(int number)
{
	volatile char room[100 << 10];

	memset((char *)room, number, sizeof room);
	say(room[77] == number ? "deep\n" : "?\n");
}

static void *raise_usr1(void *data)
{
	raise(SIGUSR1);
	return data;
}

static void way_deep(void)
{
	struct sigaction a = { .sa_handler = on_signal_deep, .sa_flags = SA_ONSTACK };
	pthread_t thread;

	sigaction(SIGUSR1, &a, NULL);
	raise_usr1(NULL);
	pthread_create(&thread, NULL, raise_usr1, NULL);
	pthread_join(thread, NULL);
	exit(0);
}

static const struct {
	const char *name;
	void (*go)(void);
} ways[] = {
#define WAY(name) { #name, way_##name }
	WAY(seen), WAY(children), WAY(vfork), WAY(shell), WAY(node), WAY(hotspot), WAY(asserting), WAY(own_abort), WAY(faulthandler), WAY(ignored), WAY(handled),
	WAY(deep),
};

int main(int argc, char **argv)
{
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof *ways; i++)
		if (strcmp(ways[i].name, argv[1]) == 0)
			ways[i].go();
	return 97;
}
