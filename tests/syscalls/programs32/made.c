/* SPDX-License-Identifier: MIT */
/*
 * Calls that only i386 has: socketcall() and ipc(), which stand for others, returns from handlers,
 * and clocks in 64 bits.
 */
#define _GNU_SOURCE
#include <linux/net.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define BAD    ((void *)8)
#define IPC_64 0x100
#define NEW    (1 << 16) /* a version of ipc() */

static long socket_call(int number, long a, long b, long c, long d, long e, long f)
{
	long args[] = { a, b, c, d, e, f };

	return syscall(SYS_socketcall, number, args);
}

static void sockets(void)
{
	struct sockaddr_in to = { AF_INET, htons(80), { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_storage found;
	socklen_t size = sizeof found;
	int ends[2], one = 1;
	char bytes[20];
	struct iovec part = { "abc", 3 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	socket_call(SYS_SOCKET, AF_INET, SOCK_STREAM, 0, 0, 0, 0);
	socket_call(SYS_BIND, 3, (long)&to, sizeof to, 0, 0, 0);
	socket_call(SYS_CONNECT, -1, (long)&to, sizeof to, 0, 0, 0);
	socket_call(SYS_LISTEN, 3, 5, 0, 0, 0, 0);
	socket_call(SYS_ACCEPT, -1, (long)&found, (long)&size, 0, 0, 0);
	socket_call(SYS_GETSOCKNAME, 3, (long)&found, (long)&size, 0, 0, 0);
	socket_call(SYS_GETPEERNAME, 3, (long)&found, (long)&size, 0, 0, 0);
	socket_call(SYS_SOCKETPAIR, AF_UNIX, SOCK_STREAM, 0, (long)ends, 0, 0);
	socket_call(SYS_SEND, ends[0], (long)"hello", 5, MSG_NOSIGNAL, 0, 0);
	socket_call(SYS_RECV, ends[1], (long)bytes, 20, 0, 0, 0);
	socket_call(SYS_SENDTO, ends[0], (long)"hello", 5, 0, 0, 0);
	socket_call(SYS_RECVFROM, ends[1], (long)bytes, 20, 0, 0, 0);
	socket_call(SYS_SENDMSG, ends[1], (long)&message, 0, 0, 0, 0);
	part.iov_base = bytes;
	socket_call(SYS_RECVMSG, ends[0], (long)&message, 0, 0, 0, 0);
	socket_call(SYS_SHUTDOWN, ends[0], SHUT_WR, 0, 0, 0, 0);
	socket_call(SYS_SETSOCKOPT, 3, SOL_SOCKET, SO_REUSEADDR, (long)&one, 4, 0);
	size = sizeof one;
	socket_call(SYS_GETSOCKOPT, 3, SOL_SOCKET, SO_REUSEADDR, (long)&one, (long)&size, 0);
	socket_call(SYS_ACCEPT4, -1, 0, 0, SOCK_NONBLOCK, 0, 0);
	socket_call(SYS_RECVMMSG, -1, 0, 3, 0, 0, 0);
	socket_call(SYS_SENDMMSG, -1, 0, 3, 0, 0, 0);
	socket_call(0, 1, 2, 3, 4, 5, 6);
	socket_call(21, 1, 2, 3, 4, 5, 6);
	syscall(SYS_socketcall, SYS_SOCKET, BAD);
	syscall(SYS_socketcall, SYS_SOCKET, 0);
}

static char status[400];

static void memory(void)
{
	long id = syscall(SYS_ipc, 23, 0, 4096, 0600, 0, 0);
	unsigned long place = 0;

	syscall(SYS_ipc, 21, id, 0, &place, 0, 0);
	syscall(SYS_ipc, 24, id, IPC_STAT | IPC_64, 0, status, 0);
	syscall(SYS_ipc, 24, id, IPC_STAT, 0, status, 0);
	syscall(SYS_ipc, 24, id, IPC_STAT | IPC_64, 0, status, 0);
	syscall(SYS_ipc, 24, id, IPC_SET | IPC_64, 0, status, 0);
	syscall(SYS_ipc, 24, id, IPC_SET | IPC_64, 0, BAD, 0);
	syscall(SYS_shmctl, id, IPC_STAT, status);
	syscall(SYS_ipc, 22, 0, 0, 0, place, 0);
	syscall(SYS_ipc, 21, -1, 0, &place, 0, 0);
	syscall(SYS_ipc, 24, id, IPC_RMID, 0, 0, 0);
}

static void semaphores(void)
{
	long id = syscall(SYS_ipc, 2, 0, 2, 0600, 0, 0);
	struct sembuf changes[] = { { 0, 1, 0 }, { 1, 1, IPC_NOWAIT } };
	long time[] = { 1, 2 };
	void *value = (void *)5;

	syscall(SYS_ipc, 1, id, 2, 0, changes, 0);
	syscall(SYS_ipc, 4, id, 2, 0, changes, time);
	syscall(SYS_ipc, 3, id, 0, SETVAL, &value, 0);
	syscall(SYS_ipc, 3, id, 0, GETVAL | IPC_64, &value, 0);
	value = status;
	syscall(SYS_ipc, 3, id, 0, IPC_STAT | IPC_64, &value, 0);
	syscall(SYS_ipc, 3, id, 0, IPC_SET | IPC_64, &value, 0);
	syscall(SYS_semctl, id, 0, IPC_STAT, status);
	syscall(SYS_ipc, 3, id, 0, IPC_RMID, &value, 0);
	syscall(SYS_ipc, 3, id, 0, IPC_RMID, 0, 0);
	syscall(SYS_ipc, 3, id, 0, IPC_RMID, BAD, 0);
}

static void queues(void)
{
	long id = syscall(SYS_ipc, 13, 0, 0600, 0, 0, 0);
	struct {
		long type;
		char text[8];
	} message = { 5, "abcdefg" };
	struct {
		void *message;
		long type;
	} letter = { &message, 5 };

	syscall(SYS_ipc, 11, id, 8, 0, &message, 0);
	syscall(SYS_ipc, 12, id, 8, 0, &letter, 0);
	syscall(SYS_ipc, 11, id, 8, 0, &message, 0);
	syscall(SYS_ipc, 12 | NEW, id, 8, 0, &message, 5);
	syscall(SYS_ipc, 14, id, IPC_STAT | IPC_64, 0, status, 0);
	syscall(SYS_ipc, 14, id, IPC_SET | IPC_64, 0, status, 0);
	syscall(SYS_ipc, 14, id, IPC_RMID, 0, 0, 0);
	syscall(SYS_ipc, 99, 1, 2, 3, status, 5);
	syscall(SYS_ipc, 5 | 7 << 16, 1, 2, 3, 4, 5);
}

static void on_signal(int number)
{
	(void)number;
}

static void returns(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t some;

	sigaction(SIGUSR1, &action, 0);
	raise(SIGUSR1);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	sigaddset(&some, 40);
	sigprocmask(SIG_BLOCK, &some, 0);
	raise(SIGUSR1);
	action.sa_flags = SA_SIGINFO;
	sigaction(SIGUSR1, &action, 0);
	raise(SIGUSR1);
}

int main(void)
{
	static int64_t clock[40];

	sockets();
	memory();
	semaphores();
	queues();
	returns();
	syscall(SYS_clock_adjtime64, 0, clock);
	syscall(SYS_clock_adjtime64, 0, 0);
	return 7;
}
