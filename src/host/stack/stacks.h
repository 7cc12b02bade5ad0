/* SPDX-License-Identifier: MIT */
/*
 * Stacks being read: threads are copied or taken from a core, walked, and named as one batch.
 */
#ifndef FATHOM_STACK_STACKS_H
#define FATHOM_STACK_STACKS_H

#include "fathom/stack.h"
#include "host/base/array.h"
#include "host/base/memory.h"
#include "host/interpreters/script_places.h"
#include "host/stack/keep.h"
#include "host/stack/walk.h"
#include "host/symbolize/answers.h"

struct fathom_threads {
	FATHOM_ARRAY_OF(struct fathom_thread);
};

struct fathom_stacks {
	struct fathom_threads threads;
	struct fathom_stack_frame *frames; /* of all threads, one after the other */
	struct fathom_answers *answers;    /* one for each frame */
	struct fathom_arena arena;         /* texts and registers */
};

/* Stacks under construction. */
struct fathom_stacks_work {
	struct fathom_stack_options options;
	struct fathom_view *view;
	struct fathom_walker *walker;
	struct fathom_walk_frames frames; /* of all threads so far */
	struct fathom_size_array ends;    /* of each thread, in frames */
	uint32_t *answer_of;              /* of each frame: the number of its answer */
	struct fathom_stacks *to;
	struct fathom_keep *keep;                  /* what a snapshot keeps; NULL: none is taken */
	struct fathom_bytes_array *snapshot;       /* that, with all else, if keep is set */
	const struct fathom_stack_sample *samples; /* to be walked; NULL: the target's threads */
	size_t n_samples;
	struct fathom_u64_array astray; /* return addresses that led to no code, of all walks */
	/* frames of interpreters */
	struct fathom_interpreters *interpreters; /* of the view; NULL: none are looked for */
	struct fathom_script_frames scripts;      /* of all threads so far */
	struct fathom_size_array script_ends;     /* of each thread, in scripts */
};

/* Walks one stack, and records what is read meanwhile if it is to be kept. */
fathom_err fathom_stacks_walk(struct fathom_stacks_work *w, struct fathom_walk *walk);

/* Copies @text into the arena; NULL without memory, or if @text is empty. */
const char *fathom_stacks_text(struct fathom_stacks_work *w, const char *text);

/*
 * Adds @thread, whose frames are those that were walked since the last one was added. @r: its
 * registers, or NULL.
 */
fathom_err fathom_stacks_add(struct fathom_stacks_work *w, struct fathom_thread *thread,
			     const struct fathom_registers *r);

/*
 * Looks whether the frames from @first on lead through an interpreter that was not known. Sets
 * *@ret_new if so: the frames of its functions are still to be read. FATHOM_E_MEMORY.
 */
fathom_err fathom_stacks_look_for_scripts(struct fathom_stacks_work *w,
					  const struct fathom_walk_frames *frames, size_t first,
					  bool *ret_new);

/*
 * Appends the frames of interpreters of thread @tid, of whose registers @registers are known and
 * which does not run meanwhile, to @ret. FATHOM_E_MEMORY.
 */
fathom_err fathom_stacks_read_scripts(struct fathom_stacks_work *w, int32_t tid,
				      const struct fathom_registers *registers,
				      struct fathom_script_frames *ret);

/* Returns @n frames of a walk as those among which frames of scripts are placed. */
struct fathom_native_frames fathom_stacks_native(const struct fathom_walk_frame *frames, size_t n);

/* Reads the names of all frames of interpreters, for a snapshot. FATHOM_E_MEMORY. */
fathom_err fathom_stacks_keep_scripts(struct fathom_stacks_work *w);

/* Puts frames of interpreters between those of the threads, which are named. FATHOM_E_MEMORY. */
fathom_err fathom_stacks_merge_scripts(struct fathom_stacks_work *w);

/*
 * Lets the caller replace frames by those of an interpreter. FATHOM_E_ARGUMENT if it replaces
 * frames that are not there; FATHOM_E_MEMORY.
 */
fathom_err fathom_stacks_interpret(struct fathom_stacks_work *w, struct fathom_errinfo *reterr);

/* Adds the threads of a live process (live_threads.c). */
fathom_err fathom_stacks_add_live(struct fathom_stacks_work *w, const struct fathom_live *live,
				  struct fathom_errinfo *reterr);

#endif
