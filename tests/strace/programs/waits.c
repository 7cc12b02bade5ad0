/* SPDX-License-Identifier: MIT */
/*
 * waits: waits for a blocked signal in calls that unblock it for as long as they take. Its handler
 * must run in each, once. Then asks about 40 descriptors, the last of which is ready, and about the
 * length of an address that is not wanted.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { TIMES = 20, DESCRIPTORS = 40 };

static volatile int n_handled;

static void handle(int number)
{
	(void)number;
	n_handled++;
}

int main(void)
{
	const struct sigaction action = { .sa_handler = handle };
	const struct itimerval soon = { { 0, 0 }, { 0, 3000 } };
	const struct timespec second = { 5, 0 };
	struct pollfd fds[DESCRIPTORS];
	struct epoll_event event;
	socklen_t length = 16;
	sigset_t blocked;
	sigset_t none;
	int pair[2];
	char c;
	int n = 0;
	const int epoll = epoll_create1(0);

	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 4 * TIMES; i++) {
		setitimer(ITIMER_REAL, &soon, NULL);
		switch (i % 4) {
		case 0:
			sigsuspend(&none);
			break;
		case 1:
			n += ppoll(NULL, 0, &second, &none);
			break;
		case 2:
			n += pselect(0, NULL, NULL, NULL, &second, &none);
			break;
		default:
			n += epoll_pwait(epoll, &event, 1, 5000, &none);
		}
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[1], "x", 1) != 1)
		return 1;
	for (int i = 0; i < DESCRIPTORS; i++)
		fds[i] = (struct pollfd){ .fd = i < DESCRIPTORS - 1 ? pair[1] : pair[0],
					  .events = POLLIN };
	if (poll(fds, DESCRIPTORS, 100) != 1 || recvfrom(pair[0], &c, 1, 0, NULL, &length) != 1)
		return 1;
	printf("%d %d\n", n_handled, n);
	return 3;
}
