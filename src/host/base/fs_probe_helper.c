/* SPDX-License-Identifier: MIT */
#include "host/base/fs_probe_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/base/proc_stat_read.h"

/* The helper's end of the socket. */
#define TO_PARENT 0

#define IDLE_MS 1000

/* Without close_range(2), descriptors above this stay open. */
#define MOST_CLOSED 65536

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* The helper's own memory. */
struct room {
	char question[FATHOM_HELPER_QUESTION];
	char path[PATH_MAX];
	int32_t error;
	char memory[FATHOM_HELPER_MEMORY];
};

static void say(char what)
{
	(void)send(TO_PARENT, &what, 1, MSG_NOSIGNAL);
}

/* Makes the server of @path answer for the file and read from it; false if that fails. */
static bool touch(const char *path)
{
	struct statfs fs;
	struct stat st;
	char byte;
	int fd;

	if (stat(path, &st) < 0)
		return false;
	/* Opening a device may have effects. */
	if (!S_ISREG(st.st_mode))
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	/* fstatfs(2) always asks the server; the other calls may be answered from a cache. */
	(void)fstatfs(fd, &fs);
	(void)!pread(fd, &byte, 1, 0);
	(void)!pread(fd, &byte, 1, st.st_size ? st.st_size - 1 : 0);
	(void)close(fd);
	return true;
}

/* Looks up each directory on the way to @path, reports each, then touches the file. */
static bool walk(struct room *r, const char *path)
{
	struct stat st;

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		const size_t size = (size_t)(slash - path);

		memcpy(r->path, path, size);
		r->path[size] = '\0';
		if (stat(r->path, &st) < 0)
			return false;
		say(FATHOM_HELPER_ON);
	}
	return touch(path);
}

static void answer_path(struct room *r, size_t size)
{
	const char *path = r->question + 1;
	const char *other = path + strnlen(path, size - 1) + 1;
	const bool has_other = other < r->question + size && *other;

	if (!walk(r, path) && has_other)
		(void)touch(other);
	say(FATHOM_HELPER_DONE);
}

static void answer_memory(struct room *r, size_t size)
{
	const char *path = r->question + 1;
	const size_t length = strnlen(path, size - 1);
	uint64_t place[2] = { 0, 0 };
	ssize_t got = -1;
	int fd;

	if (size >= 1 + length + 1 + sizeof place)
		memcpy(place, path + length + 1, sizeof place);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && place[1] <= sizeof r->memory)
		got = pread(fd, r->memory, (size_t)place[1], (off_t)place[0]);
	r->error = got < 0 ? errno : 0;
	if (fd >= 0)
		(void)close(fd);
	(void)send(TO_PARENT, &r->error, sizeof r->error + (got > 0 ? (size_t)got : 0),
		   MSG_NOSIGNAL);
}

/* Closes all descriptors but the socket. */
static void close_others(void)
{
	if (syscall(SYS_close_range, TO_PARENT + 1, ~0u, 0) == 0)
		return;
	for (int fd = TO_PARENT + 1; fd < MOST_CLOSED; fd++)
		(void)close(fd);
}

static _Noreturn void serve(int socket)
{
	struct pollfd question = { .fd = TO_PARENT, .events = POLLIN };
	struct room *r;

	(void)prctl(PR_SET_NAME, "fathom-helper");
	if (dup2(socket, TO_PARENT) < 0)
		_exit(1);
	close_others();
	r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (r != MAP_FAILED && poll(&question, 1, IDLE_MS) > 0) {
		const ssize_t got = recv(TO_PARENT, r->question, sizeof r->question - 1, 0);

		if (got <= 0)
			break;
		r->question[got] = '\0';
		/* Only the question's paths may touch a file system. */
		(void)!chdir("/");
		if (r->question[0] == 'p')
			answer_path(r, (size_t)got);
		else
			answer_memory(r, (size_t)got);
	}
	_exit(0);
}

/*
 * Forks without the handlers of pthread_atfork(), which belong to the program. The child has no
 * exit signal, so that wait() ignores it.
 */
static pid_t fork_silently(void)
{
	return (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
}

bool fathom_helper_start(struct fathom_helper *ret)
{
	sigset_t all;
	sigset_t before;
	pid_t child;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	/* The program's handlers must not run in the helper. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork_silently();
	if (!child)
		serve(ends[1]);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)close(ends[1]);
	if (child < 0)
		(void)close(ends[0]);
	else
		*ret = (struct fathom_helper){ ends[0], child };
	return child > 0;
}

void fathom_helper_end(struct fathom_helper *h)
{
	if (h->socket < 0)
		return;
	(void)close(h->socket);
	h->socket = -1;
	while (waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

bool fathom_helper_has_ended(pid_t pid)
{
	return waitpid(pid, NULL, __WALL | WNOHANG) != 0;
}

bool fathom_helper_is_running(const struct fathom_helper *h)
{
	struct fathom_proc_stat stat;

	return fathom_proc_stat_of((int)h->pid, &stat) && stat.state == 'R';
}
