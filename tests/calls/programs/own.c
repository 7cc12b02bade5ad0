/* SPDX-License-Identifier: MIT */
/* Has the tracer inside. What it does is said by its first word; it prints what a program can notice. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fathom/fathom.h>

extern char **environ;

__attribute__((noinline)) void leaf(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void work(long n)
{
	while (n--)
		leaf();
}

static void print_words(int argc, char **argv)
{
	int n = 0;

	while (argv[n])
		n++;
	printf("%d %s", n, n == argc ? "whole" : "torn");
	for (int i = 1; i < n; i++)
		printf(" %s", argv[i]);
	printf("\n%s %s %s\n", environ == argv + argc + 1 ? "behind" : "elsewhere", getenv("WORD") ? getenv("WORD") : "-",
	       getauxval(AT_PAGESZ) == 4096 ? "4096" : "?");
}

/* What a reader that is a child, or has descriptors of ours, would show by. */
static void print_traces(void)
{
	const int child = waitpid(-1, NULL, 0);
	const int number = errno;
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	printf("%d %s %d\n", child, number == ECHILD ? "none" : "some", fd);
}

static int begin(const char *words)
{
	struct fathom_errinfo info;
	char text[256];

	if (!fathom_trace_start(words, &info))
		return 1;
	(void)fathom_errinfo_format(&info, text, sizeof text);
	printf("not: %s\n", text);
	return 0;
}

/* Sums the bytes of its text. */
static unsigned long sum(void)
{
	extern const unsigned char __executable_start[] __attribute__((weak));
	extern const unsigned char etext[];
	unsigned long all = 0;

	for (const unsigned char *p = (const unsigned char *)(((size_t)&work) & ~4095ul); p < etext; p++)
		all = all * 31 + *p;
	return all;
}

static volatile int is_over;

static void *turn(void *data)
{
	while (!is_over)
		work(100);
	return data;
}

/* Begins and ends @n times while @n_threads call; text must be what it was. */
static void toggle(int n, const char *words, int n_threads)
{
	const unsigned long before = sum();
	pthread_t threads[100];
	int n_wrong = 0;

	for (int i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, turn, NULL);
	for (int i = 0; i < n; i++) {
		n_wrong += !begin(words);
		usleep((unsigned)n_threads * 1000); /* they run meanwhile */
		n_wrong += sum() == before;
		n_wrong += fathom_trace_stop(NULL) != FATHOM_OK;
		n_wrong += sum() != before;
	}
	is_over = 1;
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	printf("%d wrong\n", n_wrong);
}

static void *scope(void *data)
{
	work(5);
	printf("%d", fathom_trace_thread(+1));
	work(7);
	printf(" %d", fathom_trace_thread(-1));
	work(11);
	return data;
}

static void run_child(char **argv)
{
	const pid_t pid = fork();
	int status;

	if (!pid) {
		execv("/proc/self/exe", argv);
		_exit(1);
	}
	(void)waitpid(pid, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
}

/* Waits until somebody writes a line to standard input, or closes it. */
static void wait_for_line(void)
{
	char c = 0;

	while (c != '\n' && read(STDIN_FILENO, &c, 1) > 0)
		;
}

/* A thread that ends the process when its first thread is gone. */
static void *end_alone(void *data)
{
	pthread_join(*(pthread_t *)data, NULL);
	work(3);
	exit(7);
}

/* Ends as @how says, after two calls of work. */
static int end(const char *how)
{
	static pthread_t self;
	pthread_t thread;

	work(10);
	work(3);
	if (!strcmp(how, "aborted")) {
		abort();
	} else if (!strcmp(how, "killed")) {
		kill(getpid(), SIGKILL);
	} else if (!strcmp(how, "apart")) {
		self = pthread_self();
		pthread_create(&thread, NULL, end_alone, &self);
		pthread_exit(NULL);
	} else if (!strcmp(how, "outlived")) {
		if (!fork()) {
			wait_for_line();
			work(5);
			_exit(0);
		}
		abort();
	}
	return atoi(how);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;

	if (!strcmp(what, "words")) {
		print_words(argc, argv);
		print_traces();
		work(1000);
	} else if (!strcmp(what, "pass")) {
		run_child(argv + 1);
	} else if (!strcmp(what, "part")) {
		work(10);
		begin(argv[2]);
		work(20);
		printf("%d", fathom_trace_thread(-1));
		work(40);
		printf(" %d\n", fathom_trace_thread(+1));
		work(80);
		printf("%s\n", begin(argv[2]) ? "again" : "once");
		fathom_trace_stop(NULL);
		work(160);
		printf("%d %d\n", fathom_trace_stop(NULL) == FATHOM_E_NOT_FOUND, fathom_trace_thread(0));
	} else if (!strcmp(what, "scopes")) {
		begin(argv[2]);
		pthread_create(&thread, NULL, scope, NULL);
		pthread_join(thread, NULL);
		work(13);
		fathom_trace_stop(NULL);
		printf("\n");
	} else if (!strcmp(what, "toggle")) {
		toggle(atoi(argv[3]), argv[2], argc > 4 ? atoi(argv[4]) : 2);
	} else if (!strcmp(what, "end")) {
		return end(argv[2]);
	} else if (!strcmp(what, "wait")) {
		for (int i = 1; i <= 3; i++) {
			work(10 * i);
			puts("done");
			(void)fflush(stdout);
			wait_for_line();
		}
	} else if (!strcmp(what, "null")) {
		/* A call of nothing, as in the document that --ftrace comes from. */
		void (*volatile nothing)(void) = NULL;

		work(1);
		nothing();
	}
	return 0;
}
