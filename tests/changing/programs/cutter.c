/* SPDX-License-Identifier: MIT */
/*
 * cutter FILE SIZE CALLS COMMAND...: runs COMMAND and truncates FILE to SIZE while it runs, at a moment
 * that is the same each time: before the system call of number CALLS after the one that mapped FILE,
 * counted over all threads; -1: never. What reads FILE without a call in between sees it as it was.
 *
 * Prints "calls N" as the last line of standard error: how many such calls there were. Its status is
 * the command's; 128 + the number of a signal that ended it. 126: it could not be traced.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT 126

static int is_mapped(pid_t pid, const char *file)
{
	char line[4096 + 128];
	char path[64];
	int found = 0;
	FILE *maps;

	(void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (maps && !found && fgets(line, sizeof line, maps))
		found = strstr(line, file) != NULL;
	if (maps)
		(void)fclose(maps);
	return found;
}

static int run_traced(char **command)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(CANNOT);
	(void)raise(SIGSTOP);
	(void)execv(command[0], command);
	_exit(CANNOT);
}

int main(int argc, char **argv)
{
	const char *file = argv[1];
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
	int mapped = 0;
	long calls = 0;
	int status;
	pid_t first;
	pid_t pid;

	if (argc < 5)
		return CANNOT;
	first = fork();
	if (!first)
		run_traced(argv + 4);
	if (first < 0 || waitpid(first, &status, 0) != first || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, first, NULL, (void *)options) ||
	    ptrace(PTRACE_SYSCALL, first, NULL, NULL))
		return CANNOT;
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		long number = 0;

		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (pid == first)
				break;
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			struct __ptrace_syscall_info info;

			if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof info, &info) <= 0)
				return CANNOT;
			if (!mapped && info.op == PTRACE_SYSCALL_INFO_EXIT)
				mapped = is_mapped(pid, file);
			else if (mapped && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
				 calls++ == atol(argv[3]) && truncate(file, atol(argv[2])))
				return CANNOT;
		} else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			number = WSTOPSIG(status);
		}
		(void)ptrace(PTRACE_SYSCALL, pid, NULL, (void *)number);
	}
	fprintf(stderr, "calls %ld\n", calls);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
