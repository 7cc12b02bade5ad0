/* SPDX-License-Identifier: MIT */
/*
 * alarms: makes calls while a timer interrupts them 5,000 times in a second. Its handler makes
 * calls, too, and leaves some by siglongjmp(). Each result is checked. Handlers restart calls, then
 * do not.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int round_number, n_handled, n_jumps;
static int ends[2];

static void handle(int number)
{
	const int before = errno;
	char zeros[8] = "x";
	int fd;

	(void)number;
	n_handled++;
	fd = open("/dev/zero", O_RDONLY);
	if (fd < 0 || read(fd, zeros, sizeof zeros) != sizeof zeros || *zeros)
		_exit(9);
	close(fd);
	errno = before;
	if (round_number == 2 && n_handled % 3 == 0) {
		n_jumps++;
		siglongjmp(back, 1);
	}
}

/* Returns what is wrong; 0: nothing. */
static int make_calls(int *n_interrupted)
{
	char c;

	for (int i = 0; i < 50; i++) {
		ssize_t n;

		while ((n = write(ends[1], "x", 1)) < 0 && errno == EINTR)
			++*n_interrupted;
		if (n != 1)
			return 4;
		while ((n = read(ends[0], &c, 1)) < 0 && errno == EINTR)
			++*n_interrupted;
		if (n != 1 || c != 'x' || getppid() <= 0)
			return 5;
	}
	if (usleep(300) && errno == EINTR)
		++*n_interrupted;
	return 0;
}

int main(void)
{
	volatile int wrong = 0;
	int n_interrupted = 0;

	if (pipe(ends))
		return 1;
	for (round_number = 0; round_number < 3; round_number++) {
		const struct sigaction action = { .sa_handler = handle,
						  .sa_flags = round_number == 1 ? 0 : SA_RESTART };
		const struct itimerval often = { { 0, 200 }, { 0, 200 } };
		const struct itimerval never = { { 0, 0 }, { 0, 0 } };
		const time_t end = time(NULL) + 2;

		sigaction(SIGALRM, &action, NULL);
		setitimer(ITIMER_REAL, &often, NULL);
		/* On a busy machine it takes longer. */
		while (!wrong && (time(NULL) < end || n_handled <= 100 ||
				  (round_number == 1 && n_interrupted <= 10) ||
				  (round_number == 2 && n_jumps <= 10))) {
			/* A handler may leave each round of calls before its end. */
			if (!sigsetjmp(back, 1))
				wrong = make_calls(&n_interrupted);
		}
		setitimer(ITIMER_REAL, &never, NULL);
	}
	printf("%d %d %d %d\n", wrong, n_handled > 100, n_jumps > 10, n_interrupted > 10);
	return 3;
}
