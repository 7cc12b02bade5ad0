/* SPDX-License-Identifier: MIT */
/*
 * Changes to text that belong together, which know what was there, and how they are made and
 * undone. The text is reached by a struct fathom_text_memory: that of a tracee (tracee_text.h), or
 * of the calling process (own_text.h).
 *
 * A change is made only where the old bytes are, and undone only where the new ones are: a module
 * that is gone, or whose text something else has changed, is left alone. Only bytes that differ are
 * written.
 */
#ifndef FATHOM_PATCH_TEXT_PLAN_H
#define FATHOM_PATCH_TEXT_PLAN_H

#include "host/base/array.h"

/* Where text is. Each function returns false unless it did so for all bytes. */
struct fathom_text_memory {
	bool (*read)(struct fathom_text_memory *m, uint64_t avma, void *to, size_t size);
	bool (*write)(struct fathom_text_memory *m, uint64_t avma, const void *from, size_t size);
	/* Makes processors fetch what was written; NULL: no thread runs it meanwhile. */
	bool (*synchronize)(struct fathom_text_memory *m);
	int refused; /* errno with which the kernel has refused that; 0: it has not */
};

/* Bytes of a change that is made in two steps, at most. */
#define FATHOM_TEXT_STEPS_SIZE 32
/* A change is written at once. */
#define FATHOM_TEXT_WHOLE UINT32_MAX

struct fathom_text_change {
	uint64_t avma;
	uint64_t resume; /* a thread that stands in its bytes, not at the first, may go on there; 0:
			    nowhere */
	size_t bytes;    /* index of the new bytes, which the old ones follow */
	uint32_t size;
	/*
	 * Index of the byte that makes the code jump. It is written after all others of the plan,
	 * and put back before them: until it is written, the others are not run, or mean what was
	 * there before. FATHOM_TEXT_WHOLE: all bytes are written at once.
	 */
	uint32_t last;
	bool stays; /* a stub: written whatever is there, and never undone */
};

/* The changes, in the order in which they are made. All zero, there are none. */
struct fathom_text_plan {
	uint32_t references; /* of those that fathom_text_plan_create() makes */
	FATHOM_ARRAY_OF(struct fathom_text_change);
	struct fathom_bytes_array bytes;
};

/* Returns a plan with one reference; NULL without memory. */
struct fathom_text_plan *fathom_text_plan_create(void);
void fathom_text_plan_acquire(struct fathom_text_plan *plan);
void fathom_text_plan_release(struct fathom_text_plan *plan);
/* Frees the changes. */
void fathom_text_plan_clear(struct fathom_text_plan *plan);

/* Adds a change of @size bytes, which are copied. @old is NULL for a stub, which stays. */
bool fathom_text_plan_add(struct fathom_text_plan *plan, uint64_t avma, const void *old,
			  const void *bytes, size_t size, uint64_t resume);
/*
 * Adds one in two steps, whose byte @last leads elsewhere. False without memory, or if @size is
 * above FATHOM_TEXT_STEPS_SIZE.
 */
bool fathom_text_plan_add_steps(struct fathom_text_plan *plan, uint64_t avma, const void *old,
				const void *bytes, size_t size, uint32_t last);
/* Removes the changes from @n on, which were added last. */
void fathom_text_plan_cut(struct fathom_text_plan *plan, size_t n);
/*
 * Makes the new bytes of @plan, sorted by address, what they are after the changes of @other at the
 * same addresses are made, or, unless @now, undone.
 */
void fathom_text_plan_follow(struct fathom_text_plan *plan, const struct fathom_text_plan *other,
			     bool now);
void fathom_text_plan_sort(struct fathom_text_plan *plan);

/* Returns whether @bytes are at @avma. */
bool fathom_text_holds(struct fathom_text_memory *m, uint64_t avma, const void *bytes, size_t size);

/* Returns how many changes from @first on would be made, or, unless @now, undone. */
size_t fathom_text_plan_count(const struct fathom_text_plan *plan, size_t first, bool now,
			      struct fathom_text_memory *m);

/*
 * Makes the changes from @first on, or, unless @now, undoes them, the last one first. False if one
 * cannot be written, or processors not be synchronized: then all are as before, if they can be
 * written back. Calls nothing but @m.
 */
bool fathom_text_plan_put(const struct fathom_text_plan *plan, size_t first, bool now,
			  struct fathom_text_memory *m);

#endif
