/* SPDX-License-Identifier: MIT */
/* damaged: has a thread for each shape of damage.h, called by its number, which waits there. Prints "ready" before. */
#define _GNU_SOURCE
#include <stdatomic.h>

#include "../../lib/damage.h"

static _Atomic int n_waiting;

__attribute__((noinline)) static void look(void)
{
	if (++n_waiting == DAMAGE_ALL) {
		puts("ready");
		fflush(stdout);
	}
	for (;;)
		pause();
}

static void *begin(void *damage)
{
	damage_run(damage);
	return NULL;
}

int main(void)
{
	static struct damage damages[DAMAGE_ALL];
	pthread_attr_t attr;
	pthread_t thread;
	char name[16];

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 17);
	for (int i = 0; i < DAMAGE_ALL; i++) {
		damage_number(i, look, &damages[i]);
		if (pthread_create(&thread, &attr, begin, &damages[i]))
			return 1;
		snprintf(name, sizeof name, "%d-%d-%d", damages[i].stack, damages[i].value, damages[i].size);
		pthread_setname_np(thread, name);
	}
	pause();
	return 0;
}
