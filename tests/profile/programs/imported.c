/* SPDX-License-Identifier: MIT */
/* Two threads and a child that run for some hundred milliseconds, in calls of known depth. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) void leaf(int n)
{
	for (int i = 0; i < n; i++)
		sum += (unsigned long)i * (unsigned long)i;
}

__attribute__((noinline)) void middle(int n)
{
	leaf(n);
	sum++;
}

__attribute__((noinline)) void deeper(int depth, int n)
{
	if (depth)
		deeper(depth - 1, n);
	else
		middle(n);
	sum++;
}

static void *run(void *data)
{
	for (int i = 0; i < 20; i++)
		deeper(5, 3000000);
	return data;
}

int main(void)
{
	pthread_t thread;
	int status;

	if (pthread_create(&thread, NULL, run, NULL))
		return 1;
	for (int i = 0; i < 20; i++) {
		FILE *f = fopen("/dev/null", "w");

		for (int k = 0; f && k < 3000; k++) {
			fputc(k, f);
			fflush(f);
		}
		if (f)
			fclose(f);
		middle(1000000);
	}
	pthread_join(thread, NULL);
	if (!fork()) {
		deeper(3, 50000000);
		_exit(0);
	}
	return wait(&status) < 0;
}
