/* SPDX-License-Identifier: MIT */
/* One sleeping thread for each way of waiting, in a process that tells its own facts. */
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/syscalls/syscall_table.h"
#include "host/stack/wait.h"
#include "machine.h"

/* A thread of the victim: its name, what it does, and the system call that it sleeps in. */
struct sleeper {
	const char *name;
	void (*sleep)(void);
	const char *call;
};

/* What victim and test share. */
static struct facts {
	_Atomic pid_t holder; /* TID of the thread that has all locks */
	_Atomic pid_t tids[64];
	_Atomic bool ready;
	_Atomic bool started; /* pid is set; 0: no namespace can be made */
	pid_t pid;            /* as its parent has it */
	pid_t sleeping_child;
	int pidfd, pipe[2], fifo, listener, taken, client, udp, local, pair[2], file, other_file,
		epoll, polled;
	uint64_t pipe_inode, pair_inode;
	uint16_t port, client_port, udp_port;
	int semaphores, queue;
	char folder[32];
} *facts;

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t robust, pi, shared, for_cond = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t holder;
static sem_t semaphore;
static FILE *stream;
/* Words like those of a mutex, but for the users, and a TID in no struct pthread. */
static uint32_t not_mutex[10], not_tid[10];

static void lock_plain(void)
{
	pthread_mutex_lock(&plain);
}

static void lock_recursive(void)
{
	pthread_mutex_lock(&recursive);
}

static void lock_robust(void)
{
	pthread_mutex_lock(&robust);
}

static void lock_pi(void)
{
	pthread_mutex_lock(&pi);
}

static void lock_shared(void)
{
	pthread_mutex_lock(&shared);
}

static void lock_stream(void)
{
	flockfile(stream);
}

static void wait_cond(void)
{
	pthread_mutex_lock(&for_cond);
	pthread_cond_wait(&cond, &for_cond);
}

static void wait_semaphore(void)
{
	sem_wait(&semaphore);
}

static void wait_not_mutex(void)
{
	syscall(SYS_futex, not_mutex, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void wait_not_tid(void)
{
	syscall(SYS_futex, not_tid, FUTEX_WAIT_BITSET, not_tid[0], NULL, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

static void join(void)
{
	pthread_join(holder, NULL);
}

static void read_byte(int fd)
{
	char byte;

	(void)!read(fd, &byte, 1);
}

static void read_pipe(void)
{
	read_byte(facts->pipe[0]);
}

static void read_fifo(void)
{
	read_byte(facts->fifo);
}

static void open_fifo(void)
{
	char path[64];

	(void)snprintf(path, sizeof path, "%s/other", facts->folder);
	(void)!open(path, O_RDONLY);
}

static void accept_tcp(void)
{
	accept(facts->listener, NULL, NULL);
}

static void receive_tcp(void)
{
	char byte;

	recv(facts->taken, &byte, 1, 0);
}

static void receive_udp(void)
{
	char byte;

	recv(facts->udp, &byte, 1, 0);
}

static void accept_unix(void)
{
	accept(facts->local, NULL, NULL);
}

static void receive_unix(void)
{
	char byte;

	recv(facts->pair[0], &byte, 1, 0);
}

static void wait_child(void)
{
	waitpid(facts->sleeping_child, NULL, __WALL);
}

static void wait_any(void)
{
	waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED);
}

static void wait_pidfd(void)
{
	waitid(P_PIDFD, (id_t)facts->pidfd, &(siginfo_t){ 0 }, WEXITED);
}

static void sleep_long(void)
{
	nanosleep(&(struct timespec){ 1000, 250000000 }, NULL);
}

static void sleep_until(void)
{
	clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){ 4000000000, 1 }, NULL);
}

static void wait_signal(void)
{
	pause();
}

static void wait_signal_for(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigtimedwait(&set, NULL, &(struct timespec){ 777, 0 });
}

static void poll_two(void)
{
	struct pollfd fds[] = { { .fd = facts->pipe[0] }, { .fd = -1 }, { .fd = facts->pair[0] } };

	poll(fds, 3, 600500);
}

static void poll_many(void)
{
	struct pollfd fds[300];

	for (unsigned i = 0; i < 300; i++)
		fds[i] = (struct pollfd){ .fd = facts->pipe[0] };
	poll(fds, 300, -1);
}

static void poll_nothing(void)
{
	poll(NULL, 0, -1);
}

static void select_two(void)
{
	fd_set in;
	fd_set out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(facts->pipe[0], &in);
	FD_SET(facts->fifo, &out);
	FD_SET(facts->pair[0], &in);
	FD_CLR(facts->fifo, &out);
	pselect(FD_SETSIZE, &in, &out, NULL, &(struct timespec){ 500, 20000000 }, NULL);
}

/* What select() was before glibc 2.34: its timeout is in microseconds. */
static void select_time(void)
{
#ifdef SYS_select
	syscall(SYS_select, 0, NULL, NULL, NULL, &(struct timeval){ 400, 125000 });
#else
	nanosleep(&(struct timespec){ 400, 125000000 }, NULL);
#endif
}

static void wait_epoll(void)
{
	struct epoll_event event;

	epoll_wait(facts->epoll, &event, 1, -1);
}

static void lock_file(void)
{
	flock(facts->other_file, LOCK_EX);
}

static void take_semaphore(void)
{
	syscall(SYS_semop, facts->semaphores, &(struct sembuf){ .sem_op = -1 }, 1);
}

static void receive_message(void)
{
	struct {
		long type;
		char text[1];
	} message;

	msgrcv(facts->queue, &message, 1, 0, 0);
}

static void wait_vfork(void)
{
	if (vfork() == 0) {
		syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		for (;;)
			syscall(SYS_rt_sigsuspend, NULL, 0);
	}
}

static const struct sleeper sleepers[] = {
	{ "plain", lock_plain, "futex" },
	{ "recursive", lock_recursive, "futex" },
	{ "robust", lock_robust, "futex" },
	{ "pi", lock_pi, "futex" },
	{ "shared", lock_shared, "futex" },
	{ "stream", lock_stream, "futex" },
	{ "cond", wait_cond, "futex" },
	{ "semaphore", wait_semaphore, "futex" },
	{ "not_mutex", wait_not_mutex, "futex" },
	{ "not_tid", wait_not_tid, "futex" },
	{ "join", join, "futex" },
	{ "pipe", read_pipe, "read" },
	{ "fifo", read_fifo, "read" },
	{ "open", open_fifo, "openat" },
	{ "accept", accept_tcp, "accept" },
	{ "tcp", receive_tcp, "recvfrom" },
	{ "udp", receive_udp, "recvfrom" },
	{ "local", accept_unix, "accept" },
	{ "pair", receive_unix, "recvfrom" },
	{ "child", wait_child, "wait4" },
	{ "any", wait_any, "waitid" },
	{ "pidfd", wait_pidfd, "waitid" },
	{ "sleep", sleep_long, "clock_nanosleep" },
	{ "until", sleep_until, "clock_nanosleep" },
	{ "pause", wait_signal, "pause" },
	{ "sigtimedwait", wait_signal_for, "rt_sigtimedwait" },
	{ "poll", poll_two, "poll" },
	{ "poll_many", poll_many, "poll" },
	{ "poll_nothing", poll_nothing, "poll" },
	{ "select", select_two, "pselect6" },
#ifdef SYS_select
	{ "time", select_time, "select" },
#else
	{ "time", select_time, "clock_nanosleep" },
#endif
	{ "epoll", wait_epoll, "epoll_wait" },
	{ "flock", lock_file, "flock" },
	{ "semop", take_semaphore, "semop" },
	{ "msgrcv", receive_message, "msgrcv" },
	{ "vfork", wait_vfork, "vfork" },
};

#define N_SLEEPERS (sizeof sleepers / sizeof *sleepers)

static void init_mutex(pthread_mutex_t *m, int protocol, int robustness, int sharing)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, protocol);
	pthread_mutexattr_setrobust(&a, robustness);
	pthread_mutexattr_setpshared(&a, sharing);
	pthread_mutex_init(m, &a);
}

static void *hold(void *data)
{
	(void)data;
	prctl(PR_SET_NAME, "holder");
	pthread_mutex_lock(&plain);
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&robust);
	pthread_mutex_lock(&pi);
	pthread_mutex_lock(&shared);
	flockfile(stream);
	facts->holder = (pid_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return NULL;
}

static void *run_sleeper(void *data)
{
	const struct sleeper *s = data;

	prctl(PR_SET_NAME, s->name);
	facts->tids[s - sleepers] = (pid_t)syscall(SYS_gettid);
	for (;;)
		s->sleep();
	return NULL;
}

static uint64_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in a;

	getsockname(fd, (struct sockaddr *)&a, &(socklen_t){ sizeof a });
	return ntohs(a.sin_port);
}

static int bound(int type)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, type, 0);

	(void)bind(fd, (const struct sockaddr *)&a, sizeof a);
	return fd;
}

static void make_sockets(void)
{
	struct sockaddr_in a;
	struct sockaddr_un u = { .sun_family = AF_UNIX };

	facts->listener = bound(SOCK_STREAM);
	listen(facts->listener, 1);
	facts->port = port_of(facts->listener);
	getsockname(facts->listener, (struct sockaddr *)&a, &(socklen_t){ sizeof a });
	facts->client = socket(AF_INET, SOCK_STREAM, 0);
	(void)connect(facts->client, (struct sockaddr *)&a, sizeof a);
	facts->client_port = port_of(facts->client);
	facts->taken = accept(facts->listener, NULL, NULL);
	facts->udp = bound(SOCK_DGRAM);
	facts->udp_port = port_of(facts->udp);
	facts->local = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)snprintf(u.sun_path, sizeof u.sun_path, "%s/a name", facts->folder);
	(void)bind(facts->local, (struct sockaddr *)&u, sizeof u);
	listen(facts->local, 1);
	(void)socketpair(AF_UNIX, SOCK_STREAM, 0, facts->pair);
	facts->pair_inode = inode_of(facts->pair[0]);
}

static void make_files(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	char path[64];
	int closed[2];

	(void)!pipe(facts->pipe);
	facts->pipe_inode = inode_of(facts->pipe[0]);
	(void)snprintf(path, sizeof path, "%s/other", facts->folder);
	mkfifo(path, 0600);
	(void)snprintf(path, sizeof path, "%s/fifo", facts->folder);
	mkfifo(path, 0600);
	facts->fifo = open(path, O_RDWR);
	(void)snprintf(path, sizeof path, "%s/file", facts->folder);
	facts->file = open(path, O_CREAT | O_RDWR, 0600);
	facts->other_file = open(path, O_RDWR);
	flock(facts->file, LOCK_EX);
	facts->epoll = epoll_create1(0);
	epoll_ctl(facts->epoll, EPOLL_CTL_ADD, facts->pipe[0], &event);
	/* A member whose number has become another pipe's. */
	(void)!pipe(closed);
	facts->polled = closed[0];
	epoll_ctl(facts->epoll, EPOLL_CTL_ADD, closed[0], &event);
	(void)dup(closed[0]);
	dup2(facts->pipe[0], closed[0]);
}

static void make_processes(void)
{
	const pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "child");
		for (;;)
			pause();
	}
	facts->sleeping_child = child;
	facts->pidfd = (int)syscall(SYS_pidfd_open, facts->sleeping_child, 0);
}

static void run_victim(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	make_files();
	make_sockets();
	make_processes();
	facts->semaphores = semget(IPC_PRIVATE, 1, 0600);
	facts->queue = msgget(IPC_PRIVATE, 0600);
	init_mutex(&robust, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_PRIVATE);
	init_mutex(&pi, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE);
	init_mutex(&shared, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_SHARED);
	stream = fopen("/dev/null", "r");
	pthread_create(&holder, NULL, hold, NULL);
	while (!facts->holder)
		usleep(1000);
	not_mutex[0] = 2;
	not_mutex[2] = not_tid[0] = (uint32_t)facts->holder;
	for (size_t i = 0; i < N_SLEEPERS; i++)
		pthread_create(&thread, NULL, run_sleeper, (void *)(uintptr_t)&sleepers[i]);
	facts->ready = true;
	for (;;)
		pause();
}

static int proc;

static size_t read_victim(void *data, uint64_t avma, void *to, size_t size)
{
	const int fd = *(const int *)data;
	const ssize_t got = pread(fd, to, size, (off_t)avma);

	return got > 0 ? (size_t)got : 0;
}

static int memory;
static const struct fathom_reader reader = { read_victim, NULL, &memory };

static void open_victim(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d", pid);
	proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(proc >= 0);
	memory = openat(proc, "mem", O_RDONLY | O_CLOEXEC);
	assert_true(memory >= 0);
}

/* Reads the call that thread @tid sleeps in; returns false unless it sleeps in one. */
static bool read_call(pid_t tid, struct fathom_thread_copy *ret)
{
	char path[64];
	char text[512] = "";
	uint64_t *a = ret->arguments;
	int fd;
	ssize_t got;

	*ret = (struct fathom_thread_copy){ .tid = tid, .state = 'S' };
	(void)snprintf(path, sizeof path, "task/%d/syscall", tid);
	fd = openat(proc, path, O_RDONLY);
	got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		close(fd);
	ret->in_syscall =
		got > 0 && sscanf(text, "%ld %lx %lx %lx %lx %lx %lx %lx", &ret->syscall, a, a + 1,
				  a + 2, a + 3, a + 4, a + 5, &ret->registers.sp) == 8;
	return ret->in_syscall && ret->syscall >= 0;
}

/* Waits until thread @tid sleeps in @call. */
static struct fathom_thread_copy copy_of(pid_t tid, const char *call)
{
	struct fathom_thread_copy copy;

	for (unsigned i = 0; i < 10000; i++, usleep(1000)) {
		const char *name =
			read_call(tid, &copy) ? fathom_syscall_name(MACHINE, copy.syscall) : NULL;

		if (name && strcmp(name, call) == 0)
			return copy;
	}
	fail_msg("thread %d does not sleep in %s", tid, call);
	return copy;
}

static size_t sleeper_of(const char *name)
{
	size_t i = 0;

	while (strcmp(sleepers[i].name, name) != 0)
		i++;
	return i;
}

static struct fathom_wait describe(pid_t tid, const char *call)
{
	const struct fathom_wait_source from = { .proc = proc,
						 .memory = &reader,
						 .machine = MACHINE };
	const struct fathom_thread_copy copy = copy_of(tid, call);
	struct fathom_wait wait;

	assert_true(fathom_wait_describe(&from, &copy, &wait));
	assert_string_equal(wait.syscall, call);
	return wait;
}

static struct fathom_wait wait_of(const char *name)
{
	const size_t i = sleeper_of(name);

	while (!facts->tids[i])
		usleep(1000);
	return describe(facts->tids[i], sleepers[i].call);
}

#define assert_wait(name, expected_kind, expected_owner, ...)     \
	do {                                                      \
		const struct fathom_wait wait_ = wait_of(name);   \
		char text_[512];                                  \
                                                                  \
		(void)snprintf(text_, sizeof text_, __VA_ARGS__); \
		assert_string_equal(wait_.text, text_);           \
		assert_int_equal(wait_.kind, expected_kind);      \
		assert_int_equal(wait_.owner, expected_owner);    \
	} while (0)

static void mutexes_have_owners(void **state)
{
	(void)state;
	assert_wait("plain", FATHOM_WAIT_MUTEX, facts->holder, "mutex %p owned by %d",
		    (void *)&plain, facts->holder);
	assert_wait("recursive", FATHOM_WAIT_MUTEX, facts->holder, "mutex %p owned by %d",
		    (void *)&recursive, facts->holder);
	assert_wait("robust", FATHOM_WAIT_MUTEX, facts->holder, "mutex %p owned by %d",
		    (void *)&robust, facts->holder);
	assert_wait("pi", FATHOM_WAIT_MUTEX, facts->holder, "mutex %p owned by %d", (void *)&pi,
		    facts->holder);
	assert_wait("shared", FATHOM_WAIT_MUTEX, facts->holder, "mutex %p owned by %d",
		    (void *)&shared, facts->holder);
}

/* Asserts that the futex of @name lies in [@start, @start + @size), and that it is nothing more. */
static void assert_futex(const char *name, const void *start, size_t size)
{
	const struct fathom_wait w = wait_of(name);
	char *end;
	uint64_t avma;

	assert_memory_equal(w.text, "futex 0x", 8);
	avma = strtoull(w.text + 6, &end, 16);
	assert_string_equal(end, "");
	assert_true(!start || avma - (uintptr_t)start < size);
	assert_int_equal(w.kind, FATHOM_WAIT_FUTEX);
	assert_int_equal(w.owner, 0);
}

static void other_futexes_have_none(void **state)
{
	(void)state;
	assert_futex("cond", &cond, sizeof cond);
	assert_futex("semaphore", &semaphore, sizeof semaphore);
	assert_futex("not_mutex", not_mutex, 4);
	assert_futex("not_tid", not_tid, 4);
	assert_futex("stream", NULL, 0);
}

static void joins_name_the_thread(void **state)
{
	(void)state;
	assert_wait("join", FATHOM_WAIT_THREAD, facts->holder, "thread %d to end", facts->holder);
}

static void files_are_named(void **state)
{
	(void)state;
	assert_wait("pipe", FATHOM_WAIT_DESCRIPTOR, 0, "pipe:[%lu] (fd %d)", facts->pipe_inode,
		    facts->pipe[0]);
	assert_wait("fifo", FATHOM_WAIT_DESCRIPTOR, 0, "%s/fifo (fd %d)", facts->folder,
		    facts->fifo);
	assert_wait("open", FATHOM_WAIT_FILE, 0, "to open %s/other", facts->folder);
	assert_wait("flock", FATHOM_WAIT_DESCRIPTOR, 0,
		    "lock of %s/file (fd %d) held by another descriptor of this process",
		    facts->folder, facts->other_file);
}

static void sockets_have_addresses(void **state)
{
	(void)state;
	assert_wait("accept", FATHOM_WAIT_DESCRIPTOR, 0, "tcp 127.0.0.1:%u listening (fd %d)",
		    facts->port, facts->listener);
	assert_wait("tcp", FATHOM_WAIT_DESCRIPTOR, 0, "tcp 127.0.0.1:%u <- 127.0.0.1:%u (fd %d)",
		    facts->port, facts->client_port, facts->taken);
	assert_wait("udp", FATHOM_WAIT_DESCRIPTOR, 0, "udp 127.0.0.1:%u (fd %d)", facts->udp_port,
		    facts->udp);
	assert_wait("local", FATHOM_WAIT_DESCRIPTOR, 0, "unix %s/a name listening (fd %d)",
		    facts->folder, facts->local);
	assert_wait("pair", FATHOM_WAIT_DESCRIPTOR, 0, "unix socket:[%lu] (fd %d)",
		    facts->pair_inode, facts->pair[0]);
}

static void children_are_told(void **state)
{
	(void)state;
	assert_wait("child", FATHOM_WAIT_CHILD, facts->sleeping_child, "child %d",
		    facts->sleeping_child);
	assert_wait("any", FATHOM_WAIT_CHILD, 0, "any child");
	assert_wait("pidfd", FATHOM_WAIT_CHILD, facts->sleeping_child, "process %d (fd %d)",
		    facts->sleeping_child, facts->pidfd);
	if (!SANITIZER_THREADS)
		assert_wait("vfork", FATHOM_WAIT_CHILD, 0, "child of vfork");
}

/* Asserts that @name sleeps, and says how long it is until second @end of CLOCK_REALTIME. */
static void assert_left(const char *name, long long end)
{
	const long long most = end - time(NULL);
	const struct fathom_wait w = wait_of(name);
	char *rest;
	const long long left = strtoll(w.text, &rest, 10);

	assert_int_equal(w.kind, FATHOM_WAIT_TIME);
	assert_in_range(left, most - 60, most);
	rest += *rest == '.' ? strspn(rest, ".0123456789") : 0;
	assert_string_equal(rest, " s left");
}

static void times_and_signals_are_told(void **state)
{
	(void)state;
	assert_wait("sleep", FATHOM_WAIT_TIME, 0, "1000.25 s");
	assert_left("until", 4000000000);
	assert_wait("pause", FATHOM_WAIT_SIGNAL, 0, "a signal");
	assert_wait("sigtimedwait", FATHOM_WAIT_SIGNAL, 0, "a signal for 777 s");
	assert_wait("poll_nothing", FATHOM_WAIT_SIGNAL, 0, "a signal");
	assert_wait("time", FATHOM_WAIT_TIME, 0, "400.125 s");
	assert_wait("semop", FATHOM_WAIT_SYSTEM_V, 0, "semaphore set %d", facts->semaphores);
	assert_wait("msgrcv", FATHOM_WAIT_SYSTEM_V, 0, "message queue %d", facts->queue);
}

static void polled_descriptors_are_listed(void **state)
{
	const int fd = facts->pipe[0];
	const unsigned long pipe = facts->pipe_inode;
	const unsigned long pair = facts->pair_inode;

	(void)state;
	assert_wait("poll", FATHOM_WAIT_DESCRIPTORS, 0,
		    "2 descriptors for 600.5 s: fd %d pipe:[%lu], fd %d unix socket:[%lu]", fd,
		    pipe, facts->pair[0], pair);
	assert_wait("poll_many", FATHOM_WAIT_DESCRIPTORS, 0,
		    "300 descriptors: fd %d pipe:[%lu], fd %d pipe:[%lu], fd %d pipe:[%lu], fd %d "
		    "pipe:[%lu]"
		    " and 296 more",
		    fd, pipe, fd, pipe, fd, pipe, fd, pipe);
	assert_wait("select", FATHOM_WAIT_DESCRIPTORS, 0,
		    "2 descriptors for 500.02 s: fd %d pipe:[%lu], fd %d unix socket:[%lu]", fd,
		    pipe, facts->pair[0], pair);
}

/* Members are found by inode: the second one's number is another pipe's by now. */
static void epoll_members_are_listed(void **state)
{
	const struct fathom_wait w = wait_of("epoll");
	char named[64];
	char unnamed[64];

	(void)state;
	(void)snprintf(named, sizeof named, "fd %d pipe:[%lu]", facts->pipe[0], facts->pipe_inode);
	(void)snprintf(unnamed, sizeof unnamed, "fd %d", facts->polled);
	assert_memory_equal(w.text, "2 descriptors: ", 15);
	assert_non_null(strstr(w.text, named));
	assert_non_null(strstr(w.text, unnamed));
	assert_int_equal(strlen(w.text), 15 + strlen(named) + 2 + strlen(unnamed));
}

/* A copy that is not of the call that the thread is in by now tells only its name. */
static void changed_threads_are_not_described(void **state)
{
	const struct fathom_wait_source from = { .proc = proc,
						 .memory = &reader,
						 .machine = MACHINE };
	const pid_t tid = facts->tids[sleeper_of("pipe")];
	struct fathom_thread_copy copy = copy_of(tid, "read");
	struct fathom_wait wait;

	(void)state;
	copy.arguments[2]++;
	assert_false(fathom_wait_describe(&from, &copy, &wait));
	assert_string_equal(wait.syscall, "read");
	assert_string_equal(wait.text, "");
	copy.arguments[2]--;
	copy.registers.sp += 16;
	assert_false(fathom_wait_describe(&from, &copy, &wait));
	copy.registers.sp -= 16;
	assert_true(fathom_wait_describe(&from, &copy, &wait));
	copy.in_syscall = false;
	assert_false(fathom_wait_describe(&from, &copy, &wait));
	assert_null(wait.syscall);
}

/* Facts that were read once serve many descriptions. */
static void facts_are_shared(void **state)
{
	const struct fathom_thread_copy tcp = copy_of(facts->tids[sleeper_of("tcp")], "recvfrom");
	const struct fathom_thread_copy udp = copy_of(facts->tids[sleeper_of("udp")], "recvfrom");
	struct fathom_wait_source from = { .proc = proc, .memory = &reader, .machine = MACHINE };
	struct fathom_wait wait;

	(void)state;
	from.facts = fathom_wait_facts_create();
	assert_true(fathom_wait_describe(&from, &tcp, &wait));
	assert_memory_equal(wait.text, "tcp 127", 7);
	assert_true(fathom_wait_describe(&from, &udp, &wait));
	assert_memory_equal(wait.text, "udp 127", 7);
	fathom_wait_facts_destroy(from.facts);
}

/* The victim's memory, but for one word. */
static struct {
	uint64_t avma;
	uint32_t value;
} lie;

static size_t read_lie(void *data, uint64_t avma, void *to, size_t size)
{
	const size_t got = read_victim(data, avma, to, size);

	if (lie.avma >= avma && lie.avma + 4 <= avma + got)
		memcpy((uint8_t *)to + (lie.avma - avma), &lie.value, 4);
	return got;
}

/* Returns the kind of the wait of @name, if the word at @avma is @value. */
static uint8_t kind_if(const char *name, uint64_t avma, uint32_t value)
{
	const struct fathom_reader liar = { read_lie, NULL, &memory };
	const struct fathom_wait_source from = { .proc = proc,
						 .memory = &liar,
						 .machine = MACHINE };
	const struct fathom_thread_copy copy = copy_of(facts->tids[sleeper_of(name)], "futex");
	struct fathom_wait wait;

	lie.avma = avma;
	lie.value = value;
	assert_true(fathom_wait_describe(&from, &copy, &wait));
	assert_true(wait.kind != FATHOM_WAIT_FUTEX || !wait.owner);
	return wait.kind;
}

static uint8_t kind_if_mutex(const char *name, const pthread_mutex_t *m, size_t off, uint32_t value)
{
	return kind_if(name, (uintptr_t)m + off, value);
}

/* One word that is no mutex's, or not of the state that is waited for, and no owner is told. */
static void owners_are_proven(void **state)
{
	const size_t lock = offsetof(struct __pthread_mutex_s, __lock);
	const size_t count = offsetof(struct __pthread_mutex_s, __count);
	const size_t owner = offsetof(struct __pthread_mutex_s, __owner);
	const size_t users = offsetof(struct __pthread_mutex_s, __nusers);
	const size_t kind = offsetof(struct __pthread_mutex_s, __kind);
	const size_t list = offsetof(struct __pthread_mutex_s, __list);
	const uint32_t robust_kind = (uint32_t)robust.__data.__kind;

	(void)state;
	assert_int_equal(kind_if_mutex("plain", &plain, lock, 1), FATHOM_WAIT_MUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, lock, 0), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, lock, 3), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, count, 1), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("recursive", &recursive, count, 0), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, owner, 0), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, owner, (uint32_t)getpid()),
			 FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, owner, (uint32_t)facts->pid),
			 FATHOM_WAIT_MUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, users, 0), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, kind, 2), FATHOM_WAIT_MUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, kind, 4), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, kind, 16), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, kind, 32), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, kind, 64), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, kind, 128), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("shared", &shared, kind, 0), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("plain", &plain, list, 1), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("robust", &robust, kind, robust_kind & ~16u),
			 FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("robust", &robust, owner, (uint32_t)facts->pid),
			 FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("pi", &pi, lock, (uint32_t)getpid()), FATHOM_WAIT_FUTEX);
	assert_int_equal(kind_if_mutex("pi", &pi, lock, 0x80000000u | (uint32_t)facts->pid),
			 FATHOM_WAIT_MUTEX);
}

/* A Unix socket's name that looks like the row of another socket makes that one unknown. */
static void forged_rows_are_not_believed(void **state)
{
	struct sockaddr_un u = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const int size =
		snprintf(u.sun_path + 1, sizeof u.sun_path - 1,
			 "%d\n0000000000000000: 00000003 00000000 00000000 0001 03 %lu /forged",
			 getpid(), facts->pair_inode);

	(void)state;
	assert_int_equal(
		bind(fd, (struct sockaddr *)&u,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)),
		0);
	assert_wait("pair", FATHOM_WAIT_DESCRIPTOR, 0, "socket:[%lu] (fd %d)", facts->pair_inode,
		    facts->pair[0]);
	close(fd);
}

static bool is_stopped(pid_t tid)
{
	char path[64];
	char text[128] = "";
	int fd;

	(void)snprintf(path, sizeof path, "task/%d/stat", tid);
	fd = openat(proc, path, O_RDONLY);
	if (fd >= 0) {
		(void)!read(fd, text, sizeof text - 1);
		close(fd);
	}
	return strstr(text, ") T ") != NULL;
}

/*
 * After a stop the kernel goes on with a sleep by restart_syscall(), whose arguments do not tell
 * what it was. A copy from before still does.
 */
static void continued_calls_are_told(void **state)
{
	const struct fathom_wait_source from = { .proc = proc,
						 .memory = &reader,
						 .machine = MACHINE };
	const pid_t tid = facts->tids[sleeper_of("sleep")];
	const struct fathom_thread_copy before = copy_of(tid, "clock_nanosleep");
	struct fathom_wait wait;

	(void)state;
	/* The process as a whole does not stop: the thread in vfork() cannot. */
	kill(facts->pid, SIGSTOP);
	for (unsigned i = 0; i < 10000 && !is_stopped(tid); i++)
		usleep(1000);
	assert_true(is_stopped(tid));
	kill(facts->pid, SIGCONT);
	wait = describe(tid, "restart_syscall");
	assert_string_equal(wait.text, "continued call");
	assert_int_equal(wait.kind, FATHOM_WAIT_CONTINUED);
	assert_true(fathom_wait_describe(&from, &before, &wait));
	assert_string_equal(wait.text, "1000.25 s");
}

static void numbers_have_names(void **state)
{
	(void)state;
	assert_string_equal(fathom_syscall_name(EM_X86_64, 0), "read");
	assert_string_equal(fathom_syscall_name(EM_X86_64, 202), "futex");
	assert_string_equal(fathom_syscall_name(EM_X86_64, 450), "set_mempolicy_home_node");
	assert_string_equal(fathom_syscall_name(EM_386, 240), "futex");
	assert_string_equal(fathom_syscall_name(EM_386, 422), "futex_time64");
	assert_string_equal(fathom_syscall_name(EM_386, 1), "exit");
	assert_string_equal(fathom_syscall_name(EM_AARCH64, 98), "futex");
	assert_string_equal(fathom_syscall_name(EM_AARCH64, 25), "fcntl");
	assert_string_equal(fathom_syscall_name(EM_AARCH64, 22), "epoll_pwait");
	/* Holes, the ends, x32, other machines. */
	assert_null(fathom_syscall_name(EM_X86_64, 400));
	assert_null(fathom_syscall_name(EM_AARCH64, 244));
	assert_null(fathom_syscall_name(EM_386, 463));
	assert_null(fathom_syscall_name(EM_X86_64, -1));
	assert_null(fathom_syscall_name(EM_X86_64, INT64_MIN));
	assert_null(fathom_syscall_name(EM_X86_64, 0x40000000));
	assert_null(fathom_syscall_name(EM_ARM, 1));
}

/* Finds the one thread of the victim, or its child, that is called @name; 0 if there is none. */
static pid_t find_named(const char *folder, const char *name)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	pid_t found = 0;

	while (dir && !found && (entry = readdir(dir)) != NULL) {
		char path[512];
		char text[32] = "";
		FILE *comm;

		(void)snprintf(path, sizeof path, "%s/%s/comm", folder, entry->d_name);
		comm = fopen(path, "r");
		if (comm && fscanf(comm, "%31s", text) == 1 && strcmp(text, name) == 0)
			found = atoi(entry->d_name);
		if (comm)
			fclose(comm);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A victim in a PID namespace of its own: numbers in its memory are told as /proc has them. */
static void inner_numbers_are_translated(void **state)
{
	char folder[64];
	char children[64];
	pid_t outer;
	pid_t child;
	FILE *file;

	(void)state;
	if (!facts->pid)
		skip();
	(void)snprintf(folder, sizeof folder, "/proc/%d/task", facts->pid);
	(void)snprintf(children, sizeof children, "/proc/%d/task/%d/children", facts->pid,
		       facts->pid);
	outer = find_named(folder, "holder");
	file = fopen(children, "r");
	assert_true(file && fscanf(file, "%d", &child) == 1);
	fclose(file);
	assert_true(outer > 0 && outer != facts->holder && child != facts->sleeping_child);
	/* The threads have told their own numbers; those that /proc has are asked. */
	for (size_t i = 0; i < N_SLEEPERS; i++) {
		while (!facts->tids[i])
			usleep(1000);
		facts->tids[i] = find_named(folder, sleepers[i].name);
		assert_true(facts->tids[i] > 0);
	}
	assert_wait("plain", FATHOM_WAIT_MUTEX, outer, "mutex %p owned by %d", (void *)&plain,
		    outer);
	assert_wait("robust", FATHOM_WAIT_MUTEX, outer, "mutex %p owned by %d", (void *)&robust,
		    outer);
	assert_wait("pi", FATHOM_WAIT_MUTEX, outer, "mutex %p owned by %d", (void *)&pi, outer);
	assert_wait("join", FATHOM_WAIT_THREAD, outer, "thread %d to end", outer);
	assert_wait("child", FATHOM_WAIT_CHILD, child, "child %d", child);
	assert_wait("pidfd", FATHOM_WAIT_CHILD, child, "process %d (fd %d)", child, facts->pidfd);
	assert_futex("not_mutex", not_mutex, 4);
	assert_futex("not_tid", not_tid, 4);
}

static int make_facts(void)
{
	char folder[] = "/tmp/fathom-wait-XXXXXX";

	facts = mmap(NULL, sizeof *facts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (facts == MAP_FAILED || !mkdtemp(folder))
		return -1;
	memcpy(facts->folder, folder, sizeof folder);
	return 0;
}

static int start_victim(void **state)
{
	pid_t pid;

	(void)state;
	if (make_facts())
		return -1;
	pid = fork();
	if (!pid)
		run_victim();
	facts->pid = pid;
	while (!facts->ready)
		usleep(1000);
	open_victim(facts->pid);
	return 0;
}

/* Joins so many groups, as root, that the numbers come behind 20,000 bytes of its status. */
static void join_groups(void)
{
	static gid_t groups[2000];

	for (unsigned i = 0; i < 2000; i++)
		groups[i] = 4000000000u + i;
	assert_true(setgroups(2000, groups) == 0 || geteuid() != 0);
}

/* Runs the victim as the first process of a PID namespace, and ends with it. */
static void run_inner_victim(void)
{
	pid_t pid = -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	join_groups();
	if (unshare(CLONE_NEWPID) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0)
		pid = fork();
	if (!pid)
		run_victim();
	facts->pid = pid > 0 ? pid : 0;
	facts->started = true;
	waitpid(pid, NULL, 0);
	_exit(0);
}

static int start_inner_victim(void **state)
{
	(void)state;
	if (make_facts())
		return -1;
	if (!fork())
		run_inner_victim();
	while (!facts->started || (facts->pid && !facts->ready))
		usleep(1000);
	if (facts->pid)
		open_victim(facts->pid);
	return 0;
}

static int end_victim(void **state)
{
	static const char *const names[] = { "fifo", "other", "file", "a name" };
	char path[64];

	(void)state;
	if (facts->pid)
		kill(facts->pid, SIGKILL);
	wait(NULL);
	close(proc);
	close(memory);
	if (facts->pid) {
		semctl(facts->semaphores, 0, IPC_RMID);
		msgctl(facts->queue, IPC_RMID, NULL);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", facts->folder, names[i]);
		unlink(path);
	}
	rmdir(facts->folder);
	munmap(facts, sizeof *facts);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutexes_have_owners),
		cmocka_unit_test(other_futexes_have_none),
		cmocka_unit_test(joins_name_the_thread),
		cmocka_unit_test(files_are_named),
		cmocka_unit_test(sockets_have_addresses),
		cmocka_unit_test(children_are_told),
		cmocka_unit_test(times_and_signals_are_told),
		cmocka_unit_test(polled_descriptors_are_listed),
		cmocka_unit_test(epoll_members_are_listed),
		cmocka_unit_test(changed_threads_are_not_described),
		cmocka_unit_test(facts_are_shared),
		cmocka_unit_test(owners_are_proven),
		cmocka_unit_test(forged_rows_are_not_believed),
		cmocka_unit_test(numbers_have_names),
		/* The last: calls of other threads are continued, too. */
		cmocka_unit_test(continued_calls_are_told),
	};
	const struct CMUnitTest inner_tests[] = {
		cmocka_unit_test(inner_numbers_are_translated),
	};

	/* A victim that has ended makes the test fail. */
	alarm(1200);
	return cmocka_run_group_tests_name("wait", tests, start_victim, end_victim) +
	       cmocka_run_group_tests_name("wait in a namespace", inner_tests, start_inner_victim,
					   end_victim);
}
