/* SPDX-License-Identifier: MIT */
/* Two threads wait in read(), within two functions, until standard input has ended. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int inner(void)
{
	char byte;

	return (int)read(0, &byte, 1);
}

__attribute__((noinline)) static int outer(void)
{
	return inner() + 1;
}

static void *wait_there(void *data)
{
	return outer() ? data : NULL;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, wait_there, NULL);
	printf("waits\n");
	fflush(stdout);
	(void)outer();
	pthread_join(thread, NULL);
	return 3;
}
