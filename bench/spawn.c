/* SPDX-License-Identifier: MIT */
/*
 * spawn STDIN COMMAND...: runs the command once with STDIN as input and its output thrown away, and
 * prints "wall_ns user_us sys_us peak_kib status". A
 * program of its own, because a child's peak memory starts at its parent's, and because times of a
 * millisecond are lost in a larger parent's fork.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long long now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	long long start;
	long long end;
	pid_t pid;
	int status;

	if (argc < 3)
		return 2;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, 0, argv[1], O_RDONLY, 0);
	(void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	(void)posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	start = now_ns();
	if (posix_spawnp(&pid, argv[2], &actions, NULL, argv + 2, environ))
		return 2;
	if (wait4(pid, &status, 0, &usage) != pid)
		return 2;
	end = now_ns();
	printf("%lld %lld %lld %ld %d\n", end - start,
	       usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec,
	       usage.ru_stime.tv_sec * 1000000LL + usage.ru_stime.tv_usec, usage.ru_maxrss,
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}
