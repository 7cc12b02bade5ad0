/* SPDX-License-Identifier: MIT */
/*
 * higher KIND: prints "ready" and how deep it is in deep(), and waits on a stack that goes on at a higher address:
 * - overflow: in the handler of an overflow, on an alternate stack; its limit is that of who looks, for whom the kernel
 *   would make the stack larger otherwise
 * - nested: in the last of 6 handlers, each of which has interrupted the one before and is on a stack below its stack
 * - condition: has three threads, one of which waits for a condition whose variable is above its stack
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM = 1 << 16, LEVELS = 6 };

/* include/uapi/linux/signal.h: a handler may change the alternate stack that it is on. */
#define AUTODISARM (1U << 31)

static volatile int depth;
static int most;

static void wait_here(void)
{
	printf("ready %d\n", depth);
	fflush(stdout);
	for (;;)
		pause();
}

static void on_overflow(int number)
{
	(void)number;
	wait_here();
}

static void take_stack(void *room, int number, void (*fn)(int))
{
	const stack_t other = { .ss_sp = room, .ss_flags = (int)AUTODISARM, .ss_size = ROOM };
	struct sigaction action = { .sa_handler = fn, .sa_flags = SA_ONSTACK | SA_NODEFER };

	sigaltstack(&other, NULL);
	sigaction(number, &action, NULL);
}

__attribute__((noinline)) int deep(int n)
{
	volatile char room[5000]; /* an overflow leaves the mapping by more than a page */

	depth = n;
	room[0] = (char)n;
	if (n == most) {
		raise(SIGUSR1);
		return room[0];
	}
	return deep(n + 1) + room[0];
}

static char *low;
static int level;

static void on_level(int number)
{
	if (++level == LEVELS)
		wait_here();
	take_stack(low + (LEVELS - level) * ROOM, number, on_level);
	raise(number);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t *condition;

static void *waiter(void *unused)
{
	pthread_mutex_lock(&mutex);
	depth++;
	for (;;)
		pthread_cond_wait(condition, &mutex);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2)
		return 2;
	low = mmap((void *)0x10000000, (LEVELS + 1) * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(argv[1], "overflow")) {
		take_stack(low, SIGSEGV, on_overflow);
		most = -1;
		return deep(0);
	}
	if (!strcmp(argv[1], "nested")) {
		most = 100;
		take_stack(low + LEVELS * ROOM, SIGUSR1, on_level);
		return deep(0);
	}
	/* Mappings go downwards. */
	condition = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_cond_init(condition, NULL);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, waiter, NULL);
	while (depth < 3)
		usleep(1000);
	wait_here();
	return 0;
}
