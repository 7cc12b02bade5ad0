/* SPDX-License-Identifier: MIT */
/* The frames of stacks of system calls: copies with their names, each once, numbered from 0. */
#ifndef FATHOM_EVENTS_STACK_FRAMES_H
#define FATHOM_EVENTS_STACK_FRAMES_H

#include "fathom/trace.h"
#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/base/key_map.h"

/* All zero, it is empty. */
struct fathom_stack_frames {
	FATHOM_ARRAY_OF(struct fathom_trace_frame *); /* by number */
	struct fathom_key_map numbers;                /* by a hash of all that a frame tells */
	struct {
		FATHOM_ARRAY_OF(struct fathom_module_info *);
	} modules;
	struct fathom_arena arena;
};

void fathom_stack_frames_deinit(struct fathom_stack_frames *f);

/*
 * Returns the frame that @answer names, whose pc is at @file_offset of its module's file. It has
 * no sp and no trust: these differ from stack to stack. It lives as long as @f. NULL without
 * memory.
 */
const struct fathom_trace_frame *fathom_stack_frames_add(struct fathom_stack_frames *f,
							 const struct fathom_answer *answer,
							 uint64_t file_offset);

/* Returns a stack with room for @n frames, from malloc(); NULL without memory. */
struct fathom_trace_stack *fathom_trace_stack_create(size_t n, uint8_t stop);
/* Returns the frames of @s, to be filled in. */
struct fathom_trace_frame *fathom_trace_stack_frames(struct fathom_trace_stack *s);

/* Returns a copy of @from whose frames are of @f, from malloc(); NULL without memory. */
struct fathom_trace_stack *fathom_stack_frames_copy(struct fathom_stack_frames *f,
						    const struct fathom_trace_stack *from);

#endif
