/* SPDX-License-Identifier: MIT */
/*
 * Waits for ever in calls that a stop ends with EINTR (signal(7)), each in a thread of its own. A line on standard input ends
 * the waits, by what each waits for. Prints how often each call was interrupted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { N = 5 };

static const char *const names[N] = { "epoll_wait", "epoll_pwait", "semop", "semtimedop", "rt_sigtimedwait" };
static int n_interrupted[N];
static int loops[N], gates[N];
static int semaphores;

static int wait_once(int i)
{
	struct sembuf take = { .sem_num = (unsigned short)i, .sem_op = -1 };
	struct epoll_event event;
	sigset_t set;

	switch (i) {
	case 0:
		return epoll_wait(loops[i], &event, 1, -1);
	case 1:
		return epoll_pwait(loops[i], &event, 1, -1, NULL);
	case 2:
		return semop(semaphores, &take, 1);
	case 3:
		return semtimedop(semaphores, &take, 1, NULL);
	default:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		return (int)syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 8L);
	}
}

static void *wait_main(void *data)
{
	const int i = (int)(long)data;

	while (wait_once(i) < 0 && errno == EINTR)
		n_interrupted[i]++;
	return NULL;
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t threads[N];
	sigset_t set;
	char line[16];

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	semaphores = semget(IPC_PRIVATE, N, 0600);
	for (int i = 0; i < N; i++) {
		loops[i] = epoll_create1(0);
		gates[i] = eventfd(0, 0);
		epoll_ctl(loops[i], EPOLL_CTL_ADD, gates[i], &event);
		pthread_create(&threads[i], NULL, wait_main, (void *)(long)i);
	}
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		return 1;
	for (int i = 0; i < N; i++) {
		struct sembuf give = { .sem_num = (unsigned short)i, .sem_op = 1 };

		eventfd_write(gates[i], 1);
		semop(semaphores, &give, 1);
		if (i == N - 1)
			pthread_kill(threads[i], SIGUSR1);
		pthread_join(threads[i], NULL);
		printf("%s %d\n", names[i], n_interrupted[i]);
	}
	semctl(semaphores, 0, IPC_RMID);
	return 0;
}
