/* SPDX-License-Identifier: MIT */
/* Moves bytes by all calls that do; makes a file in the current folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static char data[100] = "0123456789abcdefghijklmnopqrstuvwxyz\n\1\377xyz";
static char some[100];
static char rest[100];
static struct iovec from[2] = { { data, 20 }, { data + 20, 3 } };
static struct iovec with_none[3] = { { data, 0 }, { data + 20, 3 }, { data, 0 } };
static struct iovec to[2] = { { some, 5 }, { rest, 90 } };

static void sockets(int one, int other)
{
	struct msghdr out = { .msg_iov = from, .msg_iovlen = 2 };
	struct msghdr in = { .msg_iov = to, .msg_iovlen = 2 };
	struct mmsghdr outs[2] = { { out, 0 }, { out, 0 } };
	struct mmsghdr ins[2] = { { in, 0 }, { in, 0 } };

	(void)send(one, data, 5, 0);
	(void)recv(other, some, 50, 0);
	(void)sendmsg(one, &out, 0);
	(void)recvmsg(other, &in, 0);
	(void)sendmmsg(one, outs, 2, 0);
	(void)recvmmsg(other, ins, 2, 0, NULL);
}

static void files(int out)
{
	const int fd = open("moved", O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)!pwrite(fd, data, 10, 3);
	(void)!pread(fd, some, 20, 0);
	(void)!pwritev(fd, from, 2, 0);
	(void)!preadv(fd, to, 2, 0);
	(void)!preadv2(fd, to, 2, 0, 0);
	(void)!pwritev2(fd, from, 2, 0, 0);
	(void)!write(fd, data, 0);
	(void)!read(fd, some, 0);
	(void)lseek(fd, 0, SEEK_SET);
	(void)!sendfile(out, fd, NULL, 5);
	(void)!vmsplice(out, from, 2, 0);
}

static void queues(void)
{
	struct mq_attr attributes = { .mq_maxmsg = 3, .mq_msgsize = 50 };
	const mqd_t queue = mq_open("/fathom-moves", O_RDWR | O_CREAT, 0600, &attributes);

	(void)mq_send(queue, data, 9, 0);
	(void)mq_receive(queue, some, 50, NULL);
	(void)mq_unlink("/fathom-moves");
}

int main(void)
{
	int pipes[2];
	int pair[2];

	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return 1;
	(void)!write(pipes[1], data, 40);
	(void)!read(pipes[0], some, 7);
	(void)!writev(pipes[1], from, 2);
	(void)!writev(pipes[1], with_none, 3);
	(void)!readv(pipes[0], to, 2);
	sockets(pair[0], pair[1]);
	files(pipes[1]);
	queues();
	(void)!read(-1, some, 5);
	(void)!write(pipes[1], (void *)8, 5);
	return 0;
}
