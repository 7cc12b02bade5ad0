/* SPDX-License-Identifier: MIT */
/* Until the other threads of a program are where they stay: without a guess of how long that takes. For C and C++. */
#ifndef OTHERS_WAIT_H
#define OTHERS_WAIT_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns whether threads may wait for long in the system call @number. */
static inline int is_a_wait(long number)
{
	static const long waits[] = {
#ifdef SYS_pause
		SYS_pause,
#endif
#ifdef SYS_poll
		SYS_poll,
#endif
#ifdef SYS_clock_nanosleep_time64
		SYS_clock_nanosleep_time64,
#endif
#ifdef SYS_fcntl64
		SYS_fcntl64,
#endif
#ifdef SYS_futex_time64
		SYS_futex_time64,
#endif
		SYS_ppoll, SYS_clock_nanosleep, SYS_nanosleep, SYS_read, SYS_flock, SYS_fcntl, SYS_futex,
	};

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		if (waits[i] == number)
			return 1;
	return 0;
}

/* Returns whether the thread with the number @tid waits in such a call, whose first argument is not in the @size bytes of @gate. */
static inline int is_waiting(const char *tid, const void *gate, size_t size)
{
	unsigned long long first = 0;
	char path[64];
	long number = -1;
	FILE *file;
	int n = 0;

	(void)snprintf(path, sizeof path, "/proc/self/task/%.20s/syscall", tid);
	file = fopen(path, "re");
	if (file) {
		/* Of a thread that runs there is no number. */
		n = fscanf(file, "%ld %llx", &number, &first);
		(void)fclose(file);
	}
	return n == 2 && is_a_wait(number) && first - (uintptr_t)gate >= size;
}

/* Waits until each thread but the calling one waits; not for the barrier, or the like, @gate of @size bytes, at which all have arrived. */
static inline void wait_for_others(const void *gate, size_t size)
{
	const struct timespec pause = { 0, 1000000 };
	const long own = syscall(SYS_gettid);
	int n_running = 1;

	while (n_running) {
		DIR *tasks = opendir("/proc/self/task");
		struct dirent *task;

		n_running = 0;
		while (tasks && (task = readdir(tasks)))
			if (task->d_name[0] != '.' && atol(task->d_name) != own)
				n_running += !is_waiting(task->d_name, gate, size);
		if (tasks)
			closedir(tasks);
		(void)nanosleep(&pause, NULL);
	}
}

#endif
