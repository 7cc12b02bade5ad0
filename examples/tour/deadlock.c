/* SPDX-License-Identifier: MIT */
/* Two threads that wait for each other for ever. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t knife = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t board = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void cook(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	sleep(1);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *helper(void *unused)
{
	cook(&board, &knife);
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, helper, NULL);
	cook(&knife, &board);
	pthread_join(thread, NULL);
	return 0;
}
