/* SPDX-License-Identifier: MIT */
/*
 * Lines of standard input, in batches: what is there is answered before more is waited for.
 *
 * An answer to few lines must come at once, to a program that waits for it before it asks more. Of
 * many lines it matters that few batches hold them, because what a batch decodes it decodes once.
 * So a thread reads on while a large batch is being answered, and the next batch is what has come
 * meanwhile. A client that asks little never meets that thread.
 */
#ifndef FATHOM_CLI_STREAM_H
#define FATHOM_CLI_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a batch where larger ones gain nothing. */
#define STREAM_BATCH ((size_t)4 << 20)

struct ahead;

/* Lines that were read and wait to be answered. */
struct input_stream {
	int fd;
	bool is_file; /* a regular one: reading it never waits */
	bool ended;
	bool has_line; /* some line in buf is complete */
	char *buf;
	size_t n; /* bytes in buf */
	size_t cap;
	size_t used;         /* bytes of lines that were handed out */
	size_t most;         /* bytes of a batch, but for its last line */
	uint64_t batches;    /* filled so far */
	struct ahead *ahead; /* the thread that reads on; NULL: there is none */
};

/* Begins to read @fd in batches of at most @most bytes, or of a line that is longer. */
void input_stream_init(struct input_stream *s, int fd, size_t most);
void input_stream_deinit(struct input_stream *s);

/* Bytes of a batch whose answers take little of @memory_budget, 0 for the default. */
size_t input_stream_share(uint64_t memory_budget);

/*
 * Waits for input, then reads until nothing more is ready or the batch is full, a regular file
 * until it ends; false at the end. What remains of an incomplete line is kept, and at the end
 * counts as one.
 */
bool input_stream_fill(struct input_stream *s);

/* Whether the batch is all that there was: of a regular file that it holds to its end. */
bool input_stream_is_whole_file(const struct input_stream *s);

/* All complete lines that there are, with their ends; the last of the input may lack its own. */
void input_stream_lines(struct input_stream *s, const char **ret_text, size_t *ret_size);

/* The next complete line, without its end; false when there is none yet. */
bool input_stream_line(struct input_stream *s, const char **ret_line, size_t *ret_size);

#endif
