// SPDX-License-Identifier: MIT
// Two threads write one variable, one after the other, but nothing that counts orders them. The
// first is still there when the second writes: what is said of it does not depend on chance.
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static long shared;
static int written;
static int over[2];

static inline void add(long n)
{
	shared += n;
}

static void *work(void *argument)
{
	char byte;

	add(*static_cast<long *>(argument));
	__atomic_store_n(&written, 1, __ATOMIC_RELAXED);
	return read(over[0], &byte, 1) == 1 ? argument : nullptr;
}

int main()
{
	long one = 1;
	pthread_t thread;

	if (pipe(over) || pthread_create(&thread, nullptr, work, &one))
		return 1;
	while (!__atomic_load_n(&written, __ATOMIC_RELAXED))
		sched_yield();
	add(2);
	if (write(over[1], "", 1) != 1)
		return 1;
	pthread_join(thread, nullptr);
	return 0;
}
