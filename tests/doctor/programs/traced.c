/* SPDX-License-Identifier: MIT */
/* Traces a child, which waits; prints its number. */
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <signal.h>
#include <unistd.h>

int main(void)
{
	const pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (ptrace(PTRACE_SEIZE, child, 0, 0))
		return 1;
	printf("%d\n", child);
	fflush(stdout);
	pause();
	return 0;
}
