/* SPDX-License-Identifier: MIT */
#include "cli/stream.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/common.h"

#define FIRST_CAP ((size_t)64 << 10)

/* Bytes of a batch that takes long enough for more input to arrive meanwhile. */
#define AHEAD_FROM ((size_t)4 << 10)

/* Bytes per read of the thread. */
#define CHUNK ((size_t)64 << 10)

/* The read-ahead thread and its input that was not taken yet. */
struct ahead {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below, except chunk */
	pthread_cond_t came;  /* signals a change to take_ahead() */
	pthread_cond_t taken;
	char *buf;
	size_t n;
	size_t cap;
	size_t most;
	int fd;
	int error;    /* errno of a failed read, or 0 */
	bool settled; /* nothing more was ready, or there was no room */
	bool ended;
	char chunk[CHUNK];
};

_Noreturn static void fail(int number)
{
	complain("standard input", strerror(number), NULL);
	exit(EXIT_USAGE);
}

/* Makes room for @more bytes after the @n of @buf; returns false without memory. */
static bool make_room(char **buf, size_t *cap, size_t n, size_t more)
{
	size_t larger = *cap ? *cap : FIRST_CAP;
	char *moved;

	if (*cap - n >= more)
		return true;
	while (larger - n < more)
		larger *= 2;
	moved = realloc(*buf, larger);
	if (!moved)
		return false;
	*buf = moved;
	*cap = larger;
	return true;
}

static ssize_t read_once(int fd, char *to, size_t size)
{
	ssize_t got;

	do
		got = read(fd, to, size);
	while (got < 0 && errno == EINTR);
	return got;
}

static bool is_ready(int fd, int seconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 1000 * seconds) > 0;
}

/* Adds @got bytes or the error @number once there is room. */
static void add_chunk(struct ahead *a, ssize_t got, int number)
{
	const size_t more = got > 0 ? (size_t)got : 0;

	while (a->n && a->n + more > a->most) {
		a->settled = true;
		(void)pthread_cond_signal(&a->came);
		(void)pthread_cond_wait(&a->taken, &a->lock);
	}
	if (!make_room(&a->buf, &a->cap, a->n, more)) {
		got = -1;
		number = ENOMEM;
	} else if (more) {
		memcpy(a->buf + a->n, a->chunk, more);
		a->n += more;
	}
	a->error = got < 0 ? number : 0;
	a->ended = got <= 0;
	a->settled = a->ended || a->n >= a->most || !is_ready(a->fd, 0);
	if (a->settled)
		(void)pthread_cond_signal(&a->came);
}

static void unlock(void *lock)
{
	(void)pthread_mutex_unlock(lock);
}

/* Reads until the input ends. Can be cancelled while it waits for input or room. */
static void *read_ahead(void *arg)
{
	struct ahead *a = arg;
	bool more = true;

	while (more) {
		const ssize_t got = read_once(a->fd, a->chunk, CHUNK);
		const int number = errno;

		(void)pthread_mutex_lock(&a->lock);
		pthread_cleanup_push(unlock, &a->lock);
		add_chunk(a, got, number);
		more = !a->ended;
		pthread_cleanup_pop(1);
	}
	return NULL;
}

static void ahead_free(struct ahead *a)
{
	(void)pthread_cond_destroy(&a->taken);
	(void)pthread_cond_destroy(&a->came);
	(void)pthread_mutex_destroy(&a->lock);
	free(a->buf);
	free(a);
}

/* Starts the read-ahead thread; if that fails, this thread goes on reading. */
static void start_ahead(struct input_stream *s)
{
	struct ahead *a = calloc(1, sizeof *a);
	pthread_condattr_t clock;
	sigset_t all;
	sigset_t before;

	if (!a)
		return;
	a->fd = s->fd;
	a->most = s->most;
	(void)pthread_mutex_init(&a->lock, NULL);
	(void)pthread_condattr_init(&clock);
	(void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&a->came, &clock);
	(void)pthread_condattr_destroy(&clock);
	(void)pthread_cond_init(&a->taken, NULL);
	/* The first thread handles all signals. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&a->thread, NULL, read_ahead, a))
		ahead_free(a);
	else
		s->ahead = a;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Counts @more bytes that were appended to buf. */
static void add_bytes(struct input_stream *s, size_t more)
{
	s->has_line = s->has_line || (more && memchr(s->buf + s->n, '\n', more));
	s->n += more;
}

/* Waits until the thread's input is a batch, for @seconds; 0: forever. Returns whether it is. */
static bool wait_ahead(struct ahead *a, int seconds)
{
	struct timespec until;
	int result = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	while (result != ETIMEDOUT && !a->ended && !(a->n && a->settled))
		result = seconds ? pthread_cond_timedwait(&a->came, &a->lock, &until)
				 : pthread_cond_wait(&a->came, &a->lock);
	return result != ETIMEDOUT;
}

/* Appends the thread's input once it is a batch. */
static void take_ahead(struct input_stream *s)
{
	struct ahead *a = s->ahead;
	int error;

	(void)pthread_mutex_lock(&a->lock);
	if (!wait_ahead(a, s->patience)) {
		(void)pthread_mutex_unlock(&a->lock);
		s->is_silent = true;
		return;
	}
	error = make_room(&s->buf, &s->cap, s->n, a->n) ? a->error : ENOMEM;
	if (!error) {
		memcpy(s->buf + s->n, a->buf, a->n);
		add_bytes(s, a->n);
		a->n = 0;
		s->ended = a->ended;
	}
	(void)pthread_cond_signal(&a->taken);
	(void)pthread_mutex_unlock(&a->lock);
	if (error)
		fail(error);
}

/* Reads once; may block. */
static void read_some(struct input_stream *s)
{
	ssize_t got;

	if (!make_room(&s->buf, &s->cap, s->n, FIRST_CAP))
		fail(ENOMEM);
	got = read_once(s->fd, s->buf + s->n, s->cap - s->n);
	if (got < 0)
		fail(errno);
	add_bytes(s, (size_t)got);
	s->ended = got == 0;
}

void input_stream_init(struct input_stream *s, int fd, size_t most)
{
	struct stat st;

	*s = (struct input_stream){ .fd = fd, .most = most };
	s->is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	/* One more read finds the end after the file's size. */
	if (s->is_file && st.st_size >= 0 && (uint64_t)st.st_size < most &&
	    !make_room(&s->buf, &s->cap, 0, (size_t)st.st_size + FIRST_CAP))
		fail(ENOMEM);
}

void input_stream_deinit(struct input_stream *s)
{
	if (s->ahead) {
		(void)pthread_cancel(s->ahead->thread);
		(void)pthread_join(s->ahead->thread, NULL);
		ahead_free(s->ahead);
	}
	free(s->buf);
}

/*
 * An answer takes about ten times the bytes of its line, so a batch takes a third of the budget,
 * after subtracting the threads' tables and buffers (SCRATCH).
 */
#define SHARE 32

#define DEFAULT_BUDGET ((uint64_t)1 << 30)
#define SCRATCH        ((uint64_t)8 << 20)
#define LEAST_SHARE    ((size_t)64 << 10)
#define MOST_SHARE     ((size_t)32 << 20)

size_t input_stream_share(uint64_t memory_budget)
{
	const uint64_t budget = memory_budget ? memory_budget : DEFAULT_BUDGET;
	const uint64_t share = budget > SCRATCH ? (budget - SCRATCH) / SHARE : 0;

	return share < LEAST_SHARE ? LEAST_SHARE : share > MOST_SHARE ? MOST_SHARE : (size_t)share;
}

/*
 * Returns whether the input read is a batch: it has a line, and is full or nothing more is ready.
 */
static bool is_batch(const struct input_stream *s)
{
	return s->has_line && (s->n >= s->most || (!s->is_file && !is_ready(s->fd, 0)));
}

bool input_stream_fill(struct input_stream *s)
{
	const size_t left = s->n - s->used;

	if (left)
		memmove(s->buf, s->buf + s->used, left);
	s->n = 0;
	s->used = 0;
	s->has_line = false;
	add_bytes(s, left);
	s->is_silent = s->patience && !s->ahead && !s->is_file && !s->ended &&
		       !is_ready(s->fd, s->patience);
	if (s->ahead && !s->ended)
		do
			take_ahead(s);
		while (!s->ended && !s->has_line);
	else if (!s->ended && !s->is_silent)
		do
			read_some(s);
		while (!s->ended && !is_batch(s));
	if (!s->ahead && !s->ended && !s->is_file && s->n >= AHEAD_FROM)
		start_ahead(s);
	s->batches++;
	s->patience = 0;
	return s->n != 0;
}

bool input_stream_is_whole_file(const struct input_stream *s)
{
	return s->is_file && s->ended && s->batches == 1;
}

bool input_stream_line(struct input_stream *s, const char **ret_line, size_t *ret_size)
{
	const char *line = s->buf + s->used;
	const size_t left = s->n - s->used;
	const char *end = left ? memchr(line, '\n', left) : NULL;

	if (!end && (!s->ended || !left))
		return false;
	*ret_line = line;
	*ret_size = end ? (size_t)(end - line) : left;
	s->used += *ret_size + (end ? 1 : 0);
	return true;
}

void input_stream_put_back(struct input_stream *s, size_t size, int seconds)
{
	s->used -= size;
	s->patience = size ? seconds : 0;
}

void input_stream_lines(struct input_stream *s, const char **ret_text, size_t *ret_size)
{
	const char *text = s->buf + s->used;
	size_t size = s->n - s->used;

	if (!s->ended) {
		const char *end = size ? memrchr(text, '\n', size) : NULL;

		size = end ? (size_t)(end - text) + 1 : 0;
	}
	*ret_text = text;
	*ret_size = size;
	s->used += size;
}
