/* SPDX-License-Identifier: MIT */
#include "host/tracer/held_child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fathom/session.h"

/* Takes the descriptors of @streams as 0, 1 and 2; false if that fails. */
static bool take_streams(const int32_t *streams)
{
	int copies[3];

	/* One of them may be the place of another one. */
	for (int i = 0; i < 3; i++) {
		copies[i] = fcntl(streams[i], F_DUPFD_CLOEXEC, 3);
		if (copies[i] < 0)
			return false;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(copies[i], i) < 0)
			return false;
	return true;
}

static void restore_signals(void)
{
	sigset_t none;

	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Waits in the child until it is let go, then becomes the program, or reports why it cannot. */
static _Noreturn void become(char *const *argv, const struct fathom_held_child_options *options,
			     int go, int report)
{
	const struct sock_fprog *filter = options->filter;
	const struct fathom_user *user = options->user;
	char path[PATH_MAX];
	/* Before calls are filtered. execvp() would obey PATH. */
	const char *program = argv[0];
	char byte;
	int number;

	if (fathom_is_secure())
		program = fathom_find_program(argv[0], NULL, path, sizeof path) ? path : "";
	/* A process without rights may only filter what gets none. */
	if (read(go, &byte, 1) == 1 && (!options->streams || take_streams(options->streams)) &&
	    (!user || fathom_user_become(user)) &&
	    (!filter || (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
			 !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter, 0, 0))))
		execvp(program, argv);
	number = errno;
	(void)!write(report, &number, sizeof number);
	_exit(127);
}

static fathom_err fail_os(struct fathom_errinfo *reterr, const char *what)
{
	const int number = errno;
	const fathom_err err = fathom_fail(reterr, FATHOM_E_OS, "", 0, what);

	if (reterr)
		reterr->os_errno = number;
	return err;
}

fathom_err fathom_held_child_start(struct fathom_held_child *c, char *const *argv,
				   const struct fathom_held_child_options *options,
				   struct fathom_errinfo *reterr)
{
	int go[2];
	int report[2];

	if (pipe2(go, O_CLOEXEC))
		return fail_os(reterr, "cannot be started: no pipe");
	if (pipe2(report, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return fail_os(reterr, "cannot be started: no pipe");
	}
	*c = (struct fathom_held_child){ fork(), go[1], report[0] };
	if (!c->pid) {
		close(go[1]);
		if (options->restores_signals)
			restore_signals();
		become(argv, options, go[0], report[1]);
	}
	close(go[0]);
	close(report[1]);
	if (c->pid > 0)
		return FATHOM_OK;
	(void)fail_os(reterr, "cannot be started: no process");
	fathom_held_child_close(c);
	return FATHOM_E_OS;
}

fathom_err fathom_held_child_go(struct fathom_held_child *c, struct fathom_errinfo *reterr)
{
	const bool is_gone = write(c->go, "", 1) == 1;
	const fathom_err err = is_gone ? FATHOM_OK : fail_os(reterr, "cannot be started");

	close(c->go);
	c->go = -1;
	return err;
}

void fathom_held_child_close(struct fathom_held_child *c)
{
	if (c->go >= 0)
		close(c->go);
	if (c->report >= 0)
		close(c->report);
	c->go = c->report = -1;
}
