/* SPDX-License-Identifier: MIT */
/*
 * Threads asleep in each kind of call that blocks: a stop ends none early, unless the caller
 * insists.
 */
#include "unit.h"

#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "victim.h"

/* What a stop without insisting does to a call. */
enum effect {
	NOTHING,
	RESTART, /* by us */
	LEFT     /* alone */
};

/* A call that blocks, to be made again and again. */
struct blocked {
	const char *name;
	long (*call)(int fd);
	int (*prepare)(void); /* of a descriptor; NULL: none */
	enum effect effect;
	bool skips; /* when the call is not there */
};

static const struct timespec ten = { .tv_sec = 1000 };

static long call_nanosleep(int fd)
{
	(void)fd;
	return nanosleep(&ten, NULL);
}

static long call_futex(int fd)
{
	(void)fd;
	return syscall(SYS_futex, &told->child, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long call_futex_timed(int fd)
{
	(void)fd;
	return syscall(SYS_futex, &told->child, FUTEX_WAIT, 0, &ten, NULL, 0);
}

static long call_read(int fd)
{
	char byte;

	return read(fd, &byte, 1);
}

static int make_pipe(void)
{
	int fds[2];

	return pipe(fds) ? -1 : fds[0];
}

static int make_epoll(void)
{
	return epoll_create1(0);
}

static long call_epoll(int fd)
{
	struct epoll_event e;

	return epoll_wait(fd, &e, 1, -1);
}

static long call_epoll_timed(int fd)
{
	struct epoll_event e;

	return epoll_wait(fd, &e, 1, 1000000);
}

static long call_epoll_masked(int fd)
{
	struct epoll_event e;
	sigset_t mask;

	sigemptyset(&mask);
	return epoll_pwait(fd, &e, 1, -1, &mask);
}

static long call_epoll2(int fd)
{
	struct epoll_event e;

	return syscall(441, fd, &e, 1, NULL, NULL, 8);
}

static long call_epoll2_timed(int fd)
{
	struct epoll_event e;

	return syscall(441, fd, &e, 1, &ten, NULL, 8);
}

static long call_poll(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, -1);
}

static long call_poll_timed(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, 1000000);
}

static long call_select(int fd)
{
	fd_set set;
	struct timeval t = { .tv_sec = 1000 };

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &t);
}

static long wait_for_signal(const struct timespec *t)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return sigtimedwait(&set, NULL, t);
}

static long call_signal(int fd)
{
	(void)fd;
	return wait_for_signal(NULL);
}

static long call_signal_timed(int fd)
{
	(void)fd;
	return wait_for_signal(&ten);
}

static long call_pause(int fd)
{
	(void)fd;
	return pause();
}

static int make_semaphore(void)
{
	const int id = semget(IPC_PRIVATE, 1, 0600);

	told->child = id;
	return id;
}

static long call_semop(int fd)
{
	struct sembuf b = { .sem_op = -1 };

	return semop(fd, &b, 1);
}

static long call_semop_timed(int fd)
{
	struct sembuf b = { .sem_op = -1 };

	return semtimedop(fd, &b, 1, &ten);
}

static long call_accept(int fd)
{
	return accept(fd, NULL, NULL);
}

static int make_listener(void)
{
	const struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return bind(fd, (const struct sockaddr *)&a, sizeof a.sun_family) || listen(fd, 1) ? -1
											   : fd;
}

static int with_timeout(int fd, int option)
{
	const struct timeval t = { .tv_sec = 1000 };

	return setsockopt(fd, SOL_SOCKET, option, &t, sizeof t) ? -1 : fd;
}

static int make_timed_listener(void)
{
	return with_timeout(make_listener(), SO_RCVTIMEO);
}

static int make_pair(void)
{
	int fds[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) ? -1 : fds[0];
}

static int make_timed_pair(void)
{
	return with_timeout(make_pair(), SO_RCVTIMEO);
}

/* A timeout to send does not concern who receives. */
static int make_pair_timed_to_send(void)
{
	return with_timeout(make_pair(), SO_SNDTIMEO);
}

static long call_recv(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0);
}

/* Makes the socket full, so that who writes waits. */
static int make_full_pair(void)
{
	const int fd = make_timed_pair();
	char bytes[4096] = { 0 };

	while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		;
	return with_timeout(fd, SO_SNDTIMEO);
}

static long call_send(int fd)
{
	char bytes[4096] = { 0 };

	return send(fd, bytes, sizeof bytes, 0);
}

static int make_queue(void)
{
	const int id = msgget(IPC_PRIVATE, 0600);

	told->child = id;
	return id;
}

static long call_msgrcv(int fd)
{
	char message[64];

	return msgrcv(fd, message, 8, 0, 0);
}

static int make_aio(void)
{
	static aio_context_t context;

	if (syscall(SYS_io_setup, 4, &context))
		_exit(3);
	told->sp = context;
	return 0;
}

static long call_aio(int fd)
{
	struct io_event e;

	(void)fd;
	return syscall(SYS_io_getevents, (aio_context_t)told->sp, 1L, 1L, &e, NULL);
}

static long call_aio_timed(int fd)
{
	struct io_event e;

	(void)fd;
	return syscall(SYS_io_getevents, (aio_context_t)told->sp, 1L, 1L, &e, &ten);
}

static const struct blocked blocking[] = {
	{ "nanosleep", call_nanosleep, NULL, NOTHING, false },
	{ "futex", call_futex, NULL, NOTHING, false },
	{ "futex with a timeout", call_futex_timed, NULL, NOTHING, false },
	{ "read", call_read, make_pipe, NOTHING, false },
	{ "epoll_wait", call_epoll, make_epoll, RESTART, false },
	{ "epoll_wait with a timeout", call_epoll_timed, make_epoll, LEFT, false },
	{ "epoll_pwait", call_epoll_masked, make_epoll, RESTART, false },
	{ "epoll_pwait2", call_epoll2, make_epoll, RESTART, true },
	{ "epoll_pwait2 with a timeout", call_epoll2_timed, make_epoll, LEFT, true },
	{ "poll", call_poll, make_pipe, NOTHING, false },
	{ "poll with a timeout", call_poll_timed, make_pipe, NOTHING, false },
	{ "select with a timeout", call_select, make_pipe, NOTHING, false },
	{ "sigwaitinfo", call_signal, NULL, RESTART, false },
	{ "sigtimedwait", call_signal_timed, NULL, LEFT, false },
	{ "pause", call_pause, NULL, NOTHING, false },
	{ "semop", call_semop, make_semaphore, RESTART, false },
	{ "semtimedop", call_semop_timed, make_semaphore, LEFT, false },
	{ "accept", call_accept, make_listener, NOTHING, false },
	{ "accept with a timeout", call_accept, make_timed_listener, LEFT, false },
	{ "recv", call_recv, make_pair, NOTHING, false },
	{ "recv with a timeout", call_recv, make_timed_pair, LEFT, false },
	{ "recv with a timeout to send", call_recv, make_pair_timed_to_send, NOTHING, false },
	{ "read with a timeout", call_read, make_timed_pair, LEFT, false },
	{ "send with a timeout", call_send, make_full_pair, LEFT, false },
	{ "msgrcv", call_msgrcv, make_queue, NOTHING, false },
	{ "io_getevents", call_aio, make_aio, RESTART, true },
	{ "io_getevents with a timeout", call_aio_timed, make_aio, LEFT, true },
};

static void block(const void *data)
{
	const struct blocked *b = data;
	const int fd = b->prepare ? b->prepare() : -1;

	told->ready = 1;
	for (;;) {
		const long result = b->call(fd);

		if (result < 0 && errno == EINTR)
			told->eintr++;
		else if (result < 0 && errno == ENOSYS)
			_exit(3);
		else
			told->other++;
	}
}

static void check_blocked(const struct blocked *b, struct watched *w)
{
	struct fathom_thread_copy copy;

	peek_at(w->capture, w->pid, &copy);
	if (copy.err || !copy.in_syscall || copy.syscall != call_of(w->pid))
		fail_msg("%s: peek: %d %s", b->name, copy.err, copy.failed.what);
	fathom_thread_copy_deinit(&copy);
	for (int i = 0; i < STOPS; i++) {
		copy = stop_one(w, false);
		fathom_thread_copy_deinit(&copy);
		if (copy.err != (b->effect == LEFT ? FATHOM_E_UNSUPPORTED : FATHOM_OK) ||
		    copy.was_stopped != (b->effect != LEFT) ||
		    copy.was_restarted != (b->effect == RESTART) || copy.was_interrupted)
			fail_msg("%s: %d %s, restarted %d, interrupted %d", b->name, copy.err,
				 copy.failed.what ? copy.failed.what : "", copy.was_restarted,
				 copy.was_interrupted);
		(void)sleeps(w->pid);
		if (told->eintr || told->other)
			fail_msg("%s: EINTR %d, other ends %d", b->name, told->eintr, told->other);
	}
}

/* With insisting, those ones with a timeout end, and it is told. */
static void check_insisting(const struct blocked *b, struct watched *w)
{
	struct fathom_thread_copy copy = stop_one(w, true);

	fathom_thread_copy_deinit(&copy);
	(void)sleeps(w->pid);
	if (copy.err || copy.was_interrupted != (b->effect == LEFT) ||
	    told->eintr != (b->effect == LEFT) || told->other)
		fail_msg("%s, insisting: %d, interrupted %d, EINTR %d, other %d", b->name, copy.err,
			 copy.was_interrupted, told->eintr, told->other);
}

static void blocking_calls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof blocking / sizeof *blocking; i++) {
		const struct blocked *b = &blocking[i];
		const pid_t pid = spawn(block, b);
		struct watched w;

		if (!sleeps(pid)) {
			assert_true(b->skips);
			assert_int_equal(waitpid(pid, NULL, 0), pid);
			continue;
		}
		watch(&w, pid);
		check_blocked(b, &w);
		check_insisting(b, &w);
		unwatch(&w);
		end(pid);
		if (b->prepare == make_semaphore)
			semctl(told->child, 0, IPC_RMID);
		if (b->prepare == make_queue)
			msgctl(told->child, IPC_RMID, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(blocking_calls) };

	if (!make_told())
		return 1;
	return cmocka_run_group_tests_name("blocking_calls", tests, NULL, NULL);
}
