/* SPDX-License-Identifier: MIT */
/*
 * peak_of FILE COMMAND...: runs the command, writes its peak of memory in KiB to FILE, and ends as
 * it does. A program of its own, because the peak of a child begins at that of its parent.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	const struct rlimit no_core = { 0, 0 };
	struct rusage usage;
	pid_t pid;
	FILE *to;
	int status;

	if (argc < 3 || posix_spawnp(&pid, argv[2], NULL, NULL, argv + 2, environ))
		return 127;
	if (wait4(pid, &status, 0, &usage) != pid)
		return 127;
	to = fopen(argv[1], "w");
	if (!to || fprintf(to, "%ld\n", usage.ru_maxrss) < 0 || fclose(to))
		return 127;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)signal(WTERMSIG(status), SIG_DFL);
	(void)kill(getpid(), WTERMSIG(status));
	return 127;
}
