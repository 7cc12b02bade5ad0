/* SPDX-License-Identifier: MIT */
/*
 * Lines of standard input, in batches: all available lines are answered before more are awaited.
 *
 * A client that waits for each answer before it asks again must get it at once. Many lines must be
 * answered in few batches, because each batch decodes shared data once. So a thread reads ahead
 * while a large batch is being answered, and its lines become the next batch. Small clients never
 * start that thread.
 */
#ifndef FATHOM_CLI_STREAM_H
#define FATHOM_CLI_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a batch; larger ones are not faster. */
#define STREAM_BATCH ((size_t)4 << 20)

struct ahead;

/* Lines that were read but not yet answered. */
struct input_stream {
	int fd;
	bool is_file; /* a regular file: reads never block */
	bool ended;
	bool has_line;  /* buf holds a complete line */
	bool is_silent; /* lines that were put back waited for more in vain */
	int patience;   /* seconds that lines which were put back wait; 0: there are none */
	char *buf;
	size_t n; /* bytes in buf */
	size_t cap;
	size_t used;         /* bytes of lines already returned */
	size_t most;         /* maximum bytes of a batch, its last line aside */
	uint64_t batches;    /* filled so far */
	struct ahead *ahead; /* the read-ahead thread; NULL: none */
};

/* Prepares to read @fd in batches of at most @most bytes, or of one longer line. */
void input_stream_init(struct input_stream *s, int fd, size_t most);
void input_stream_deinit(struct input_stream *s);

/* Returns the bytes of a batch whose answers fit @memory_budget; 0: the default budget. */
size_t input_stream_share(uint64_t memory_budget);

/*
 * Waits for input, then reads until the batch is full or nothing more is ready (a regular file:
 * until it ends). Returns false at the end of input. Keeps an incomplete line for the next batch;
 * at the end it counts as complete.
 */
bool input_stream_fill(struct input_stream *s);

/* Returns whether the batch is the whole input: a regular file, read to its end. */
bool input_stream_is_whole_file(const struct input_stream *s);

/* Takes all complete lines, with their newlines; the input's last line may lack one. */
void input_stream_lines(struct input_stream *s, const char **ret_text, size_t *ret_size);

/*
 * Puts the last @size bytes of the lines that were taken back. They are returned again with what
 * follows, or if that is nothing for @seconds, as they are.
 */
void input_stream_put_back(struct input_stream *s, size_t size, int seconds);

/* Takes the next complete line, without its newline; returns false if there is none yet. */
bool input_stream_line(struct input_stream *s, const char **ret_line, size_t *ret_size);

#endif
