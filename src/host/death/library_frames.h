/* SPDX-License-Identifier: MIT */
/* Functions of the C and C++ libraries that a stack goes through, by name and by module. */
#ifndef FATHOM_DEATH_LIBRARY_FRAMES_H
#define FATHOM_DEATH_LIBRARY_FRAMES_H

#include "host/death/death.h"
#include "safe/cxx/uncaught.h"

/* Returns whether frame @f is of the function with the linkage name @name, or of a part of it. */
bool fathom_frame_is(const struct fathom_stack_frame *f, const char *name);

/* Returns the index of the first frame of function @name from @from on; FATHOM_NO_FRAME: none. */
size_t fathom_frame_find(const struct fathom_thread *t, size_t from, const char *name);

/* Finds the module and bias of the code of @f; returns false if it is in no module. */
bool fathom_frame_place(const struct fathom_death_work *w, const struct fathom_stack_frame *f,
			struct fathom_place *ret);

/* Returns whether @a and @b are one module at one bias. */
static inline bool fathom_place_is_same(const struct fathom_place *a, const struct fathom_place *b)
{
	return a->holder->module == b->holder->module && a->bias == b->bias;
}

/* Returns whether @m is libstdc++, libc++ or libc++abi, as shared libraries. */
bool fathom_module_is_cxx_library(struct fathom_module *m);

/*
 * Returns whether libc itself called abort() in the stack of @t, and in which module it is: a
 * program that calls abort() leaves what libc wrote before as it was.
 */
bool fathom_frames_abort_by_libc(const struct fathom_death_work *w, const struct fathom_thread *t,
				 struct fathom_place *ret);

/*
 * Returns whether the C++ library ends the program in the stack of @t because of an exception that
 * no handler takes: std::terminate() below a throw, or below code that may not throw.
 */
bool fathom_frames_is_uncaught(const struct fathom_death_work *w, const struct fathom_thread *t);

/*
 * Returns whether an exception that the thread has must have been taken by a handler: its stack is
 * whole, and neither throws nor terminates.
 */
bool fathom_frames_is_handled(const struct fathom_thread *t);

#endif
