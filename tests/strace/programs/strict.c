/* SPDX-License-Identifier: MIT */
/*
 * strict WHAT: what seccomp(2) and prctl(2) say of filters, and strict mode. Numbers are those of
 * the kernel: a call that strict mode forbids ends the thread by SIGKILL.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *what, long number)
{
	printf("%s: %ld\n", what, number);
	fflush(stdout);
}

/* In strict mode: no more than write(), and the end of the thread. */
static void end(int status)
{
	if (write(1, "still there\n", 12) != 12)
		status = 6;
	syscall(SYS_exit, status);
}

static void ask(void)
{
	say("PR_GET_SECCOMP", prctl(PR_GET_SECCOMP));
	say("PR_GET_NO_NEW_PRIVS", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	say("PR_GET_NO_NEW_PRIVS, wrong", prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static void be_strict(void)
{
	ask();
	say("strict", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
}

static long int80(long number, long first, long second, long third)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(first), "c"(second), "d"(third)
			 : "memory");
	return result;
}

/* Puts a filter that answers getppid() with @action in front; returns what the kernel says. */
static long filter(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof code / sizeof *code, code };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *go_strict(void *data)
{
	(void)data;
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	(void)!write(1, "one thread\n", 11);
	syscall(SYS_getppid);
	(void)!write(1, "never\n", 6);
	return NULL;
}

/* Returns whether the first thread runs, is stopped or waits for a moment. */
static int is_running(void)
{
	FILE *file = fopen("/proc/self/stat", "re");
	char state = 0;

	if (file && fscanf(file, "%*d %*s %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state != 'S' && state != 'Z';
}

static void *outlive(void *data)
{
	(void)data;
	/* Until the first thread, which tells nobody, is a zombie, or waits for us: on a busy machine somewhat later. */
	usleep(300000);
	for (int i = 0; i < 1000 && is_running(); i++)
		usleep(10000);
	say("the other thread", 1);
	syscall(SYS_exit, 0);
	return NULL;
}

static void use_threads(int is_first)
{
	pthread_t t;

	pthread_create(&t, NULL, is_first ? outlive : go_strict, NULL);
	if (is_first)
		go_strict(NULL);
	pthread_join(t, NULL);
	ask();
}

/* Programs and children have what their makers had. */
static void inherit(const char *path)
{
	int status = 0;

	ask();
	say("PR_SET_NO_NEW_PRIVS, wrong", prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0));
	ask();
	say("PR_SET_NO_NEW_PRIVS", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	ask();
	if (!fork()) {
		ask();
		execl(path, path, "ask", NULL);
	}
	wait(&status);
	say("child", status);
}

static void use_filters(void)
{
	/* As root this needs no rights to be given up. */
	if (!filter(SECCOMP_RET_ALLOW))
		say("root", geteuid());
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	say("bad address", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8));
	say("filter", filter(SECCOMP_RET_TRACE | 7));
	say("nobody traces", syscall(SYS_getppid));
	ask();
	say("strict, too", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "prctl")) {
		be_strict();
		end(5);
	} else if (!strcmp(what, "seccomp")) {
		say("flags", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL));
		say("pointer", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, ""));
		say("strict", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL));
		syscall(SYS_getpid);
		end(5);
	} else if (!strcmp(what, "forbidden")) {
		be_strict();
		prctl(PR_GET_SECCOMP);
		end(5);
	} else if (!strcmp(what, "group")) {
		be_strict();
		_exit(0);
	} else if (!strcmp(what, "i386")) {
		ask();
		say("strict", int80(172, PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0));
		int80(20, 0, 0, 0);
		end(5);
	} else if (!strcmp(what, "clock")) {
		be_strict();
		__asm__ volatile("rdtsc" : : : "eax", "edx");
		end(5);
	} else if (!strcmp(what, "thread") || !strcmp(what, "first")) {
		use_threads(!strcmp(what, "first"));
	} else if (!strcmp(what, "inherit")) {
		inherit(argv[0]);
	} else if (!strcmp(what, "filters")) {
		use_filters();
	} else if (!strcmp(what, "ask")) {
		ask();
	} else {
		return 1;
	}
	return 3;
}
