/* SPDX-License-Identifier: MIT */
/* further FOLDER: makes calls whose arguments point to memory that points to memory: few and many, at ends of pages, and bad. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <linux/futex.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define MANY 40

static char letters[3 * PAGE];
static char taken[3 * PAGE];

/* A page behind which there is none. */
static char *last_page(void)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p + PAGE, PAGE);
	return p;
}

/* Structs iovec of sizes 0, step, 2 * step ..., and one of @last bytes. */
static void lay_out(struct iovec *v, int n, char *bytes, size_t step, size_t last)
{
	for (int i = 0; i < n; i++) {
		v[i] = (struct iovec){ bytes, i + 1 < n ? step * (size_t)i : last };
		bytes += v[i].iov_len;
	}
}

static void move_bytes(void)
{
	static struct iovec v[MANY];
	struct iovec *at_end = (struct iovec *)(void *)(last_page() + PAGE) - 2;
	char *beyond = last_page() + PAGE - 3;
	int ends[2];

	(void)!pipe(ends);
	lay_out(v, 4, letters, 10, 50);
	writev(ends[1], v, 4);
	lay_out(v, 3, taken, 7, 100);
	readv(ends[0], v, 3); /* fewer than there is room for in the last */
	write(ends[1], letters, 9);
	lay_out(v, 5, taken, 4, 8);
	readv(ends[0], v, 5); /* the last ones stay empty */
	lay_out(v, MANY, letters, 2, 60);
	writev(ends[1], v, MANY);
	lay_out(v, MANY, taken, 1, 60);
	readv(ends[0], v, MANY);
	lay_out(at_end, 2, letters, 1, 5);
	writev(ends[1], at_end, 2);
	writev(ends[1], at_end, 3);
	v[0] = (struct iovec){ beyond, 3 };
	v[1] = (struct iovec){ beyond, 4 };
	writev(ends[1], v, 2);
	readv(ends[0], v, 2);
	writev(ends[1], at_end, -1);
	writev(-1, v, 1);
	readv(-1, v, 1);
	readv(ends[0], at_end, 1 << 20);
	writev(ends[1], (void *)8, 2);
	vmsplice(ends[1], v, 1, 0);
	close(ends[0]);
	close(ends[1]);
}

static void move_in_files(void)
{
	const int file = memfd_create("a file", MFD_CLOEXEC);
	const int other = memfd_create("another", 0);
	struct iovec v[3];
	off_t off = 4;
	loff_t from = 1;

	lay_out(v, 3, letters, 20, 33);
	pwritev(file, v, 3, 5);
	pwritev2(file, v, 3, 70, RWF_DSYNC);
	lay_out(v, 3, taken, 21, 64);
	preadv(file, v, 3, 2);
	preadv2(file, v, 3, 60, 0);
	preadv(file, v, 3, 5000);
	sendfile(other, file, &off, 10);
	sendfile(other, file, (void *)8, 10);
	copy_file_range(file, &from, other, NULL, 20, 0);
	close(file);
	close(other);
}

/* A message with a name, @n buffers and a descriptor. */
static void make_message(struct msghdr *m, struct sockaddr_un *name, struct iovec *v, int n, char *control, int fd)
{
	struct cmsghdr *c;

	*m = (struct msghdr){ .msg_name = name, .msg_namelen = name ? sizeof *name : 0, .msg_iov = v, .msg_iovlen = (size_t)n };
	if (!control)
		return;
	m->msg_control = control;
	m->msg_controllen = CMSG_SPACE(sizeof fd);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

static void send_messages(void)
{
	_Alignas(8) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	_Alignas(8) char room[256] = { 0 };
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0of fathom's test" };
	struct sockaddr_un own = { .sun_family = AF_UNIX };
	struct sockaddr_un found;
	socklen_t length = sizeof found;
	struct iovec v[8];
	struct msghdr m;
	const int to = socket(AF_UNIX, SOCK_DGRAM, 0);
	const int from = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int value = 1;

	snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "to");
	snprintf(own.sun_path + 1, sizeof own.sun_path - 1, "from");
	bind(to, (void *)&name, sizeof name);
	bind(from, (void *)&own, sizeof own);
	lay_out(v, 3, letters, 12, 40);
	make_message(&m, &name, v, 3, control, 0);
	sendmsg(from, &m, 0);
	make_message(&m, &name, v, 2, NULL, 0);
	sendmsg(from, &m, MSG_DONTWAIT);
	sendmsg(from, (void *)8, 0);
	m.msg_iov = (void *)8;
	sendmsg(from, &m, 0);
	m.msg_iov = v;
	m.msg_name = (void *)8;
	sendmsg(from, &m, 0);
	make_message(&m, &found, v, 3, NULL, 0);
	m.msg_control = room;
	m.msg_controllen = sizeof room;
	lay_out(v, 3, taken, 30, 70);
	recvmsg(to, &m, 0);
	recvmsg(to, &m, MSG_DONTWAIT);
	recvmsg(to, &m, MSG_DONTWAIT);
	recvmsg(to, (void *)8, MSG_DONTWAIT);
	sendto(from, letters, 50, 0, (void *)&name, sizeof name);
	recvfrom(to, taken, sizeof taken, 0, (void *)&found, &length);
	length = 5;
	sendto(from, letters, 50, 0, (void *)&name, sizeof name);
	recvfrom(to, taken, sizeof taken, 0, (void *)&found, &length);
	recvfrom(to, taken, sizeof taken, MSG_DONTWAIT, (void *)&found, &length);
	length = sizeof found;
	getsockname(to, (void *)&found, &length);
	getsockname(to, (void *)8, &length);
	getsockname(to, (void *)&found, (void *)8);
	length = sizeof value;
	getsockopt(to, SOL_SOCKET, SO_TYPE, &value, &length);
	setsockopt(to, SOL_SOCKET, SO_REUSEADDR, &value, sizeof value);
	setsockopt(to, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 5 }, sizeof(struct linger));
	close(to);
	close(from);
}

static void send_many(int n)
{
	static struct mmsghdr all[MANY];
	static struct iovec v[MANY][4];
	struct timespec soon = { 1, 0 };
	int ends[2];

	(void)!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends);
	for (int i = 0; i < n; i++) {
		lay_out(v[i], 4, letters, (size_t)i, 5);
		make_message(&all[i].msg_hdr, NULL, v[i], 4, NULL, 0);
	}
	sendmmsg(ends[0], all, (unsigned)n, 0);
	for (int i = 0; i < n; i++) {
		lay_out(v[i], 4, taken, 40, 70);
		make_message(&all[i].msg_hdr, NULL, v[i], 4, NULL, 0);
	}
	recvmmsg(ends[1], all, (unsigned)n, 0, &soon);
	recvmmsg(ends[1], all, (unsigned)n, MSG_DONTWAIT, NULL);
	recvmmsg(ends[1], (void *)8, (unsigned)n, MSG_DONTWAIT, NULL);
	sendmmsg(ends[0], (void *)8, 1, 0);
	close(ends[0]);
	close(ends[1]);
}

static void wait_for(int n)
{
	static struct pollfd all[600];
	static struct epoll_event found[MANY];
	const struct timespec soon = { 0, 1000 };
	struct timeval later = { 5, 0 };
	struct epoll_event one = { .events = EPOLLOUT, .data = { .u64 = 7 } };
	const int e = epoll_create1(EPOLL_CLOEXEC);
	const int writable = eventfd(0, 0);
	sigset_t set;
	fd_set in;
	fd_set out;

	for (int i = 0; i < n; i++)
		all[i] = (struct pollfd){ .fd = i % 3 ? -1 : writable, .events = POLLIN | POLLOUT };
	poll(all, (nfds_t)n, 0);
	poll(all, 1, 10);
	all[0].events = POLLPRI;
	poll(all, 1, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	ppoll(all, (nfds_t)n, &soon, &set);
	poll((void *)8, 2, 0);
	FD_ZERO(&in);
	FD_SET(writable, &in);
	out = in;
	select(writable + 1, &in, &out, NULL, &later);
	select(writable + 1, &in, NULL, NULL, &(struct timeval){ 0, 100 });
	out = in;
	FD_SET(writable, &out);
	pselect(writable + 1, NULL, &out, NULL, &soon, &set);
	syscall(SYS_pselect6, writable + 1, NULL, &out, NULL, &soon, 8);
	select(-1, &in, NULL, NULL, &later);
	epoll_ctl(e, EPOLL_CTL_ADD, writable, &one);
	epoll_wait(e, found, MANY, 100);
	epoll_pwait(e, found, 1, 100, &set);
	epoll_pwait2(e, found, 1, &soon, &set);
	epoll_wait(-1, found, 1, 0);
	close(e);
	close(writable);
}

static void ask_system(void)
{
	struct termios terminal;
	struct winsize size;
	struct rlimit limit;
	struct statx status;
	struct sigaction action = { .sa_handler = SIG_IGN };
	const struct timespec soon = { 0, 1000 };
	cpu_set_t processors;
	char name[16];
	int left = 0;
	int ends[2];
	int flag = 1;
	sigset_t set;
	uint32_t word = 1;

	(void)!pipe(ends);
	write(ends[1], letters, 5);
	ioctl(ends[0], FIONREAD, &left);
	ioctl(ends[0], FIONBIO, &flag);
	ioctl(ends[0], FIONREAD, (void *)8);
	ioctl(ends[0], TCGETS, &terminal);
	ioctl(ends[0], TIOCGWINSZ, &size);
	ioctl(ends[0], FIOCLEX);
	ioctl(ends[0], 0x12345678, &left);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigaction(SIGUSR1, &action, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	sigtimedwait(&set, &(siginfo_t){ 0 }, &soon);
	sigpending(&set);
	getrlimit(RLIMIT_NOFILE, &limit);
	prlimit(0, RLIMIT_CORE, &(struct rlimit){ 0, RLIM_INFINITY }, NULL);
	statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, &status);
	sched_getaffinity(0, sizeof processors, &processors);
	prctl(PR_SET_NAME, "further");
	prctl(PR_GET_NAME, name);
	syscall(SYS_futex, &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL);
	syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 1, &(struct timespec){ 1, 0 }, NULL, -1);
	syscall(SYS_futex, &word, FUTEX_WAKE, 1);
	syscall(SYS_futex, &word, FUTEX_WAIT, 1, 8);
	close(ends[0]);
	close(ends[1]);
}

/* So many names that the kernel fills several buffers, and more than one event has lengths of. */
static void list(const char *folder)
{
	DIR *directory;
	char name[64];

	(void)!chdir(folder);
	mkdir("many", 0700);
	(void)!chdir("many");
	for (int i = 0; i < 1500; i++) {
		snprintf(name, sizeof name, "%d", i);
		mknod(name, S_IFREG | 0600, 0);
	}
	directory = opendir(".");
	while (readdir(directory))
		;
	closedir(directory);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof letters; i++)
		letters[i] = (char)('a' + i % 26);
	move_bytes();
	move_in_files();
	send_messages();
	send_many(1);
	send_many(9);
	send_many(MANY);
	wait_for(3);
	wait_for(600);
	ask_system();
	if (argc > 1)
		list(argv[1]);
	return 3;
}
