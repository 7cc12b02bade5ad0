/* SPDX-License-Identifier: MIT */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fathom/profile.h>
#include <fathom/session.h>

#include "cli/common.h"

int launch_become(char *const *argv)
{
	char path[PATH_MAX];

	if (!fathom_is_secure())
		(void)execvp(argv[0], argv);
	else if (fathom_find_program(argv[0], NULL, path, sizeof path))
		(void)execvp(path, argv);
	else
		errno = ENOENT;
	return errno;
}

int launch_find(int argc, char **argv)
{
	int i = 1;

	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	return i;
}

char **launch_take(const char *verb, int next, int end, int argc, char **argv)
{
	if (next < end) {
		complain(argv[next], "stands before --, and a PROGRAM after it", "either of them");
		exit(EXIT_USAGE);
	}
	if (end + 1 == argc)
		complain_lacking(verb, "no PROGRAM is given");
	return argv + end + 1;
}

static void pass(int number)
{
	(void)number;
}

void launch_watch(int number, void (*handler)(int number))
{
	const struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct sigaction was;

	/* The program inherits which signals are ignored. */
	if (!sigaction(number, NULL, &was) && was.sa_handler != SIG_IGN)
		(void)sigaction(number, &sa, NULL);
}

/* Leaves signal @number to the program. */
static void leave_signal(int number)
{
	launch_watch(number, pass);
}

void launch_leave_signals(void)
{
	leave_signal(SIGINT);
	leave_signal(SIGQUIT);
}

void launch_outlive_signals(void)
{
	static const int numbers[] = { SIGHUP,  SIGTERM, SIGPIPE,  SIGALRM, SIGVTALRM,
				       SIGPROF, SIGUSR1, SIGUSR2,  SIGXCPU, SIGXFSZ,
				       SIGIO,   SIGPWR,  SIGSTKFLT };

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		leave_signal(numbers[i]);
}

int launch_open_log(const char *log)
{
	int fd;

	if (!log)
		return STDERR_FILENO;
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) {
		complain(log, strerror(errno), NULL);
		exit(EXIT_USAGE);
	}
	return fd;
}

bool launch_write(int fd, const char *bytes, size_t size)
{
	while (size) {
		const ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno != EINTR)
			return false;
		bytes += n < 0 ? 0 : n;
		size -= n < 0 ? 0 : (size_t)n;
	}
	return true;
}

int launch_write_piece(void *fd, const void *bytes, size_t size)
{
	return launch_write(*(const int *)fd, bytes, size);
}

int launch_end_as(int status)
{
	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	(void)prctl(PR_SET_DUMPABLE, 0L);
	(void)signal(WTERMSIG(status), SIG_DFL);
	(void)raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

void launch_add_pid(int32_t pid, int32_t **pids, size_t *n)
{
	*pids = must(realloc(*pids, (*n + 1) * sizeof **pids));
	(*pids)[(*n)++] = pid;
}

void launch_add_pids(const char *text, int32_t **pids, size_t *n)
{
	const char *at = text;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (end == at || errno || pid <= 0 || pid > INT32_MAX || (*end && *end != ',')) {
			complain(text, "is no number of a process", "give PID, or PID,PID");
			exit(EXIT_USAGE);
		}
		launch_add_pid((int32_t)pid, pids, n);
		if (!*end)
			return;
		at = end + 1;
	}
}

/* Names of methods, by enum fathom_profile_method. */
static const char *const methods[] = { NULL, "perf-events", "polling" };

uint32_t launch_parse_method(const char *text)
{
	for (uint32_t i = 1; i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(text, methods[i]))
			return i;
	complain(text, "is no method of sampling", "perf-events or polling");
	exit(EXIT_USAGE);
}

const char *launch_method_name(uint32_t method)
{
	return methods[method];
}
