/* SPDX-License-Identifier: MIT */
/*
 * again PROGRAM...: runs each PROGRAM, one after the other, all with the same process ID (clone3(2),
 * set_tid). Prints that ID, or 0 if the kernel refuses it.
 */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts a process with the ID @wanted; 0: any. Returns its ID; negative: refused. */
static pid_t start(const char *path, pid_t wanted)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = wanted ? (uintptr_t)&wanted : 0,
				   .set_tid_size = wanted != 0 };
	const long pid = syscall(SYS_clone3, &args, sizeof args);

	if (pid == 0) {
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	return (pid_t)pid;
}

int main(int argc, char **argv)
{
	pid_t first = 0;

	for (int i = 1; i < argc; i++) {
		const pid_t pid = start(argv[i], first);
		int status;

		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
			first = 0;
			break;
		}
		first = pid;
	}
	printf("%d\n", (int)first);
	return 0;
}
