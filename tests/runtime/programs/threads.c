/* SPDX-License-Identifier: MIT */
/* A program of its own, also without a dynamic linker: says where each thread has its variables. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__thread int exported_one = 5;
static __thread long static_one[3] = { 1, 2, 3 };
__thread char aligned_one[100] __attribute__((aligned(64)));

/* Behind .tbss, which takes no room. */
static pthread_barrier_t barrier;

static void *tell(void *unused)
{
	exported_one++;
	printf("exported_one:%d 0x%lx\n", (int)gettid(), (unsigned long)&exported_one);
	printf("static_one:%d 0x%lx\n", (int)gettid(), (unsigned long)static_one);
	printf("aligned_one:%d 0x%lx\n", (int)gettid(), (unsigned long)aligned_one);
	pthread_barrier_wait(&barrier);
	/* Until the process is killed. */
	pthread_barrier_wait(&barrier);
	return unused;
}

/* Starts a thread; on a stack of the program's own it stands in glibc's other list, before the main
 * thread. */
static void begin(char *stack, size_t size)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
#ifdef OWN_STACKS
	pthread_attr_setstack(&attributes, stack, size);
#else
	(void)stack;
	(void)size;
#endif
	pthread_create(&thread, &attributes, tell, NULL);
}

int main(void)
{
	static char stacks[2][1 << 18] __attribute__((aligned(64)));

	pthread_barrier_init(&barrier, NULL, 3);
	begin(stacks[0], sizeof stacks[0]);
	begin(stacks[1], sizeof stacks[1]);
	printf("exported_one:%d 0x%lx\n", (int)gettid(), (unsigned long)&exported_one);
	printf("static_one:%d 0x%lx\n", (int)gettid(), (unsigned long)static_one);
	printf("aligned_one:%d 0x%lx\n", (int)gettid(), (unsigned long)aligned_one);
	printf("barrier 0x%lx\n", (unsigned long)&barrier);
	pthread_barrier_wait(&barrier);
	puts("done");
	fflush(stdout);
	return getchar();
}
