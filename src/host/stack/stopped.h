/* SPDX-License-Identifier: MIT */
/*
 * The stacks of threads that the caller has stopped by ptrace(2), read again and again. What is
 * known of their process (its map, its modules, the rows and names of its code) is kept from
 * reading to reading, until the caller says that its code has moved.
 */
#ifndef FATHOM_STACK_STOPPED_H
#define FATHOM_STACK_STOPPED_H

#include "fathom/stack.h"
#include "host/base/array.h"

/* How frames are named. */
struct fathom_stopped_naming {
	bool names_only; /* no lines, no inlined calls */
	size_t max_frames;
	/*
	 * Gives a number, below UINT32_MAX, to the frame that @answer names, which is gone after
	 * the call. @file_offset: of its pc in the file of its module; FATHOM_NO_ADDRESS: it is in
	 * none. False without memory.
	 */
	bool (*name)(void *data, const struct fathom_answer *answer, uint64_t file_offset,
		     uint32_t *ret_number);
	void *data;
};

struct fathom_stopped_frame {
	uint64_t sp;
	uint32_t number;
	uint8_t trust; /* enum fathom_trust */
	bool is_signal_return;
};

/* A stack that was read. All zero at first. */
struct fathom_stopped_stack {
	FATHOM_ARRAY_OF(struct fathom_stopped_frame);
	uint8_t stop; /* enum fathom_stop */
};

struct fathom_stopped_process;

/* Prepares to read stacks of process @pid; @naming must outlive it. NULL without memory. */
struct fathom_stopped_process *fathom_stopped_create(struct fathom *session, int pid,
						     const struct fathom_stopped_naming *naming);
/* @p may be NULL. */
void fathom_stopped_destroy(struct fathom_stopped_process *p);

/* Reads the stack of @tid, a stopped thread of @p, into @ret; false if it cannot be read. */
bool fathom_stopped_read(struct fathom_stopped_process *p, int32_t tid,
			 struct fathom_stopped_stack *ret);

/* Returns whether code is known in the @size bytes at @start. */
bool fathom_stopped_has_code(const struct fathom_stopped_process *p, uint64_t start, uint64_t size);
/* Returns whether nothing is known that could become wrong. */
bool fathom_stopped_is_blank(const struct fathom_stopped_process *p);
/* Discards the view of @p, whose code may have moved, before the next reading. */
void fathom_stopped_renew(struct fathom_stopped_process *p);

#endif
