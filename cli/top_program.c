/* SPDX-License-Identifier: MIT */
/* PROGRAM of fathom top: what it reads and writes, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fathom/stack.h>

#include "cli/launch.h"
#include "cli/top.h"

/* How long it may take to end at SIGTERM, in ns; and after which time somebody is told. */
#define MOST_ENDING_NS  UINT64_C(5000000000)
#define QUIET_ENDING_NS UINT64_C(500000000)

static int open_stream(const char *path, int flags)
{
	const int fd = open(path, flags | O_CLOEXEC, 0666);

	if (fd < 0) {
		complain(path, strerror(errno),
			 flags & O_CREAT ? common_write_remedy(errno) : NULL);
		exit(EXIT_USAGE);
	}
	return fd;
}

/* Returns whether @fd is the terminal's, which pictures and keys need, or is not open. */
static bool is_of_terminal(int fd)
{
	return isatty(fd) || fcntl(fd, F_GETFD) < 0;
}

void top_program_open(struct top *t, const char *output)
{
	const bool is_appended = output != NULL;
	const int out = is_appended ? open_stream(output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND)
				    : open_stream("/dev/null", O_WRONLY);

	t->streams[0] =
		is_of_terminal(STDIN_FILENO) ? open_stream("/dev/null", O_RDONLY) : STDIN_FILENO;
	t->streams[1] = out;
	t->streams[2] = is_appended || is_of_terminal(STDERR_FILENO) ? out : STDERR_FILENO;
	t->options.streams = t->streams;
	t->options.pid = &t->program;
	t->options.flags |= FATHOM_RECORD_RESTORE_SIGNALS | FATHOM_RECORD_LEAVE_PROGRAM;
}

bool top_program_has_ended(const struct top *t)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)t->program, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid == t->program;
}

/* Takes that the program has ended with @status, and says it in words. */
static void take_status(struct top *t, int status)
{
	const char *name = WIFSIGNALED(status) ? fathom_signal_name(WTERMSIG(status)) : NULL;

	t->has_status = true;
	t->status = status;
	if (!WIFSIGNALED(status))
		(void)snprintf(t->how, sizeof t->how, "exit status %d", WEXITSTATUS(status));
	else if (name)
		(void)snprintf(t->how, sizeof t->how, "killed by %s", name);
	else
		(void)snprintf(t->how, sizeof t->how, "killed by signal %d", WTERMSIG(status));
}

/* Returns whether the program has been waited for, without waiting. */
static bool has_waited(struct top *t)
{
	int status = 0;
	const pid_t found = waitpid(t->program, &status, WNOHANG);

	/* The recorder has waited for it. */
	if (found < 0 && errno == ECHILD)
		status = t->result.status;
	if (found)
		take_status(t, status);
	return found != 0;
}

bool top_program_follow(struct top *t)
{
	if (!t->program || t->has_status || has_waited(t))
		return false;
	/* The next recording is of a process that runs already. */
	if (t->options.argv)
		launch_add_pid(t->program, &t->pids, &t->n_pids);
	t->options.argv = NULL;
	t->options.streams = NULL;
	t->options.pid = NULL;
	t->options.pids = t->pids;
	t->options.n_pids = t->n_pids;
	return true;
}

void top_program_end(struct top *t)
{
	const uint64_t begun = top_now();
	bool is_told = false;
	bool has_signal = false;
	bool has_input;

	if (!t->program || t->has_status || has_waited(t))
		return;
	(void)kill(t->program, SIGTERM);
	/* One that is stopped would not see it. */
	(void)kill(t->program, SIGCONT);
	while (!has_waited(t)) {
		struct signalfd_siginfo info;
		const uint64_t now = top_now();

		if (now - begun > MOST_ENDING_NS || has_signal) {
			fprintf(stderr,
				"fathom: PID %" PRId32 " has not ended at SIGTERM: it runs on\n",
				t->program);
			return;
		}
		if (!is_told && now - begun > QUIET_ENDING_NS) {
			fprintf(stderr, "fathom: PID %" PRId32 " is to end (Ctrl-C: it runs on)\n",
				t->program);
			is_told = true;
		}
		top_wait(t->signals, -1, now + 20000000, &has_signal, &has_input);
		has_signal = has_signal && read(t->signals, &info, sizeof info) == sizeof info &&
			     info.ssi_signo != SIGWINCH && info.ssi_signo != SIGTSTP;
	}
}
