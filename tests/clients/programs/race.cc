// SPDX-License-Identifier: MIT
// Two threads write one variable, one after the other, but nothing that counts orders them.
#include <pthread.h>
#include <sched.h>

static long shared;
static int written;

static inline void add(long n)
{
	shared += n;
}

static void *work(void *argument)
{
	add(*static_cast<long *>(argument));
	__atomic_store_n(&written, 1, __ATOMIC_RELAXED);
	return nullptr;
}

int main()
{
	long one = 1;
	pthread_t thread;

	pthread_create(&thread, nullptr, work, &one);
	while (!__atomic_load_n(&written, __ATOMIC_RELAXED))
		sched_yield();
	add(2);
	pthread_join(thread, nullptr);
	return shared == 7;
}
