/* SPDX-License-Identifier: MIT */
/*
 * peak FILE COMMAND...: runs the command and writes the most memory that it had at one time to FILE,
 * in KiB (getrusage(2)), without huge pages. Small itself: a child starts with the peak of its parent.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	FILE *file;
	pid_t pid;

	if (argc < 3)
		return 125;
	pid = fork();
	if (!pid) {
		/* Where the kernel uses huge pages, it counts up to 2 MiB that nobody asked for. */
		(void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
		execv(argv[2], argv + 2);
		_exit(126);
	}
	if (wait4(pid, &status, 0, &usage) != pid)
		return 125;
	file = fopen(argv[1], "w");
	if (!file || fprintf(file, "%ld\n", usage.ru_maxrss) < 0 || fclose(file))
		return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}
