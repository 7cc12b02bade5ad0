/* SPDX-License-Identifier: MIT */
/* Children whose threads are read and stopped. They count in shared memory what happens to them. */
#ifndef VICTIM_H
#define VICTIM_H

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/stack/capture.h"
#include "machine.h"

/* How long anything may take, s, before a test fails. */
#define PATIENCE 600

/* What victims tell. */
struct told {
	_Atomic int ready;
	_Atomic int eintr;   /* calls that ended with EINTR */
	_Atomic int other;   /* that ended otherwise */
	_Atomic int handled; /* signals */
	_Atomic int child;
	_Atomic uint64_t rounds;
	_Atomic uint64_t sp;
	_Atomic uint64_t pc;
};

static struct told *told;

typedef void victim_fn(const void *data);

static inline pid_t spawn(victim_fn *fn, const void *data)
{
	pid_t pid;

	memset((void *)told, 0, sizeof *told);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The name may look like what follows it in /proc/PID/stat. */
		prctl(PR_SET_NAME, "a victim) Z 1");
		fn(data);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static inline void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static inline void nap(void)
{
	const struct timespec t = { .tv_nsec = 200000 };

	nanosleep(&t, NULL);
}

/* Waits until @condition. */
#define UNTIL(condition)                                           \
	do {                                                       \
		const time_t end_ = time(NULL) + PATIENCE;         \
		while (!(condition)) {                             \
			if (time(NULL) > end_)                     \
				fail_msg("never: %s", #condition); \
			nap();                                     \
		}                                                  \
	} while (0)

static inline char state_of(pid_t pid)
{
	char path[48];
	char text[256] = "";
	const char *at;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	close(fd);
	at = strrchr(text, ')');
	return at ? at[2] : '\0';
}

static inline long status_of(pid_t pid, const char *name)
{
	char path[48];
	char line[256];
	long value = -1;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* The number of the call that it sleeps in; -1: none. */
static inline long call_of(pid_t pid)
{
	char path[48];
	char text[256] = "";
	char *after;
	long number;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/syscall", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = '\0';
	close(fd);
	number = strtol(text, &after, 10);
	return after == text ? -1 : number;
}

/* A capture of a victim, with its map and a reader of its memory. */
struct watched {
	pid_t pid;
	int proc;
	int memory;
	struct fathom_maps maps;
	struct fathom_reader reader;
	struct fathom_capture *capture;
};

static inline size_t read_memory(void *data, uint64_t avma, void *to, size_t size)
{
	const ssize_t got = pread(*(int *)data, to, size, (off_t)avma);

	return got > 0 ? (size_t)got : 0;
}

/* How long captures wait for threads to stop, ms. A test whose thread cannot be stopped makes it
 * less. */
static uint32_t stop_ms = 1000 * PATIENCE;

/* Fills in @w, which stays where it is. */
static inline void watch(struct watched *w, pid_t pid)
{
	struct fathom_capture_options o = { .pid = pid,
					    .machine = MACHINE,
					    .deadline_ms = stop_ms };
	char path[48];

	w->pid = pid;
	(void)snprintf(path, sizeof path, "/proc/%d", pid);
	w->proc = open(path, O_PATH | O_DIRECTORY);
	(void)snprintf(path, sizeof path, "/proc/%d/mem", pid);
	w->memory = open(path, O_RDONLY);
	(void)snprintf(path, sizeof path, "/proc/%d/maps", pid);
	assert_int_equal(fathom_maps_read(path, &w->maps, NULL), FATHOM_OK);
	w->reader = (struct fathom_reader){ .read = read_memory, .data = &w->memory };
	o.proc = w->proc;
	o.memory = &w->reader;
	o.maps = &w->maps;
	assert_int_equal(fathom_capture_create(&o, &w->capture, NULL), FATHOM_OK);
}

static inline void unwatch(struct watched *w)
{
	fathom_capture_destroy(w->capture);
	fathom_maps_deinit(&w->maps);
	close(w->memory);
	close(w->proc);
}

static inline struct fathom_thread_copy stop_one(struct watched *w, bool insist)
{
	struct fathom_thread_copy copy = { .tid = w->pid };

	fathom_capture_stop(w->capture, &copy, 1, false, insist);
	return copy;
}

/* Waits until the victim sleeps in a call; false if it has ended without. */
static inline bool sleeps(pid_t pid)
{
	UNTIL(state_of(pid) == 'Z' || (told->ready && state_of(pid) == 'S' && call_of(pid) >= 0));
	return state_of(pid) != 'Z';
}

/* How often most victims are stopped. */
#define STOPS 20

/* Makes the memory that victims tell in; false if there is none. */
static inline bool make_told(void)
{
	told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return told != MAP_FAILED;
}

/* Reads thread @tid while it sleeps. */
static inline void peek_at(struct fathom_capture *c, int32_t tid, struct fathom_thread_copy *ret)
{
	*ret = (struct fathom_thread_copy){ .tid = tid };
	fathom_capture_peek(c, ret);
}

#endif
