/* SPDX-License-Identifier: MIT */
/*
 * crash_report: reports a crash of any thread, also when its stack has overflowed.
 *	cc -g -O2 -pthread -o crash_report crash_report.c $(pkg-config --cflags --libs fathom)
 */
#include <fathom/fathom.h>
#include <pthread.h>
#include <stdio.h>

static volatile unsigned depth;

static unsigned descend(const volatile char *above)
{
	volatile char room[256] = { above[0] };

	/* Always true, but the compiler does not know. */
	return ++depth ? descend(room) + (unsigned)room[0] : 0;
}

static void *run(void *data)
{
	const char start = 0;

	/* Each thread needs a stack for signals: without, its overflow is not reported. */
	fathom_crash_thread_stack(NULL);
	descend(&start);
	return data;
}

int main(void)
{
	struct fathom_errinfo info;
	pthread_t thread;
	char text[512];

	if (fathom_crash_install(NULL, NULL, &info)) {
		fathom_errinfo_format(&info, text, sizeof text);
		fprintf(stderr, "no crash handler: %s\n", text);
	}
	if (pthread_create(&thread, NULL, run, NULL))
		return 1;
	pthread_join(thread, NULL);
}
