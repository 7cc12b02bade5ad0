/* SPDX-License-Identifier: MIT */
/*
 * judged WHAT: filters (seccomp(2)) that kill, or answer otherwise, where calls come from other
 * code than the program's, or where others than the program's own few calls are made. Each run ends
 * as WHAT says, with what it says on standard output.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define LOAD(member)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define RETURN(action)   BPF_STMT(BPF_RET | BPF_K, action)
#define IF(value, n)     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)
#define UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, n, 0)

static uint64_t text_begin, text_end; /* of the C library, which makes all calls */
static uint64_t called_from;

static void say(const char *what)
{
	(void)!write(1, what, strlen(what));
}

static void find_text(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (fgets(line, sizeof line, maps)) {
		unsigned long begin, end;
		char rights[5];

		if (strstr(line, "/libc.so") &&
		    sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3 && rights[2] == 'x') {
			text_begin = begin;
			text_end = end;
		}
	}
	fclose(maps);
}

static long install(struct sock_filter *code, unsigned short n, unsigned flags)
{
	const struct sock_fprog program = { n, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Lets calls be made of the C library's text only; else @action. */
static long from_text_only(uint32_t action, unsigned flags)
{
	struct sock_filter code[] = {
		LOAD(instruction_pointer) /* the low half */,
		BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(action),
	};

	find_text();
	code[1].k = (uint32_t)text_begin;
	code[2].k = (uint32_t)(text_end - text_begin + 1);
	return install(code, sizeof code / sizeof *code, flags);
}

/* Lets write() and exit_group() be made, and what kills nobody; else the process ends. */
static long few_only(int with_return)
{
	struct sock_filter code[] = {
		LOAD(nr),
		UNLESS(SYS_write, 4),
		UNLESS(SYS_exit_group, 3),
		UNLESS(with_return ? SYS_rt_sigreturn : SYS_write, 2),
		UNLESS(with_return ? SYS_getppid : SYS_write, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(code, sizeof code / sizeof *code, 0);
}

/* Answers getppid() with @action, and lets all else be made. */
static long one_not(uint32_t action)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(SYS_getppid, 1),
		RETURN(action),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(code, sizeof code / sizeof *code, 0);
}

/* Ends the process at call @number, and lets all else be made. */
static long for_all_but(int number)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(0, 1),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
	};

	code[1].k = (uint32_t)number;
	return install(code, sizeof code / sizeof *code, 0);
}

static void trapped(int number, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)number;
	called_from = (uintptr_t)info->si_call_addr;
	u->uc_mcontext.gregs[REG_RAX] = info->si_syscall == SYS_getppid ? 42 : 43;
}

/* Calls getppid() from this program's text. */
static long call_here(void)
{
	long result = SYS_getppid;

	__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
	return result;
}

static void *call_in_thread(void *data)
{
	(void)data;
	for (int i = 0; i < 100; i++)
		getppid();
	return NULL;
}

static void *filter_in_thread(void *data)
{
	from_text_only(SECCOMP_RET_KILL_THREAD, 0);
	getppid();
	*(int *)data = 1;
	return NULL;
}

static void in_one_thread(void)
{
	pthread_t t;
	int is_done = 0;

	pthread_create(&t, NULL, filter_in_thread, &is_done);
	pthread_join(t, NULL);
	say(is_done ? "the thread went on\n" : "the thread was killed\n");
	for (int i = 0; i < 10; i++)
		getppid();
}

static void trap(void)
{
	struct sigaction a = { .sa_flags = SA_SIGINFO };
	pthread_t t;

	a.sa_sigaction = trapped;
	sigaction(SIGSYS, &a, NULL);
	find_text();
	one_not(SECCOMP_RET_TRAP);
	say(getppid() == 42 ? "answered\n" : "not answered\n");
	say(called_from - text_begin < text_end - text_begin ? "from the library\n"
							     : "from elsewhere\n");
	pthread_create(&t, NULL, call_in_thread, NULL);
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int status = 0;

	getppid();
	if (!strcmp(what, "place")) {
		say(from_text_only(SECCOMP_RET_KILL_PROCESS, 0) ? "no filter\n" : "filter\n");
		getppid();
		say("went on\n");
		if (!fork())
			_exit(getppid() == 1);
		wait(&status);
		say(status ? "child failed\n" : "child\n");
	} else if (!strcmp(what, "errno")) {
		from_text_only(SECCOMP_RET_ERRNO | EXDEV, 0);
		say(getppid() > 0 ? "went on\n" : "misled\n");
	} else if (!strcmp(what, "trap all")) {
		/* Its own default action: a core. */
		from_text_only(SECCOMP_RET_TRAP, 0);
		say("went on\n");
		call_here();
	} else if (!strcmp(what, "few")) {
		few_only(0);
		say("went on\n");
		_exit(7);
	} else if (!strcmp(what, "few, at the end")) {
		few_only(0);
		say("went on\n");
		exit(7);
	} else if (!strcmp(what, "return")) {
		few_only(1);
		getppid();
		say("went on\n");
		_exit(7);
	} else if (!strcmp(what, "killed")) {
		few_only(0);
		getpid();
		syscall(SYS_getuid);
	} else if (!strcmp(what, "default trap")) {
		one_not(SECCOMP_RET_TRAP);
		getppid();
	} else if (!strcmp(what, "trap")) {
		trap();
	} else if (!strcmp(what, "thread")) {
		in_one_thread();
	} else if (!strcmp(what, "all")) {
		pthread_t t;

		pthread_create(&t, NULL, call_in_thread, NULL);
		pthread_join(t, NULL);
		say(from_text_only(SECCOMP_RET_KILL_PROCESS, SECCOMP_FILTER_FLAG_TSYNC)
			    ? "no filter\n"
			    : "filter\n");
		getppid();
	} else if (!strcmp(what, "vfork")) {
		if (!vfork()) {
			few_only(0);
			_exit(4);
		}
		wait(&status);
		say(WEXITSTATUS(status) == 4 ? "child\n" : "child failed\n");
		getppid();
	} else if (!strcmp(what, "library")) {
		for_all_but(SYS_futex);
		for (int i = 0; i < 20; i++) {
			void *library = dlopen("libm.so.6", RTLD_NOW);

			say(library ? "" : "no library\n");
			dlclose(library);
		}
		say("went on\n");
	} else if (!strcmp(what, "bad")) {
		const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL);

		say(result ? "refused\n" : "taken\n");
		one_not(SECCOMP_RET_ALLOW);
		say(syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8) && errno == EFAULT
			    ? "EFAULT\n"
			    : "no error\n");
		getppid();
	} else {
		return 1;
	}
	return 3;
}
