/* SPDX-License-Identifier: MIT */
#include "cli/resolve_input.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/common.h"

/* Bytes of a batch, its last row aside; a row has at most some 2 MiB. */
#define MOST_BYTES ((size_t)8 << 20)

/* Bytes of one read, and of a piece of the queue. */
#define PIECE ((size_t)128 << 10)

/* A batch is gathered for this long, however fast rows come. */
#define GATHER_NS 5000000

struct piece {
	struct piece *next;
	size_t n;
	char bytes[PIECE];
};

struct row_queue {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t taken;
	struct piece *first;
	struct piece **last;
	size_t n; /* bytes of pieces */
	size_t most;
	int error; /* errno of a failed read, or 0 */
	bool is_ended;
	bool is_awaited; /* who takes pieces waits for came_fd */
	int came_fd;
	int fd;
	_Atomic uint64_t *bytes;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

_Noreturn static void fail(int number)
{
	complain("standard input", strerror(number), NULL);
	exit(EXIT_USAGE);
}

static void count(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static ssize_t read_once(int fd, char *to, size_t size)
{
	ssize_t got;

	do
		got = read(fd, to, size);
	while (got < 0 && errno == EINTR);
	return got;
}

/* The thread. */

/* Adds @p, with what was read, or the end of the input. */
static void add_piece(struct row_queue *q, struct piece *p, ssize_t got, int number)
{
	static const uint64_t one = 1;

	(void)pthread_mutex_lock(&q->lock);
	if (got > 0) {
		p->n = (size_t)got;
		*q->last = p;
		q->last = &p->next;
		q->n += p->n;
		count(q->bytes, p->n);
	} else {
		q->is_ended = true;
		q->error = got < 0 ? number : 0;
	}
	if (q->is_awaited)
		(void)!write(q->came_fd, &one, sizeof one);
	q->is_awaited = false;
	while (q->n >= q->most)
		(void)pthread_cond_wait(&q->taken, &q->lock);
	(void)pthread_mutex_unlock(&q->lock);
}

/* Reads until the input ends. */
static void *read_ahead(void *data)
{
	struct row_queue *q = data;
	ssize_t got = 1;

	while (got > 0) {
		struct piece *p = malloc(sizeof *p);
		int number = ENOMEM;

		got = -1;
		if (p) {
			p->next = NULL;
			got = read_once(q->fd, p->bytes, PIECE);
			number = errno;
		}
		add_piece(q, p, got, number);
		if (got <= 0)
			free(p);
	}
	return NULL;
}

static struct row_queue *queue_create(struct row_input *in)
{
	struct row_queue *q = calloc(1, sizeof *q);

	if (!q)
		return NULL;
	q->came_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->came_fd < 0) {
		free(q);
		return NULL;
	}
	q->fd = in->fd;
	q->most = in->most_queued;
	q->last = &q->first;
	q->bytes = &in->bytes;
	(void)pthread_mutex_init(&q->lock, NULL);
	(void)pthread_cond_init(&q->taken, NULL);
	return q;
}

void row_input_read_ahead(struct row_input *in)
{
	struct row_queue *q;
	pthread_attr_t detached;
	sigset_t all;
	sigset_t before;
	int failed;

	if (in->queue || in->is_file || in->is_ended)
		return;
	q = queue_create(in);
	if (!q)
		return;
	/* It may wait for input when the command ends: nobody waits for it. */
	(void)pthread_attr_init(&detached);
	(void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&q->thread, &detached, read_ahead, q);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&detached);
	if (!failed)
		in->queue = q;
	else
		free(q);
}

/* Taking. */

/* Makes room for @more bytes at the end of buf. */
static void make_room(struct row_input *in, size_t more)
{
	size_t cap = in->cap ? in->cap : 2 * PIECE;

	if (in->cap - in->n >= more)
		return;
	while (cap - in->n < more)
		cap *= 2;
	in->buf = must(realloc(in->buf, cap));
	in->cap = cap;
}

/* Takes the pieces that fit; returns whether something came, or the end. */
static bool take_pieces(struct row_input *in)
{
	struct row_queue *q = in->queue;
	struct piece *first;
	struct piece **end = &first;
	size_t n = 0;
	int error = 0;

	(void)pthread_mutex_lock(&q->lock);
	first = q->first;
	while (*end && in->n + n < MOST_BYTES) {
		n += (*end)->n;
		end = &(*end)->next;
	}
	q->first = *end;
	*end = NULL;
	if (!q->first)
		q->last = &q->first;
	q->n -= n;
	if (!q->first && q->is_ended) {
		in->is_ended = true;
		error = q->error;
	}
	q->is_awaited = !n && !in->is_ended;
	(void)pthread_cond_signal(&q->taken);
	(void)pthread_mutex_unlock(&q->lock);
	make_room(in, n);
	while (first) {
		struct piece *next = first->next;

		memcpy(in->buf + in->n, first->bytes, first->n);
		in->n += first->n;
		free(first);
		first = next;
	}
	if (error)
		fail(error);
	return n || in->is_ended;
}

/* Reads once, which may block. */
static bool read_some(struct row_input *in)
{
	ssize_t got;

	make_room(in, PIECE);
	got = read_once(in->fd, in->buf + in->n, in->cap - in->n);
	if (got < 0)
		fail(errno);
	in->n += (size_t)got;
	in->is_ended = got == 0;
	count(&in->bytes, (uint64_t)got);
	return true;
}

static bool is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* Takes what is there without waiting; returns false if nothing is. */
static bool take_ready(struct row_input *in)
{
	if (in->queue)
		return take_pieces(in);
	return (in->is_file || is_ready(in->fd)) && read_some(in);
}

/* Waits for input, or until the input is stopped; with @finishes, for input only. */
static void wait_for_input(struct row_input *in, bool finishes)
{
	struct pollfd p[2] = { { .fd = in->queue ? in->queue->came_fd : in->fd, .events = POLLIN },
			       { .fd = in->stop_fd, .events = POLLIN } };
	const uint64_t begun = now_ns();
	uint64_t number;

	while (poll(p, finishes ? 1 : 2, -1) < 0 && errno == EINTR)
		;
	if (in->queue)
		(void)!read(in->queue->came_fd, &number, sizeof number);
	count(&in->wait_ns, now_ns() - begun);
}

/* Drops what was taken of buf. */
static void drop_used(struct row_input *in)
{
	in->n -= in->used;
	if (in->used && in->n)
		memmove(in->buf, in->buf + in->used, in->n);
	in->used = 0;
}

void row_input_gather(struct row_input *in, bool finishes)
{
	const size_t before = in->n - in->used;
	uint64_t begun = 0;

	/* Blocks may be of one row each: buf is not moved for each of them. */
	if (!in->is_exhausted)
		return;
	drop_used(in);
	while (!in->is_ended && in->n < MOST_BYTES) {
		if (!finishes && atomic_load(in->is_stopped)) {
			in->is_ended = true;
			in->is_cut = true;
		} else if (take_ready(in)) {
			begun = begun ? begun : now_ns();
			if (!in->is_file && now_ns() - begun > GATHER_NS)
				break;
		} else if (in->n > before) {
			break;
		} else {
			wait_for_input(in, finishes);
		}
	}
}

void row_input_init(struct row_input *in, int fd, size_t most_queued, int stop_fd,
		    const _Atomic bool *is_stopped)
{
	struct stat st;

	*in = (struct row_input){ .fd = fd,
				  .is_exhausted = true,
				  .most_queued = most_queued,
				  .stop_fd = stop_fd,
				  .is_stopped = is_stopped };
	in->is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

void row_input_deinit(struct row_input *in)
{
	/* The queue is the thread's, which may still read. */
	free(in->buf);
}
