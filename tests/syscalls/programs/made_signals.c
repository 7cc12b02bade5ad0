/* SPDX-License-Identifier: MIT */
#include "made.h"

#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <fcntl.h>
#include <time.h>

static void on_signal(int number)
{
	(void)number;
}

static void actions(void)
{
	struct {
		void *handler;
		long flags;
		void *restorer;
		long mask;
	} raw = { (void *)1, 0x14000000, (void *)5, 0x11 };
	struct sigaction sa = { .sa_handler = on_signal,
				.sa_flags = SA_RESTART | SA_NODEFER | SA_RESETHAND | SA_ONSTACK };
	CALL(rt_sigaction, SIGUSR1, &raw, 0, 8);
	CALL(rt_sigaction, SIGUSR1, 0, &raw, 8);
	raw.handler = (void *)0x123456;
	raw.mask = -1;
	raw.flags = 4;
	CALL(rt_sigaction, SIGUSR1, &raw, &raw, 8);
	CALL(rt_sigaction, SIGUSR1, 0, &raw, 8);
	CALL(rt_sigaction, SIGUSR1, BAD, 0, 8);
	sigaction(SIGUSR2, &sa, 0);
	CALL(rt_sigaction, 99, 0, 0, 8);
	stack_t st = { big, 0, 8192 }, old;
	sigaltstack(&st, &old);
	kill(getpid(), SIGUSR2);
	st.ss_flags = SS_DISABLE;
	sigaltstack(&st, &old);
}

void signals(void)
{
	sigset_t set;
	struct timespec zero = { 0, 1 };
	siginfo_t info;
	union sigval value = { .sival_int = 7 };
	actions();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, 0);
	CALL(rt_sigprocmask, 99, &set, big, 8);
	CALL(rt_sigprocmask, 0, &set, big, 4);
	kill(getpid(), SIGUSR1);
	sigtimedwait(&set, &info, &zero);
	sigtimedwait(&set, &info, &zero);
	sigqueue(getpid(), SIGRTMIN + 3, value);
	sigpending(&set);
	sigtimedwait(&set, &info, &zero);
	CALL(rt_sigprocmask, 2, 0, big, 8);
	CALL(rt_sigpending, BAD, 8);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	CALL(read, fd, big, 128);
	CALL(rt_sigsuspend, BAD, 8);
	raise(SIGUSR1);
}

void timers(void)
{
	struct sigevent e = { .sigev_notify = SIGEV_NONE,
			      .sigev_signo = 5,
			      .sigev_value = { .sival_int = 3 } };
	int timer;
	struct itimerspec its = { { 1, 2 }, { 3, 4 } };
	struct itimerval iv = { { 0, 0 }, { 100, 5 } };
	CALL(timer_create, CLOCK_MONOTONIC, &e, &timer);
	e.sigev_notify = SIGEV_THREAD_ID;
	e._sigev_un._tid = getpid();
	CALL(timer_create, CLOCK_REALTIME, &e, &timer);
	CALL(timer_settime, 0, TIMER_ABSTIME, &its, big);
	CALL(timer_gettime, 0, big);
	CALL(timer_getoverrun, 0);
	CALL(timer_delete, 0);
	CALL(timer_delete, 77);
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, &its);
	timerfd_gettime(fd, &its);
	setitimer(ITIMER_REAL, &iv, 0);
	getitimer(ITIMER_VIRTUAL, &iv);
	alarm(0);
	CALL(clock_gettime, CLOCK_REALTIME, 0);
	CALL(clock_gettime, 77, big);
	CALL(clock_getres, 1, big);
	CALL(clock_settime, CLOCK_MONOTONIC, BAD);
	CALL(nanosleep, &(struct timespec){ 0, 5 }, big);
	CALL(nanosleep, 0, 0);
	CALL(nanosleep, &(struct timespec){ 1, -1 }, BAD);
	CALL(clock_nanosleep, CLOCK_MONOTONIC, 1, &(struct timespec){ 0, 5 }, 0);
	CALL(clock_nanosleep, 0, 0, BAD, 0);
	CALL(eventfd2, 5, EFD_SEMAPHORE | EFD_NONBLOCK);
	CALL(eventfd, 5);
	int in = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	inotify_add_watch(in, "/tmp", IN_CREATE | IN_DELETE | IN_ONLYDIR);
	inotify_rm_watch(in, 1);
	CALL(memfd_create, "name", 3);
	fd = CALL(memfd_create, "name", 7 | (21u << 26));
	fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK);
	fcntl(fd, F_GET_SEALS);
}

void futexes(void)
{
	struct timespec t = { 0, 1 };
	CALL(futex, big, FUTEX_WAKE_PRIVATE, 1, 5, 6, 7);
	CALL(futex, big, FUTEX_WAIT | 128 | 256, 1, &t, 6, 7);
	CALL(futex, big, FUTEX_CMP_REQUEUE, 1, 5, big + 4, 7);
	CALL(futex, big, FUTEX_WAKE_OP, 1, 5, big + 4, 0x12345678);
	CALL(futex, big, 99, 1, 5, 6, 7);
	CALL(futex, big, 9 | 256, 1, &t, 6, 7);
	CALL(futex, big, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, 0, 0, -1);
	CALL(futex, big, FUTEX_LOCK_PI_PRIVATE, 1, &t, 0, 0);
	CALL(futex, big, FUTEX_UNLOCK_PI, 1, 0, 0, 0);
	CALL(futex, big, FUTEX_REQUEUE_PRIVATE, 1, 2, big + 8, 0);
	CALL(futex, big, FUTEX_WAKE_BITSET, 1, 2, 3, 4);
	CALL(futex, big, FUTEX_WAIT_REQUEUE_PI, 1, &t, big + 8, 0);
	CALL(futex, big, FUTEX_CMP_REQUEUE_PI, 1, 2, big + 8, 4);
	CALL(futex, big, FUTEX_WAKE_OP_PRIVATE, 1, 2, big + 8, 0x94001002);
	CALL(futex, BAD, FUTEX_WAIT, 1, BAD, 0, 0);
}

static void selects(void)
{
	fd_set set;
	struct timespec t = { 0, 1 };
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	struct {
		void *set;
		long size;
	} mask = { &signals, 8 };
	FD_ZERO(&set);
	FD_SET(1, &set);
	CALL(select, 2, 0, &set, 0, &(struct timeval){ 0, 0 });
	FD_SET(5, &set);
	CALL(select, 6, 0, &set, &set, &(struct timeval){ 0, 0 });
	FD_ZERO(&set);
	FD_SET(1, &set);
	CALL(pselect6, 2, 0, &set, 0, &t, &mask);
	CALL(select, -1, &set, 0, 0, 0);
	CALL(select, 0, 0, 0, 0, &(struct timeval){ 0, 5 });
	CALL(pselect6, 2, BAD, &set, 0, &t, &mask);
	CALL(select, 2, &set, 0, 0, &(struct timeval){ 0, 0 });
}

void waiting(void)
{
	struct pollfd p[3] = { { 0, POLLIN | POLLPRI | POLLRDHUP, 0 },
			       { -1, 1, 0 },
			       { 1, POLLOUT, 0 } };
	struct timespec t = { 0, 1 };
	sigset_t set;
	struct epoll_event e = { EPOLLIN | EPOLLONESHOT, { .fd = 3 } };
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	poll(p, 3, 0);
	ppoll(p, 3, &t, &set);
	ppoll(p, 3, &t, 0);
	CALL(poll, BAD, 1, 0);
	CALL(poll, p, 0, 0);
	CALL(poll, 0, 0, 1);
	p[0].fd = 99;
	poll(p, 1, 0);
	poll((struct pollfd *)end_of_page(8), 2, 0);
	selects();
	int ends[2];
	pipe(ends);
	int fd = CALL(epoll_create, 5);
	CALL(epoll_create1, EPOLL_CLOEXEC);
	epoll_ctl(fd, EPOLL_CTL_ADD, ends[1],
		  &(struct epoll_event){ EPOLLOUT, { .u64 = 0x123456789abc } });
	CALL(epoll_wait, fd, big, 5, 0);
	epoll_ctl(fd, EPOLL_CTL_MOD, ends[1], &e);
	CALL(epoll_pwait, fd, big, 5, 0, 0, 8L);
	epoll_ctl(fd, 9, ends[1], &e);
	epoll_ctl(fd, EPOLL_CTL_DEL, ends[1], &e);
	epoll_ctl(fd, EPOLL_CTL_ADD, ends[1], 0);
	CALL(epoll_pwait2, fd, big, 5, &t, &set, 8L);
	CALL(epoll_wait, fd, BAD, 0, 0);
	CALL(epoll_pwait2, fd, big, 0, &t, &set, 8L);
}

void system_v(void)
{
	struct sembuf ops[2] = { { 0, 1, SEM_UNDO }, { 1, 0, IPC_NOWAIT } };
	struct timespec t = { 0, 1 };
	struct {
		long type;
		char text[9];
	} m = { 3, "message" };
	struct mq_attr a = { 0, 5, 6, 0 };
	int shm = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
	void *at = shmat(shm, 0, SHM_RDONLY);
	shmdt(at);
	shmctl(shm, IPC_STAT, (void *)big);
	CALL(shmctl, shm, IPC_SET, big);
	CALL(shmctl, shm, IPC_SET, BAD);
	CALL(shmctl, shm, IPC_INFO, big);
	CALL(shmctl, -1, SHM_STAT_ANY, big);
	shmctl(shm, IPC_RMID, 0);
	shmget(0x1234, 5, IPC_EXCL);
	int sem = semget(IPC_PRIVATE, 2, 0600);
	semop(sem, ops, 2);
	semtimedop(sem, ops, 2, &t);
	semctl(sem, 0, SETVAL, 5);
	semctl(sem, 0, GETVAL);
	CALL(semctl, sem, 0, IPC_STAT, big);
	CALL(semctl, sem, 0, IPC_SET, big);
	CALL(semctl, sem, 0, IPC_INFO, big);
	CALL(semctl, sem, 0, GETALL, big);
	CALL(semctl, sem, 0, IPC_STAT, BAD);
	semctl(sem, 0, IPC_RMID);
	int q = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
	msgsnd(q, &m, 8, IPC_NOWAIT);
	CALL(msgrcv, q, &m, 8, 0, MSG_NOERROR | IPC_NOWAIT);
	CALL(msgrcv, q, &m, 8, 0, IPC_NOWAIT);
	msgctl(q, IPC_STAT, (void *)big);
	CALL(msgctl, q, IPC_SET, big);
	CALL(msgctl, q, IPC_INFO, big);
	msgctl(q, IPC_RMID, 0);
	CALL(semop, 99, BAD, 2);
	mq_open("/nope", O_RDWR);
	mqd_t mq = mq_open("/fathom-made", O_RDWR | O_CREAT, 0600, &a);
	mq_send(mq, "abc", 3, 7);
	CALL(mq_timedreceive, mq, big, 6, 0, 0);
	mq_getattr(mq, &a);
	mq_unlink("/fathom-made");
	mq_notify(mq, 0);
}
