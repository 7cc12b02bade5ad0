/* SPDX-License-Identifier: MIT */
/*
 * A store behind a command of the user's, for whatever a client exists. The shell runs
 *
 *	COMMAND get KEY OFFSET SIZE	writes up to SIZE bytes from OFFSET on to standard output
 *	COMMAND put KEY			reads the file from standard input, a regular file
 *
 * and its status says the rest: 0 done, 1 there is no such file, all others: it failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/base/clock.h"
#include "host/base/context.h"
#include "host/file/file.h"
#include "host/store/backend.h"

#define ABSENT 1 /* the status of a command that has no such file */

#define MS_NS   1000000
#define WAIT_NS 5000000

struct command {
	struct fathom_store_backend b; /* first */
	char *script;                  /* for the shell */
};

/* A command that runs. */
struct running {
	pid_t pid;
	int output; /* its standard output */
};

/* Starts the command with @words, NULL-terminated, and @input as its standard input. */
static int start(struct command *c, char *const words[], int input, struct running *ret)
{
	char *argv[16] = { (char *)"sh", (char *)"-c", c->script, (char *)"sh" };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	sigset_t all;
	int pipes[2];
	int number;

	for (int i = 0; words[i]; i++)
		argv[4 + i] = words[i];
	if (pipe2(pipes, O_CLOEXEC))
		return errno;
	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attributes);
	/* A group of its own: what it starts ends with it. */
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
							    POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	number = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	if (!number)
		number = posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
	if (!number)
		number = posix_spawn(&ret->pid, "/bin/sh", &actions, &attributes, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	(void)close(pipes[1]);
	if (number)
		(void)close(pipes[0]);
	ret->output = pipes[0];
	return number;
}

/*
 * Reads what the command writes, up to @size bytes; what is more is read and dropped. Returns false
 * at the deadline.
 */
static bool collect(const struct running *r, uint8_t *to, size_t size, int64_t deadline_ns,
		    size_t *ret_size)
{
	uint8_t rest[4096];
	uint64_t dropped = 0;
	size_t n = 0;

	for (;;) {
		const int64_t left = (deadline_ns - fathom_now_ns()) / MS_NS;
		struct pollfd p = { .fd = r->output, .events = POLLIN };
		ssize_t got;

		if (left <= 0 || dropped > FATHOM_CONTAINER_MAX_FILE)
			return false;
		if (poll(&p, 1, left < 1000 ? (int)left : 1000) <= 0)
			continue;
		got = n < size ? read(r->output, to + n, size - n)
			       : read(r->output, rest, sizeof rest);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		if (n < size)
			n += (size_t)got;
		else
			dropped += (uint64_t)got;
	}
	*ret_size = n;
	return true;
}

/* Waits for the command to end, and ends it at the deadline; returns its status, or -1. */
static int status_of(const struct running *r, bool is_late, int64_t deadline_ns)
{
	int status = 0;
	pid_t ended;

	while (!is_late && (ended = waitpid(r->pid, &status, WNOHANG)) != r->pid) {
		const struct timespec pause = { 0, WAIT_NS };

		/* The program may have its children reaped by others. */
		if (ended < 0 && errno != EINTR)
			return -1;
		is_late = fathom_now_ns() >= deadline_ns;
		(void)nanosleep(&pause, NULL);
	}
	if (is_late) {
		(void)kill(-r->pid, SIGKILL);
		while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
			;
		return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs the command with @words. Its output goes to @to, of @size bytes. */
static fathom_err run(struct command *c, const char *key, char *const words[], int input, void *to,
		      size_t size, int64_t deadline_ns, size_t *ret_size,
		      struct fathom_errinfo *reterr)
{
	struct running r;
	const int number = start(c, words, input, &r);
	bool is_late;
	int status;

	if (number) {
		errno = number;
		return fathom_fail_os(reterr, "/bin/sh");
	}
	is_late = !collect(&r, to, size, deadline_ns, ret_size);
	(void)close(r.output);
	status = status_of(&r, is_late, deadline_ns);
	if (is_late || (status < 0 && fathom_now_ns() >= deadline_ns))
		return fathom_store_fail(&c->b, key, FATHOM_E_TIMEOUT,
					 "the store did not answer in time", reterr);
	if (status == ABSENT)
		return fathom_store_fail(&c->b, key, FATHOM_E_NOT_FOUND,
					 "the store has no index of this build", reterr);
	return status ? fathom_store_fail(&c->b, key, FATHOM_E_OS, "the store's command failed",
					  reterr)
		      : FATHOM_OK;
}

static fathom_err read_bytes(struct fathom_store_backend *b, const char *key, uint64_t off,
			     void *to, size_t size, int64_t deadline_ns, size_t *ret_size,
			     struct fathom_errinfo *reterr)
{
	const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char offset[24];
	char most[24];
	char *words[] = { (char *)"get", (char *)(uintptr_t)key, offset, most, NULL };
	fathom_err err;

	if (input < 0)
		return fathom_fail_os(reterr, "/dev/null");
	(void)snprintf(offset, sizeof offset, "%llu", (unsigned long long)off);
	(void)snprintf(most, sizeof most, "%zu", size);
	err = run((struct command *)b, key, words, input, to, size, deadline_ns, ret_size, reterr);
	(void)close(input);
	return err;
}

static fathom_err put(struct fathom_store_backend *b, const char *key, struct fathom_bytes bytes,
		      const struct fathom_container_header *h, int64_t deadline_ns,
		      bool *ret_stored, struct fathom_errinfo *reterr)
{
	char *words[] = { (char *)"put", (char *)(uintptr_t)key, NULL };
	struct fathom_container_header now;
	size_t size = 0;
	uint8_t none;
	fathom_err err;
	int input;

	*ret_stored = false;
	FATHOM_TRY(fathom_store_read_header(b, key, deadline_ns, &now, ret_stored, reterr));
	if (*ret_stored && fathom_container_compare(&now, h) >= 0) {
		*ret_stored = false;
		return FATHOM_OK;
	}
	input = memfd_create("fathom-store", MFD_CLOEXEC);
	if (input < 0)
		return fathom_fail_os(reterr, "memfd");
	err = fathom_file_write_at(input, 0, bytes.data, (size_t)bytes.size)
		      ? run((struct command *)b, key, words, input, &none, 0, deadline_ns, &size,
			    reterr)
		      : fathom_fail_os(reterr, "memfd");
	(void)close(input);
	*ret_stored = !err;
	return err;
}

static void close_command(struct fathom_store_backend *b)
{
	struct command *c = (struct command *)b;

	free(c->script);
	free(b->place);
	free(b);
}

static const struct fathom_store_backend_ops command_ops = {
	.read = read_bytes,
	.put = put,
	.close = close_command,
};

fathom_err fathom_store_command_open(struct fathom *session, const char *place,
				     struct fathom_store_backend **ret,
				     struct fathom_errinfo *reterr)
{
	struct command *c;

	if (fathom_is_secure())
		return fathom_fail(reterr, FATHOM_E_UNSUPPORTED, "", 0,
				   "no command is run by a program that has more rights than its "
				   "user");
	c = calloc(1, sizeof *c);
	if (!c)
		return fathom_fail_memory(reterr);
	c->b.ops = &command_ops;
	c->b.session = session;
	c->b.is_remote = true;
	c->b.place = strdup(place);
	if (asprintf(&c->script, "%s \"$@\"", place + 1) < 0)
		c->script = NULL;
	if (!c->b.place || !c->script) {
		close_command(&c->b);
		return fathom_fail_memory(reterr);
	}
	*ret = &c->b;
	return FATHOM_OK;
}
