/* SPDX-License-Identifier: MIT */
/*
 * The input of fathom resolve. An engine may write all its rows before it reads the first answer:
 * so as soon as there is much to do, a thread reads ahead, and keeps what it has read until rows
 * are answered. What it keeps is bounded; then the engine has to read first.
 *
 * Small clients, which wait for each answer, never start that thread.
 */
#ifndef FATHOM_CLI_RESOLVE_INPUT_H
#define FATHOM_CLI_RESOLVE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_queue;

struct row_input {
	int fd;
	bool is_file; /* a regular file: reads never block */
	bool is_ended;
	bool is_cut;       /* it was stopped: its last row may go on */
	bool is_exhausted; /* all whole rows of buf were taken */
	char *buf;
	size_t n; /* bytes in buf */
	size_t cap;
	size_t used; /* bytes that were taken */
	size_t most_queued;
	struct row_queue *queue;  /* of the thread; NULL: none runs */
	_Atomic uint64_t bytes;   /* read so far */
	_Atomic uint64_t wait_ns; /* spent waiting for input */
	int stop_fd;              /* readable when no more rows are wanted */
	const _Atomic bool *is_stopped;
};

/* @most_queued: bytes that the thread keeps. */
void row_input_init(struct row_input *in, int fd, size_t most_queued, int stop_fd,
		    const _Atomic bool *is_stopped);
void row_input_deinit(struct row_input *in);

/*
 * Reads into buf, unless whole rows are left there: waits for input, then takes what is ready,
 * until buf is full, or 5 ms have passed. What was taken of buf is dropped before. With @finishes,
 * reads on although the input was stopped.
 */
void row_input_gather(struct row_input *in, bool finishes);

/* Starts the thread, unless it runs. */
void row_input_read_ahead(struct row_input *in);

#endif
